"""Faults of a mutant that can be decided, beside that it neither hangs nor fails by accident.

**Secrets.** Each command has three: one given with ``--set``, one in the environment that was not
granted, one that is a maker's usual key. Their first twelve letters may be in nothing that leaves:
standard output, standard error, and any file that is there afterwards (journal, recording, lock,
results, what a memory or a cache wrote).

**Silently wrong.** A workflow file is what it says, so a mutant has no right result of its own. But

* ``check`` and ``run`` read the same file: what one refuses as unusable (2), the other refuses;
* a file that was read, written out as data (``dump_spec``) and read again, is the same workflow:
  its run ends in the same way and gives the same;
* a journal shows the run that was printed, and a run that has ended, resumed, gives it again;
* a recording, replayed, gives it again.

What depends on time is left out: a difference counts only where the same file gives the same twice.

A file that axil wrote and checks (journal, recording, lock, cache) is refused, or read as what was
written, or the beginning of it; a lock that passes has each version, digest, file and model that it
had. A file that a person writes (dataset, rows, input, answers, script, triggers, policy, tokens,
draft, memory) means what it says after the damage: it is refused, or read as the parsers of the
standard library read it. Of a manifest and of entry points: the components of others stay theirs.
Not decided: which report, page of a site or skill is meant by a damaged one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from axil import AxilError
from axil_cli.main import main
from axil_files import dump_spec, load_spec

GIVEN, WANTED, MAKERS = "cnrygiven00001-fuzz", "cnrywanted0001-fuzz", "sk-cnrymakers0001-fuzz"
SECRETS = (GIVEN, WANTED, MAKERS)
SET = ("--set", f"API_KEY={GIVEN}")
CODES = {0, 1, 2, 3, 4, 130}
MEANT = ("status", "output", "messages", "attributes")
"""Parts of a result that a file decides."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command."""

    code: int | None
    out: str
    err: str
    fault: str
    """A fault of that end, whatever was asked; empty: none."""

    @property
    def data(self) -> Any:
        """The JSON that it printed; None: it printed none."""
        try:
            return json.loads(self.out)
        except ValueError:
            return None


def hide_secrets() -> None:
    """Put those of the environment where commands find them."""
    os.environ.update({"WANTED": WANTED, "OPENAI_API_KEY": MAKERS})


def ended(arguments: Sequence[str]) -> Ended:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    code, fault = None, ""
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(arguments))
    except BaseException:  # noqa: BLE001  # any of them is a finding
        fault = traceback.format_exc()
    said = f"{out.getvalue()}\n{err.getvalue()}"
    if not fault and "Traceback (most recent call last)" in said:
        fault = said
    if not fault and code not in CODES:
        fault = f"the exit code {code}: {said}"
    return Ended(code, out.getvalue(), err.getvalue(), fault or leaked(said))


def fault_of(arguments: Sequence[str]) -> str:
    """Return what is wrong with how a command ends; empty: nothing."""
    return ended(arguments).fault


def leaked(text: str) -> str:
    """Return which secret a text leaks; empty: none."""
    for each in SECRETS:
        if (at := text.find(each[:12])) >= 0:
            return f"a secret is leaked: {text[max(0, at - 300) : at + 60]}"
    return ""


def left(folder: Path) -> str:
    """Return which file of a folder tells a secret; empty: none."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink() and not file.name.startswith(_AGAIN):
            data = file.read_bytes()
            for each in SECRETS:
                if (at := data.find(each[:12].encode())) >= 0:
                    return f"a secret is in {file.name}: {data[max(0, at - 300) : at + 60]!r}"
    return ""


# ------------------------------------------------------------------------------------ workflows


def faults_of_workflow(file: Path) -> Iterable[tuple[str, str]]:
    """Yield the faults of a workflow file in the working folder, each with the command."""
    checked = ended(["check", str(file), *SET])
    if checked.fault:
        yield "check", checked.fault
    ran = ended([*_RUN, "kept", "--run-id", "r", *SET, str(file)])
    meant = result(ran)
    if ran.fault:
        yield "run", ran.fault
    elif not checked.fault and (checked.code == 2) != (ran.code == 2):
        yield "agree", f"check says {checked.code}, run {ran.code}: {checked.out}{ran.err}"
    others = _others(file, meant) if meant is not None and not ran.fault else ()
    for command, again in others:
        # whether the file has one result at all is asked only where two differ
        if again is not None and again != meant and _again(file) == meant:
            yield command, f"it gives {json.dumps(again)[:600]}\nand gave {json.dumps(meant)[:600]}"
    if found := left(file.parent):
        yield "left", found


def _others(file: Path, meant: Any) -> Iterable[tuple[str, Any]]:
    """Yield further ways to the result of a file, and what they give."""
    if (written := canonical(file)) is not None:
        yield "canonical", _again(written)
    yield "shown", shown(meant)
    if meant["status"] == "done":
        resumed = ended(["runs", "resume", "r", "--journal", "kept", "--format", "json"])
        yield "resumed", result(resumed)
    memories, before = Path(".axil"), Path("before")
    if memories.is_dir():
        shutil.copytree(memories, before)
    yield "recorded", _again(file, "--record", "told.jsonl")
    if Path("told.jsonl").exists():
        shutil.rmtree(memories, ignore_errors=True)  # what was said depends on what was remembered
        if before.is_dir():
            before.rename(memories)
        yield "replayed", _again(file, "--replay", "told.jsonl")


_RUN = ("run", "--input", "x", "--format", "json", "--journal")


def _again(file: Path, *options: str) -> Any:
    return result(ended([*_RUN, "off", *SET, *options, str(file)]))


def result(done: Ended) -> Any:
    """Return what a run gave; None: it was refused, or ended by its time."""
    if done.fault:
        return {"fault": done.fault}
    data = done.data
    if done.code not in (0, 1, 3) or not isinstance(data, dict):
        return None
    error: Any = data.get("error") or {}
    return {**{name: data.get(name) for name in MEANT}, "error": error.get("id", "")}


def shown(meant: Any) -> Any:
    """Return what the journal says of the run, where it gave what is ``meant``."""
    done = ended(["runs", "show", "r", "--journal", "kept", "--format", "json"])
    if done.fault or not isinstance(done.data, dict):
        return {"fault": done.fault or f"the exit code {done.code}: {done.err}"}
    status, output = done.data["run"]["status"], done.data["outline"]["output"]
    is_same = status == meant["status"] and (status != "done" or output == meant["output"])
    return meant if is_same else {**meant, "status": status, "output": output}


_AGAIN = "again"


def canonical(file: Path) -> Path | None:
    """Return the same workflow, written anew beside it; None: it cannot be written."""
    try:
        data = dump_spec(load_spec(file, vars={"API_KEY": GIVEN}))
    except AxilError:
        return None
    made = file.with_name(f"{_AGAIN}{file.suffix}")
    text = json.dumps(data) if file.suffix == ".json" else yaml.safe_dump(data)
    made.write_text(text, "utf-8", "surrogatepass")
    return made
