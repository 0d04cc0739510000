"""Files that axil keeps or is given, damaged: each is read, or refused in plain words.

``python damaged.py SEED COUNT [NAME]``: so many of them, from SEED on, of each kind in turn, or of
the kinds whose name begins with NAME. COUNT 0: each as it is, and with a few other contents. Each
finding is a line of JSON on standard output, as in ``worker``, whose limits hold for each file.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from axil import AxilError
from axil.plugin import Policy, Registry, UnknownComponent
from axil_cli import DraftRecord
from axil_evals import read_dataset
from axil_files import load, workflow_schema
from axil_journals import read_triggers
from axil_models import ContextBlock
from axil_serve import Access
from axil_testing import Golden

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
from mutants import mutant
from tests.internals import internal
from worker import MEMORY, SHARE, fault_of

RECORD = internal("draft_record").RECORD
Lines = internal("memory_lines").Lines
read_skills = internal("memory_skills").read_skills
Table = internal("retrieval_table").Table
NotesFile = internal("devall_notes").NotesFile
OAuthConfig, Store = internal("mcp_oauth").OAuthConfig, internal("mcp_oauth").Store
InFolder, Paused = internal("mcp_waiting").InFolder, internal("mcp_waiting").Paused
read_advisories = internal("advisories").read
read_build = internal("build_settings").read
RunFiles = internal("served_files").RunFiles
FolderStore = internal("cache_store").FolderStore

FLOW = """version: 1.0.0
graph:
  id: g
  nodes:
    - {id: a, type: agent, config: {model: {type: scripted, default: ok}}}
  edges: []
  start: [a]
  end: [a]
"""
CASES = {
    "scorers": ["exact"],
    "cases": [
        {"name": "one", "inputs": "x", "expected": "ok"},
        {"name": "two", "inputs": "y", "expected": "no", "metadata": {"kind": "second"}},
    ],
}
ADVISORY = {
    "id": "PYSEC-1",
    "summary": "A fault.",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "axil-core"},
            "versions": ["0.0.1"],
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "0.0.2"}]}],
        }
    ],
}
MANIFEST = {
    "manifest": 1,
    "distribution": "damaged-plugin",
    "summary": "A plugin.",
    "spec": {},
    "components": [{"kind": "nodes", "name": "damaged", "summary": "A node.", "schema": {}}],
}
TOKENS = {"ada": {"sha256": "ab" * 32, "rights": ["look", "run"], "look": "own"}}
TRIGGERS = """[nightly]
workflow = "flow.yaml"
cron = "0 3 * * *"
input = {message = "for {time}"}
"""
BUILD = """[dist]
name = "helpdesk"
version = "1.0.0"
[workflows]
files = ["flow.yaml"]
"""
POLICY = """[plugins]
mode = "auto"
block = ["somebody"]
[plugins.pins]
axil = "0.1.0"
"""
SKILL = """---
name: ferns
description: Where ferns grow.
---
In the shade.
"""
RUN = ("--journal", "off", "--no-progress", "--input", "x")


WHOLE = (
    b"",
    b"null",
    b"[]",
    b"{}",
    b"3",
    b'"x"',
    b"[null]",
    b"1e999",
    b"9" * 5_000,
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"a":' * 100_000,
)
"""In place of a file."""


DEVALL = """version: 0.4.0
graph:
  id: team
  start: [writer]
  memory:
    - {name: notes, type: simple, config: {memory_path: notes.jsonl}}
  nodes:
    - id: writer
      type: agent
      config:
        provider: scripted
        name: m
        role: Write.
        memories: [{name: notes, top_k: 2}]
  edges: []
"""


class Kind(NamedTuple):
    """A kind of file: how it comes to be in a folder, and how it is read there."""

    file: str
    """Its path in the folder."""
    make: Callable[[Path], object]
    use: Callable[[Path], str]
    """Reads it, and returns what is wrong with how that ended; empty: nothing."""


def written(name: str, text: str | Any) -> Callable[[Path], object]:
    """Return what writes a file, as JSON if it is no text, beside a workflow."""

    def make(folder: Path) -> None:
        (folder / "flow.yaml").write_text(FLOW, "utf-8")
        made = folder / name
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8")

    return make


def ran(*before: str) -> Callable[[Path], object]:
    """Return what writes a file by a command, beside a workflow."""

    def make(folder: Path) -> None:
        written("cases.json", CASES)(folder)
        fault = fault_of(list(before))
        assert not fault, fault

    return make


def command(*arguments: str) -> Callable[[Path], str]:
    """Return the reading of a file by a command."""
    return lambda folder: fault_of(list(arguments))


def call(read: Callable[[Path], Any]) -> Callable[[Path], str]:
    """Return the reading of a file by a function."""

    def use(folder: Path) -> str:
        try:
            read(folder)
        except AxilError:
            return ""
        except BaseException:  # noqa: BLE001  # any of them is a finding
            return traceback.format_exc()
        return ""

    return use


def indexed(folder: Path) -> Table:
    return Table(str(folder / "index.db"))


def make_index(folder: Path) -> None:
    table = indexed(folder)
    blocks = [ContextBlock(text=f"ferns grow {n}", uri=f"a{n}", title="Ferns") for n in range(20)]
    table.put(blocks[3:])
    table.replace("whole", "d" * 64, blocks[:3])
    table.close()


def use_index(folder: Path) -> None:
    table = indexed(folder)
    try:
        table.search("ferns", 5, {})
        table.digests()
        len(table)
    finally:
        table.close()


def upload(folder: Path) -> str:
    files = RunFiles(folder)
    place = files._place("ada")
    return str((place / ("0" * 32) / "upload.json").relative_to(folder.resolve()))


def make_upload(folder: Path) -> None:
    async def chunks() -> Any:
        yield b"ferns"

    files = RunFiles(folder)
    made = asyncio.run(files.save("ada", "ferns.txt", "text/plain", chunks()))
    place = folder / upload(folder)
    place.parent.parent.joinpath(made.file_id).rename(place.parent)


async def logins(folder: Path) -> None:
    store = Store("https://a.example", OAuthConfig())
    store.path = folder / "login.json"
    await store.get_tokens()
    await store.get_client_info()


def index_of_a_site(folder: Path) -> None:
    registry = Registry(Policy(index=str(folder / "site.json")))
    try:
        registry.resolve("nodes", "unheard_of")
    except UnknownComponent as error:
        str(error)


PLUGIN = "damaged_plugin-1.0.dist-info"


def make_plugin(folder: Path) -> None:
    written("damaged_plugin/axil-plugin.json", MANIFEST)(folder)
    (folder / "damaged_plugin" / "__init__.py").write_text("class Damaged: ...\n", "utf-8")
    written(f"{PLUGIN}/METADATA", "Metadata-Version: 2.1\nName: damaged-plugin\nVersion: 1.0\n")(
        folder
    )
    points = "[axil.nodes]\ndamaged = damaged_plugin:Damaged\n"
    points += "[axil.plugin]\ndamaged-plugin = damaged_plugin\n"
    (folder / PLUGIN / "entry_points.txt").write_text(points, "utf-8")


def use_plugin(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        registry = Registry(Policy())
        registry.names("nodes")
        registry.plugins()
        registry.manifest("damaged-plugin")
        for component in registry.candidates("nodes"):
            if component.name == "damaged":
                registry.resolve("nodes", component.name)
        workflow_schema(registry)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("damaged_plugin", None)


def golden(folder: Path) -> Golden:
    return Golden(folder / "golden.json", load(str(folder / "flow.yaml")), "x")


def make_golden(folder: Path) -> None:
    written("flow.yaml", FLOW)(folder)
    golden(folder).check()


def use_golden(folder: Path) -> None:
    with suppress(AssertionError):  # it deviates
        golden(folder).check()


def noted(folder: Path) -> Any:
    notes = NotesFile(folder / "notes.jsonl")
    return notes._read()


def make_notes(folder: Path) -> None:
    asyncio.run(NotesFile(folder / "notes.jsonl").add({"text": "ferns", "at": 1.0}))


def policed(folder: Path) -> None:
    Policy.from_file(folder / "axil.toml")


def cached(folder: Path) -> None:
    FolderStore(folder / "cache").get("ab" * 32, 1e9)


def make_cache(folder: Path) -> None:
    FolderStore(folder / "cache").put("ab" * 32, json.dumps({"output": 1}))


JOURNAL = (
    "run",
    "flow.yaml",
    "--journal",
    "kept",
    "--no-progress",
    "--input",
    "x",
    "--run-id",
    "r",
)
KINDS: dict[str, Kind] = {
    "lock": Kind(
        "flow.yaml.lock", ran("lock", "flow.yaml"), command("lock", "--check", "flow.yaml")
    ),
    "locked": Kind(
        "flow.yaml.lock", ran("lock", "flow.yaml"), command("run", "flow.yaml", "--locked", *RUN)
    ),
    "recording": Kind(
        "told.jsonl",
        ran("run", "flow.yaml", "--record", "told.jsonl", *RUN),
        command("run", "flow.yaml", "--replay", "told.jsonl", *RUN),
    ),
    "record-on": Kind(
        "told.jsonl",
        ran("run", "flow.yaml", "--record", "told.jsonl", *RUN),
        command("run", "flow.yaml", "--record", "told.jsonl", *RUN),
    ),
    "script": Kind(
        "script.json",
        written("script.json", {"rules": [{"match": {"contains": "x"}, "replies": ["ok"]}]}),
        command("run", "flow.yaml", "--model-script", "script.json", *RUN),
    ),
    "answers": Kind(
        "answers.json",
        written("answers.json", ["yes", {"a": 1}]),
        command("run", "flow.yaml", "--answers", "answers.json", *RUN),
    ),
    "input": Kind(
        "input.json",
        written("input.json", {"message": "x"}),
        command("run", "flow.yaml", "--journal", "off", "--input-file", "input.json"),
    ),
    "journal": Kind(
        "kept/runs.db",
        ran(*JOURNAL),
        lambda folder: next(
            filter(
                None,
                map(
                    fault_of,
                    (
                        ["runs", "list", "--journal", "kept"],
                        ["runs", "show", "r", "--journal", "kept"],
                        ["runs", "show", "r", "--journal", "kept", "--steps"],
                        ["runs", "export", "r", "--journal", "kept"],
                        ["runs", "doctor", "--journal", "kept"],
                        ["runs", "diff", "r", "r", "--journal", "kept"],
                        [*JOURNAL[:-1], "s"],
                    ),
                ),
            ),
            "",
        ),
    ),
    "dataset-json": Kind(
        "cases.json", written("cases.json", CASES), call(lambda f: read_dataset(f / "cases.json"))
    ),
    "dataset-lines": Kind(
        "cases.jsonl",
        written("cases.jsonl", "".join(json.dumps(each) + "\n" for each in CASES["cases"])),
        call(lambda f: read_dataset(f / "cases.jsonl")),
    ),
    "dataset-csv": Kind(
        "cases.csv",
        written("cases.csv", "name,message,expected\none,x,ok\n"),
        call(lambda f: read_dataset(f / "cases.csv")),
    ),
    "report": Kind(
        "report.json",
        ran("eval", "run", "flow.yaml", "cases.json", "--out", "report.json"),
        command("eval", "compare", "report.json", "report.json"),
    ),
    "tries": Kind(
        "tries.yaml",
        written("tries.yaml", "- {node: a, key: instructions, values: [Be short.]}\n"),
        lambda folder: (
            written("cases.json", CASES)(folder)
            or fault_of(
                [
                    "tune",
                    "flow.yaml",
                    "cases.json",
                    "--budget",
                    "1",
                    "--tries",
                    "tries.yaml",
                    "--proposals",
                    "0",
                    "--journal",
                    "kept",
                ]
            )
        ),
    ),
    "draft": Kind(
        RECORD, lambda f: DraftRecord(text=FLOW).write(f), call(lambda f: DraftRecord.read(f))
    ),
    "rows-lines": Kind(
        "rows.jsonl",
        written("rows.jsonl", "".join(json.dumps({"message": f"x{n}"}) + "\n" for n in range(3))),
        command("batch", "flow.yaml", "rows.jsonl", "--journal", "kept"),
    ),
    "rows-csv": Kind(
        "rows.csv",
        written("rows.csv", "message,more\nx,1\ny,2\n"),
        command(
            "batch",
            "flow.yaml",
            "rows.csv",
            "--column",
            "message",
            "--json",
            "more",
            "--journal",
            "kept",
        ),
    ),
    "advisories": Kind(
        "osv.json", written("osv.json", ADVISORY), call(lambda f: read_advisories(f / "osv.json"))
    ),
    "manifest": Kind("damaged_plugin/axil-plugin.json", make_plugin, call(use_plugin)),
    "entry-points": Kind(f"{PLUGIN}/entry_points.txt", make_plugin, call(use_plugin)),
    "metadata": Kind(f"{PLUGIN}/METADATA", make_plugin, call(use_plugin)),
    "workflow": Kind("flow.yaml", written("flow.yaml", FLOW), command("check", "flow.yaml")),
    "devall": Kind("team.yaml", written("team.yaml", DEVALL), command("check", "team.yaml")),
    "site-index": Kind(
        "site.json",
        written("site.json", {"nodes:unheard_of": "some-plugin"}),
        call(index_of_a_site),
    ),
    "tokens": Kind(
        "tokens.json",
        written("tokens.json", TOKENS),
        call(lambda f: Access.from_file(f / "tokens.json")),
    ),
    "upload": Kind(
        upload(Path(tempfile.gettempdir())), make_upload, call(lambda f: RunFiles(f).uploads("ada"))
    ),
    "triggers": Kind(
        "axil.toml", written("axil.toml", TRIGGERS), call(lambda f: read_triggers(f / "axil.toml"))
    ),
    "build": Kind(
        "axil-build.toml",
        written("axil-build.toml", BUILD),
        call(lambda f: read_build([str(f / "axil-build.toml")])),
    ),
    "policy": Kind("axil.toml", written("axil.toml", POLICY), call(policed)),
    "notes": Kind("notes.jsonl", make_notes, call(noted)),
    "memory": Kind(
        "memory.jsonl",
        lambda f: Lines(str(f / "memory.jsonl")).append([{"op": "put", "key": "a", "value": 1}]),
        call(lambda f: Lines(str(f / "memory.jsonl")).read()),
    ),
    "skill": Kind(
        "ferns/SKILL.md", written("ferns/SKILL.md", SKILL), call(lambda f: read_skills(f))
    ),
    "index": Kind("index.db", make_index, call(use_index)),
    "waiting": Kind(
        "k.json",
        lambda f: (f / "k.json").write_text(
            json.dumps(asdict(Paused(tool="t", call="c", run_id="r")))
        ),
        call(lambda f: InFolder(f).look("k")),
    ),
    "login": Kind(
        "login.json",
        written(
            "login.json",
            {
                "tokens": {"access_token": "a", "token_type": "Bearer"},
                "client": {"client_id": "c", "redirect_uris": ["http://127.0.0.1:1/c"]},
            },
        ),
        call(lambda f: asyncio.run(logins(f))),
    ),
    "golden": Kind("golden.json", make_golden, call(use_golden)),
    "cache": Kind(f"cache/ab/{'ab' * 32}.json", make_cache, call(cached)),
    "attachments": Kind(
        "work/.axil/attachments.json",
        lambda f: (
            written("note.txt", "a note")(f),
            fault_of(["run", "flow.yaml", "--workspace", "work", "--attach", "note.txt", *RUN]),
        ),
        command("run", "flow.yaml", "--workspace", "work", "--attach", "flow.yaml", *RUN),
    ),
}


def damaged(data: bytes, seed: int, kind: str) -> bytes:
    """Return a file that a disk, or a person, has damaged; ``kind``: how its name ends."""
    chance = random.Random(seed)
    way = chance.random()
    if way < 0.3 and kind != ".db":
        lines = [data.decode()]
        if kind == ".jsonl":
            lines = lines[0].splitlines(keepends=True)
        at = chance.randrange(len(lines))
        is_json = kind in (".json", ".jsonl", ".lock")
        lines[at] = mutant(lines[at], seed, is_json=is_json).strip() + "\n"
        return "".join(lines).encode("utf-8", "surrogatepass")
    changed = bytearray(data)
    if way < 0.65:
        # the beginning of a database says where everything is
        most = 4096 if kind == ".db" and chance.random() < 0.7 else len(changed)
        for _ in range(chance.choice([1, 1, 2, 8, 64])):
            changed[chance.randrange(min(most, len(changed)))] ^= 1 << chance.randrange(8)
    elif way < 0.78:
        del changed[chance.randrange(len(changed) + 1) :]
    elif way < 0.88:
        at, many = chance.randrange(len(changed)), chance.choice([1, 16, 512, 4096])
        changed[at : at + many] = bytes([chance.choice([0, 255, 195])]) * many
    elif way < 0.94:
        deep = chance.choice([b"[", b'{"a":', b'[[{"a":']) * chance.choice([1_000, 100_000])
        value = data.find(b":") + 1 if chance.random() < 0.5 else 0
        changed[value:value] = deep
    else:
        return chance.choice(WHOLE)
    return bytes(changed)


def main_of_damaged(seed: int, count: int, name: str = "") -> None:
    """Damage files, and read them."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    logging.disable(logging.CRITICAL)
    kinds = {each: kind for each, kind in KINDS.items() if each.startswith(name)}
    with tempfile.TemporaryDirectory() as whole:
        for each, kind in kinds.items():
            made = Path(whole, each)
            made.mkdir()
            os.chdir(made)
            kind.make(made)
            assert (made / kind.file).is_file(), each
        names = list(kinds)
        many = range(seed, seed + count) if count else range(len(names) * 4)
        for number in many:
            each = names[number % len(names)]
            kind, work = kinds[each], Path(whole, "at work")
            sys.stderr.write(f"{each} {number}\n")
            used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
            resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SHARE, resource.RLIM_INFINITY))
            signal.alarm(120)  # what waits for ever uses no processor
            shutil.copytree(Path(whole, each), work)
            os.chdir(work)
            file, turn = work / kind.file, number // len(names)
            if count:
                file.write_bytes(damaged(file.read_bytes(), number, file.suffix))
            elif turn:
                file.write_bytes(WHOLE[-turn])
            if fault := kind.use(work):
                found = {"file": each, "number": number, "command": kind.file}
                sys.stdout.write(json.dumps({**found, "fault": fault[-1500:]}) + "\n")
            os.chdir(whole)
            shutil.rmtree(work)


if __name__ == "__main__":
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    sys.stdin = open(os.devnull)  # noqa: SIM115
    main_of_damaged(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
