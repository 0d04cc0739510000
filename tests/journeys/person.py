"""A person at a machine: the terminal in which they type, the programs that they leave running,
and the browser in front of them.

Nothing here knows axil from within: commands are processes, servers are reached over sockets,
questions are answered with keys. A command is a fork of a process that has imported axil, and in
`make thorough` begins from nothing, as one on a terminal always does.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.house import programs

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
WAIT_SECONDS = 90.0
"""A bound for what hangs, not a measure: the machine may be busy."""
PLAIN = re.compile(r"axil [^|&;<>$`*?#~\\\n]*")
"""A line of which a shell would make what ``shlex`` does."""
LEFT_OUT = ("AXIL_", "OPENAI_", "PYTHON", "COLUMNS", "PYTEST_", "NO_COLOR", "FORCE_COLOR")


def readme(language: str) -> str:
    """Return the first block of the README in a language."""
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found
    return found[1]


def eventually(question: Callable[[], T], *, seconds: float = WAIT_SECONDS) -> T:
    """Ask again and again until the answer is true, and return it."""
    until = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < until, f"not so after {seconds} s"
        time.sleep(0.05)
    return answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """The text that a command showed: its output, the rest, and its exit code."""

    line: str
    out: str
    err: str
    code: int

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def data(self) -> Any:
        """The output, as JSON."""
        return json.loads(self.out)

    def shows(self, *texts: str) -> Screen:
        """Fail unless each text is there, however lines are broken."""
        seen = " ".join(self.text.split())
        for text in texts:
            assert " ".join(text.split()) in seen, f"{text!r} is not shown\n{self}"
        return self

    def find(self, pattern: str) -> str:
        """Return the first group of a pattern that is shown."""
        found = re.search(pattern, self.text)
        assert found, f"{pattern!r} is not shown\n{self}"
        return found[1]

    def __str__(self) -> str:
        return f"$ {self.line}\n{self.out}{self.err}[exit code {self.code}]"


class Terminal:
    """A terminal in a folder."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(LEFT_OUT)}
        programs = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
        self.environment = {**kept, "PATH": programs, "COLUMNS": "120", **environment}
        self.programs = Path(sys.executable).parent
        self.running: list[Program | Server] = []

    def write(self, name: str, text: str) -> Path:
        """Save a file in an editor."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def type(
        self, line: str, *, code: int = 0, stdin: str | None = None, tracebacks: bool = False
    ) -> Screen:
        """Type a command, and read what it shows; it has to end with the exit code."""
        words = self._words(line)
        does = self._forked if words[0] == programs.AXIL and not LONG else self._done
        screen = does(line, words, stdin)
        assert screen.code == code, f"exit code {code} was expected\n{screen}"
        assert tracebacks or "Traceback (most recent call last)" not in screen.text, str(screen)
        return screen

    def paste(self, lines: str, *, code: int = 0) -> Screen:
        """Paste lines of a page into a shell; the first that fails is the last."""
        if PLAIN.fullmatch(lines.strip()) and not LONG:
            screen = self._forked(lines, self._words(lines), None)
        else:
            screen = self._done(lines, ["sh", "-ec", lines], None)
        assert screen.code == code, f"exit code {code} was expected\n{screen}"
        return screen

    def _done(self, line: str, words: list[str], stdin: str | None) -> Screen:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS * 3,
        )
        return Screen(line=line, out=done.stdout, err=done.stderr, code=done.returncode)

    def _forked(self, line: str, words: list[str], stdin: str | None) -> Screen:
        """Run a command of this environment in a process that has imported it already."""
        code, out, err = programs.command(
            words,
            self.folder,
            self.environment,
            stdin=stdin or "",
            timeout_seconds=WAIT_SECONDS * 3,
        )
        return Screen(line=line, out=out, err=err, code=-1 if code is None else code)

    def sit(self, line: str, keys: dict[str, str], *, code: int = 0) -> Screen:
        """Type a command on a real terminal, and type the keys where their texts appear."""
        main, side = pty.openpty()
        child = subprocess.Popen(
            self._words(line),
            cwd=self.folder,
            env=self.environment,
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)
        seen, expected, until = "", list(keys.items()), time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            if select.select([main], [], [], 0.1)[0]:
                try:
                    seen += os.read(main, 65536).decode("utf-8", "replace")
                except OSError:  # the other end is closed
                    break
            if expected and expected[0][0] in seen:
                os.write(main, expected.pop(0)[1].encode())
            if child.poll() is not None and not select.select([main], [], [], 0)[0]:
                break
        child.kill() if child.poll() is None else None
        os.close(main)
        screen = Screen(line=line, out=seen.replace("\r\n", "\n"), err="", code=child.wait())
        assert not expected, f"{expected[0][0]!r} was never shown\n{screen}"
        assert screen.code == code, f"exit code {code} was expected\n{screen}"
        return screen

    def start(self, line: str) -> Program:
        """Type a command that stays; what it shows is read while it runs."""
        program = Program(line, self._words(line), self.folder, self.environment)
        self.running.append(program)
        return program

    def close(self) -> None:
        """End what is still running."""
        for each in self.running:
            each.kill()

    def program(self, name: str) -> str:
        """Return the path of a program of the environment."""
        own = self.programs / name
        return str(own) if own.exists() else name

    def _words(self, line: str) -> list[str]:
        name, *words = shlex.split(line)
        return [self.program(name), *words]


class Program:
    """A command that stays: a server, a worker."""

    def __init__(self, line: str, words: list[str], folder: Path, env: dict[str, str]) -> None:
        self.line, self.lines = line, list[str]()
        begun = programs.Popen if words[0] == programs.AXIL else subprocess.Popen
        self.process = begun(
            words,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def find(self, pattern: str) -> str:
        """Wait until a pattern is shown; return its first group."""

        def found() -> re.Match[str] | None:
            ended = self.process.poll() is not None
            seen = re.search(pattern, self.text)
            assert seen or not ended, f"{pattern!r} was never shown\n$ {self.line}\n{self.text}"
            return seen

        match = eventually(found)
        return match[1] if match.re.groups else match[0]

    def stop(self, code: int | None = None) -> str:
        """Press Ctrl-C, wait for the end, and return all that was shown."""
        self._signal(signal.SIGINT)
        ended = self.process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        assert code is None or ended == code, f"$ {self.line}\n{self.text}[exit code {ended}]"
        return self.text

    def kill(self) -> None:
        """End it and all that it started, at once."""
        self._signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join(WAIT_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _signal(self, which: int) -> None:
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, which)


class Server:
    """A server of workflows, and a client of its API."""

    def __init__(self, terminal: Terminal, line: str) -> None:
        import httpx

        self.program = terminal.start(f"{line} --port 0")
        self.page = self.program.find(r"Page: (\S+)")
        self.address, _, self.token = self.page.partition("/#token=")
        self.http = httpx.Client(
            base_url=self.address,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=WAIT_SECONDS,
            trust_env=False,
        )
        terminal.running.append(self)

    def kill(self) -> None:
        """End it at once, and its client."""
        self.http.close()
        self.program.kill()

    def get(self, path: str) -> Any:
        return self.http.get(path).raise_for_status().json()

    def post(self, path: str, data: Any) -> Any:
        return self.http.post(path, json=data).raise_for_status().json()

    def ended(self, run_id: str, *, status: str = "done") -> Any:
        """Wait until a run is at rest; return what the API says of it.

        One that waits for answers which were given at another server waits until they are taken.
        """

        def rested() -> Any:
            run = self.get(f"/v1/runs/{run_id}")
            passing = {"running", "pending", "queued", "paused"} - {status}
            return run if run["status"] not in passing else None

        run = eventually(rested)
        assert run["status"] == status, run
        return run


@contextmanager
def browser() -> Iterator[Any]:
    """Yield a Chromium, as the tests of the page find it; None: there is none."""
    import shutil

    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        yield None
        return
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    given = os.environ.get("AXIL_BROWSER")
    path = next(filter(None, map(shutil.which, names)), "") if given is None else given
    if not path:
        yield None
        return
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield found
        finally:
            found.close()
