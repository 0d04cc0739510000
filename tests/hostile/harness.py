"""Surroundings of a hostile file: its folder, a canary outside, and an observer of what happens.

The observer is an audit hook that comes after that of axil: it sees what was let through.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axil_cli.main import main
from axil_files import load

CANARY = "canary-7714"
"""Content of the files outside; it may turn up nowhere."""
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")
_NET = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
_FILES = (
    "open", "sqlite3.connect", "ctypes.dlopen", "os.listdir", "os.scandir", "os.mkdir",
    "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod",
    "shutil.copyfile", "shutil.move", "shutil.rmtree", "os.utime",
)  # fmt: skip
SERVER = ("127.0.0.1", 9)
"""The address of the models that files of these tests name. Nothing answers there."""
_watching: list[tuple[str, list[str]]] = []


def _observe(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    outside, seen = _watching[-1]
    if event == "socket.connect" and arguments[1] == SERVER:
        return  # a file chooses the server of its model
    if event in _STARTS or event in _NET:
        seen.append(f"{event} {arguments[:2]}")
    elif event in _FILES:
        for each in arguments[:2]:
            path = os.fsdecode(each) if isinstance(each, (str, bytes)) else ""
            if path and "\0" not in path and _is_private(path, outside):
                seen.append(f"{event} {path}")
    elif event == "exec" and "strange_module" in str(getattr(arguments[0], "co_filename", "")):
        seen.append(f"{event} {arguments[0].co_filename}")


def _is_private(path: str, outside: str) -> bool:
    kept = _watching.copy()
    _watching.clear()  # what is asked here is not observed
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError):
        return False
    finally:
        _watching.extend(kept)
    return real == outside or real.startswith((outside + "/", "/proc/self/environ", "/etc/shadow"))


_is_observed = False


@contextlib.contextmanager
def observing(outside: Path) -> Iterator[list[str]]:
    """Give a list of what was let through: files outside, programs, connections."""
    global _is_observed
    if not _is_observed:
        nothing = {"graph": {"nodes": [{"id": "a", "type": "passthrough"}], "start": ["a"]}}
        place = outside.parent / "nothing.json"
        place.write_text(json.dumps(nothing))
        assert load(place).plan  # axil's own hook is there from now on
        sys.addaudithook(_observe)
        _is_observed = True
    seen: list[str] = []
    _watching.append((os.path.realpath(outside), seen))
    try:
        yield seen
    finally:
        _watching.pop()


def tree(folder: Path) -> dict[str, Any]:
    """Return all that is in a folder: names, links, contents and times."""
    found: dict[str, Any] = {}
    for each in sorted(folder.rglob("*")):
        stat = each.lstat()
        content = each.read_bytes() if each.is_file() and not each.is_symlink() else b""
        found[str(each.relative_to(folder))] = (stat.st_mode, stat.st_mtime_ns, content)
    return found


@dataclass(slots=True)
class Said:
    """Exit codes and output of a command."""

    codes: list[int] = field(default_factory=list[int])
    text: str = ""

    @property
    def ids(self) -> set[str]:
        """The ids of errors that were said."""
        return set(re.findall(r"\bAX\d{3}\b", self.text))


class Scene:
    """A folder with hostile files beside a folder that they may not touch."""

    def __init__(self, folder: Path) -> None:
        self.flows, self.outside = folder / "flows", folder / "outside"
        self.modules = folder / "modules"
        self.modules.mkdir()
        (self.flows / ".axil").mkdir(parents=True)
        (self.flows / "docs").mkdir()
        (self.flows / "docs/a.txt").write_text("roses")
        (self.outside / "skill").mkdir(parents=True)
        (self.outside / "secret").write_text(f"{CANARY} x Hello")
        (self.outside / "secret.txt").write_text(f"{CANARY} x Hello")
        (self.outside / "skill/SKILL.md").write_text(
            f"---\nname: skill\ndescription: {CANARY}\n---\nx\n"
        )
        (self.modules / "strange_module.py").write_text("open('taken', 'w').close()\nnode = 1\n")
        inner = {"nodes": [{"id": "i", "type": "literal", "config": {"content": CANARY}}]}
        (self.outside / "inner.json").write_text(json.dumps({"graph": {**inner, "start": ["i"]}}))

    def write(self, data: Mapping[str, Any] | str, name: str = "flow.json") -> Path:
        """Write a file beside the others."""
        file = self.flows / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = data if isinstance(data, str) else json.dumps(data)
        file.write_text(text, "utf-8", "surrogatepass")
        return file

    def agent(self, name: str = "flow.json", **agent: Any) -> Path:
        """Write a file with one agent."""
        config = {"model": {"type": "scripted", "default": "fine"}, **agent}
        return self.node({"type": "agent", "config": config}, name)

    def node(self, node: Mapping[str, Any], name: str = "flow.json", **root: Any) -> Path:
        """Write a file with one node."""
        graph = {"id": "f", "nodes": [{"id": "A", **node}], "start": ["A"]}
        return self.write({**root, "graph": graph}, name)

    def attack(self, file: Path | str, *given: str, check: bool = True) -> Said:
        """Check and run a file; hold that nothing outside was touched, and that what was said is
        clear.
        """
        said, out = Said(), io.StringIO()
        before, beside = tree(self.outside), tree(self.flows)
        ways = ["--input", "Hello", "--journal", "off", "--no-progress"]
        with (
            observing(self.outside) as seen,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            if check:
                said.codes.append(main(["check", str(file), *given]))
            said.codes.append(main(["run", str(file), *ways, *given]))
        said.text = out.getvalue()
        assert seen == [], seen
        assert tree(self.outside) == before
        changed = {each for each, now in tree(self.flows).items() if beside.get(each) != now}
        assert {each for each in changed if not each.startswith(".axil")} == set()
        assert CANARY not in said.text, said.text
        assert "Traceback (most recent call last)" not in said.text
        assert all(code == 0 or said.ids for code in said.codes), said.text
        return said

    def contact(self, file: Path | str, *given: str) -> list[str]:
        """Run a file that may ask somebody; return what was let through, and what was said."""
        out = io.StringIO()
        before = tree(self.outside)
        ways = ["--input", "Hello", "--journal", "off", "--no-progress"]
        with (
            observing(self.outside) as seen,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            main(["run", str(file), *ways, *given])
        assert tree(self.outside) == before
        assert "Traceback (most recent call last)" not in out.getvalue()
        return [*seen, out.getvalue()]

    def refuse(self, file: Path | str, *given: str, ids: tuple[str, ...] = ()) -> Said:
        """Hold that a file is refused, with one of the ids."""
        said = self.attack(file, *given)
        assert 0 not in said.codes[-1:], said.text
        assert not ids or said.ids & set(ids), said.text
        return said
