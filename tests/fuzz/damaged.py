"""Files that axil keeps or is given, damaged: each is read, or refused in plain words.

``python damaged.py SEED COUNT [NAME]``: so many of them, from SEED on, of each kind in turn, or of
the kinds whose name begins with NAME. COUNT 0: each as it is, and with a few other contents. Each
finding is a line of JSON on standard output, as in ``worker``, and each file has a case's shares.
What counts as a finding: ``oracle``.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import importlib
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from axil import MISSING, AxilError
from axil.plugin import Policy, Registry, UnknownComponent, canonical_name
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
from oracle import SET, Ended, ended, fault_of, hide_secrets, leaked, left
from shares import begin, limit
from tests.internals import internal

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
ECHO = """version: 1.0.0
graph:
  id: g
  nodes:
    - {id: a, type: passthrough}
  edges: []
  start: [a]
  end: [a]
"""
ASKS = ECHO.replace("type: passthrough", "type: human, config: {description: Say it.}")
SECRET = """version: 1.0.0
vars: {LONG: LETTERS}
graph:
  id: g
  nodes:
    - {id: a, type: agent, config: {model: {type: scripted, default: "ok ${API_KEY}"}}}
    - {id: b, type: literal, config: {content: "${LONG}"}}
    - {id: c, type: passthrough}
  edges: [{from: a, to: b}, {from: b, to: c}]
  start: [a]
  end: [c]
""".replace("LETTERS", " ".join(str(n) for n in range(9_000)))
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
GIVEN_RUN = (*RUN, *SET)


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
        provider: openai
        name: m
        base_url: http://127.0.0.1:9/v1
        api_key: none
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


def written(name: str, text: str | Any, flow: str = FLOW) -> Callable[[Path], object]:
    """Return what writes a file, as JSON if it is no text, beside a workflow."""

    def make(folder: Path) -> None:
        (folder / "flow.yaml").write_text(flow, "utf-8")
        made = folder / name
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8")

    return make


def ran(*before: str, flow: str = FLOW) -> Callable[[Path], object]:
    """Return what writes a file by a command, beside a workflow."""

    def make(folder: Path) -> None:
        written("cases.json", CASES, flow)(folder)
        done = ended(before)
        assert not done.fault, done.fault
        assert done.code in (0, 1), done.err

    return make


def command(*arguments: str) -> Callable[[Path], str]:
    """Return the reading of a file by a command."""
    return lambda folder: fault_of(list(arguments))


def call(
    read: Callable[[Path], Any], meant: Callable[[Path], Any] | None = None
) -> Callable[[Path], str]:
    """Return the reading of a file by a function; ``meant``: what it ought to give, where it is not
    refused.
    """

    def use(folder: Path) -> str:
        try:
            found = read(folder)
        except AxilError as error:
            return leaked(str(error))
        except BaseException:  # noqa: BLE001  # any of them is a finding
            return traceback.format_exc()
        return "" if meant is None else differs(found, meant(folder))

    return use


def differs(found: Any, meant: Any) -> str:
    """Return what is wrong with what was read; empty: nothing."""
    return "" if found == meant else f"it is read as {found!r:.500}\nand is {meant!r:.500}"


def judged(judge: Callable[[Path, Ended], str], *arguments: str) -> Callable[[Path], str]:
    """Return the reading of a file by a command, and what is wrong with what a command gives that
    refuses nothing.
    """

    def use(folder: Path) -> str:
        done = ended(arguments)
        return done.fault or ("" if done.code else judge(folder, done))

    return use


def gives(*texts: str) -> Callable[[Path, Ended], str]:
    """Return a judge of commands that may give these texts only."""
    return lambda folder, done: "" if done.out.strip() in texts else f"it gives {done.out}"


def parsed(text: str) -> Any:
    """Return what a text is as JSON; the text, where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def as_json(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text("utf-8"))


def as_toml(folder: Path, name: str) -> Any:
    return tomllib.loads((folder / name).read_text("utf-8"))


# ------------------------------------------------------------------------------------ what is meant

DECIDING = ("distributions", "files", "models", "outside")
_whole: dict[str, Any] = {}
"""The files that were written, by kind."""


def as_locked(folder: Path, done: Ended) -> str:
    """Return what a lock that passes says other than the one that was written."""
    found = as_json(folder, "flow.yaml.lock")
    whole = as_json(folder.parent / "lock", "flow.yaml.lock")
    if not {*whole["wants"]} <= {*found["wants"]}:
        return differs(found["wants"], whole["wants"])
    return differs({key: found[key] for key in DECIDING}, {key: whole[key] for key in DECIDING})


def exported(run_id: str, place: str = "kept") -> tuple[Ended, list[str]]:
    done = ended(["runs", "export", run_id, "--journal", place])
    return done, done.out.splitlines()


def use_journal(folder: Path) -> str:
    """Return what is wrong with what is read in a damaged journal: it is the beginning of what was
    written, and a run that goes on gives what it gave.
    """
    whole = _whole.setdefault("journal", exported("r", "../journal/kept")[1])
    assert len(whole) > 5, whole
    done, lines = exported("r")
    if done.fault or lines != whole[: len(lines)]:
        return done.fault or differs(lines, whole[: len(lines)])
    output = json.loads(whole[-1])["data"]["output"]
    shows = ended(["runs", "show", "r", "--journal", "kept", "--format", "json"])
    if not shows.fault and not shows.code and shows.data["outline"]["output"] not in (None, output):
        return f"it shows the output {shows.data['outline']['output']!r:.300}"
    for arguments in (["resume", "r", "--journal", "kept", "--format", "json"],):
        again = ended(["runs", *arguments])
        if not again.fault and not again.code and again.data["output"] != output:
            return f"it goes on to {again.data['output']!r:.300}"
        if again.fault:
            return again.fault
    others = (
        ["runs", "list", "--journal", "kept"],
        ["runs", "show", "r", "--journal", "kept", "--steps"],
        ["runs", "doctor", "--journal", "kept"],
        ["runs", "diff", "r", "r", "--journal", "kept"],
        [*JOURNAL[:-1], "s"],
    )
    return shows.fault or next(filter(None, map(fault_of, others)), "")


def cases(rows: Any) -> list[Any]:
    """Return what cases of a dataset are asked, and expected to give."""
    found = rows["cases"] if isinstance(rows, dict) else rows
    return [(each["inputs"], each.get("expected", MISSING)) for each in found]


def cases_read(name: str) -> Callable[[Path], Any]:
    return lambda folder: [
        (each.inputs, each.expected) for each in read_dataset(folder / name).cases
    ]


def lines_of(folder: Path, name: str) -> list[Any]:
    text = (folder / name).read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def rows_of(folder: Path, name: str) -> list[Any]:
    with (folder / name).open(encoding="utf-8-sig", newline="") as file:
        return [row for row in csv.DictReader(file) if any(row.values())]


def echoed(name: str, read: Callable[[Path, str], list[Any]]) -> Callable[[Path, Ended], str]:
    """Return a judge of batches of a workflow that gives what it is given."""

    def judge(folder: Path, done: Ended) -> str:
        results, rows = read(folder, name.replace(".", ".results.")), read(folder, name)
        if not all(isinstance(row.get("message"), str) for row in rows):
            return ""  # another column is the message
        return differs([row["output"] for row in results], [row["message"] for row in rows])

    return judge


def answered(folder: Path, done: Ended) -> str:
    """Return what is wrong with an answer, which is the output."""
    text = (folder / "answers.json").read_text("utf-8")
    found = parsed(text)
    first = found[0] if isinstance(found, list) and found else text.split("\n")[0].strip()
    if first == {}:  # fields, and none: that is told
        return "" if "nothing reached its exit" in done.err else f"it says {done.err!r}"
    meant = first if isinstance(first, str) else "" if first is None else json.dumps(first)
    return "" if done.out.strip() == meant.strip() else f"it says {done.out!r}, not {meant!r}"


def said(folder: Path, done: Ended) -> str:
    """Return what is wrong with a reply, which is one that the script holds, or the usual one."""
    rules = [as_json(folder, "script.json"), "OK"]
    return "" if json.dumps(done.out.strip()) in json.dumps(rules) else f"it says {done.out}"


def as_input(folder: Path, done: Ended) -> str:
    """Return what is wrong with an output, which is the input."""
    text = (folder / "input.json").read_text("utf-8")
    found = parsed(text)
    meant = found.get("message") if isinstance(found, dict) else found
    if not isinstance(meant, str):
        return ""
    return "" if done.out.strip() in (meant.strip(), text.strip()) else f"it says {done.out!r}"


def rights(folder: Path) -> Any:
    """Return the callers of a file of tokens, as JSON says them."""
    usual = ["look", "prompts", "run", "answer"]

    def digest(each: Any) -> str:
        if "sha256" in each:
            return each["sha256"].lower()
        return hashlib.sha256(os.environ[each["env"]].encode()).hexdigest()

    return {
        name: (set(each.get("rights", usual)), each.get("look") == "all", digest(each))
        for name, each in as_json(folder, "tokens.json").items()
    }


def rights_read(folder: Path) -> Any:
    access = Access.from_file(folder / "tokens.json")
    return {
        caller.name: (set(caller.rights), caller.sees_all, digest.hex())
        for digest, caller in access._callers
    }


def policy_read(folder: Path) -> Any:
    policy = Policy.from_file(folder / "axil.toml")
    return policy.mode, sorted(policy.block), sorted(policy.allow), policy.only


def policy_meant(folder: Path) -> Any:
    table = as_toml(folder, "axil.toml").get("plugins", {})
    block, allow = (
        sorted({canonical(n) for n in table.get(key, [])}) for key in ("block", "allow")
    )
    only = table.get("only")
    return table.get("mode", "auto"), block, allow, only and frozenset(map(canonical, only))


def canonical(name: str) -> str:
    kind, colon, rest = name.partition(":")
    return name if colon and rest else canonical_name(kind) if not colon else name


def triggers_read(folder: Path) -> Any:
    found = read_triggers(folder / "axil.toml")
    return {name: (each.workflow, each.cron, each.input) for name, each in found.items()}


def triggers_meant(folder: Path) -> Any:
    return {
        name: (each["workflow"], each.get("cron", ""), each.get("input"))
        for name, each in as_toml(folder, "axil.toml").items()
    }


def memory_meant(folder: Path) -> Any:
    """Return the lines of a memory that are mappings; others are passed over."""
    found: list[Any] = []
    data = (folder / "memory.jsonl").read_bytes()
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        with suppress(ValueError, RecursionError):
            if isinstance(record := json.loads(line), dict):
                found.append(record)
    return found


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
    usual = {(each.kind, each.name, each.distribution) for each in Registry(Policy()).candidates()}
    _whole["components"] = usual, {each[2] for each in usual}
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
        found = {(each.kind, each.name, each.distribution) for each in registry.candidates()}
        others = {each for each in found if each[2] in _whole["components"][1]}
        assert others == _whole["components"][0], others ^ _whole["components"][0]
        assert registry.package("axil-agent") == "axil_agent"
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


OUTCOME = json.dumps({"output": 1})


def use_cache(folder: Path) -> None:
    assert FolderStore(folder / "cache").get("ab" * 32, 1e9) in (OUTCOME, None)


def make_cache(folder: Path) -> None:
    FolderStore(folder / "cache").put("ab" * 32, OUTCOME)


KEPT = ("--journal", "kept")
ANSWERS = FLOW.replace("ok", '"ok ${API_KEY}"')
JOURNAL = (
    "run", "flow.yaml", "--journal", "kept", "--no-progress", "--input", "x", *SET, "--run-id", "r",
)  # fmt: skip
KINDS: dict[str, Kind] = {
    "lock": Kind(
        "flow.yaml.lock",
        ran("lock", "flow.yaml"),
        judged(as_locked, "lock", "--check", "flow.yaml"),
    ),
    "locked": Kind(
        "flow.yaml.lock",
        ran("lock", "flow.yaml"),
        judged(as_locked, "run", "flow.yaml", "--locked", *RUN),
    ),
    "recording": Kind(
        "told.jsonl",
        ran("run", "flow.yaml", "--record", "told.jsonl", *GIVEN_RUN, flow=ANSWERS),
        judged(gives("ok ${API_KEY}"), "run", "flow.yaml", "--replay", "told.jsonl", *GIVEN_RUN),
    ),
    "record-on": Kind(
        "told.jsonl",
        ran("run", "flow.yaml", "--record", "told.jsonl", *RUN),
        command("run", "flow.yaml", "--record", "told.jsonl", *RUN),
    ),
    "script": Kind(
        "script.json",
        written("script.json", {"rules": [{"match": {"user_contains": "x"}, "replies": ["said"]}]}),
        judged(said, "run", "flow.yaml", "--model-script", "script.json", *RUN),
    ),
    "answers": Kind(
        "answers.json",
        written("answers.json", ["yes", {"a": 1}], ASKS),
        judged(answered, "run", "flow.yaml", "--answers", "answers.json", *RUN),
    ),
    "input": Kind(
        "input.json",
        written("input.json", {"message": "x"}, ECHO),
        judged(as_input, "run", "flow.yaml", "--journal", "off", "--input-file", "input.json"),
    ),
    "journal": Kind(
        "kept/runs.db",
        ran(*JOURNAL, flow=SECRET),
        use_journal,
    ),
    "dataset-json": Kind(
        "cases.json",
        written("cases.json", CASES),
        call(cases_read("cases.json"), lambda f: cases(as_json(f, "cases.json"))),
    ),
    "dataset-lines": Kind(
        "cases.jsonl",
        written("cases.jsonl", "".join(json.dumps(each) + "\n" for each in CASES["cases"])),
        call(cases_read("cases.jsonl"), lambda f: cases(lines_of(f, "cases.jsonl"))),
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
        RECORD,
        lambda f: DraftRecord(text=FLOW).write(f),
        call(lambda f: DraftRecord.read(f).text, lambda f: as_json(f, RECORD).get("text", "")),
    ),
    "rows-lines": Kind(
        "rows.jsonl",
        written(
            "rows.jsonl", "".join(json.dumps({"message": f"x{n}"}) + "\n" for n in range(3)), ECHO
        ),
        judged(echoed("rows.jsonl", lines_of), "batch", "flow.yaml", "rows.jsonl", *KEPT),
    ),
    "rows-csv": Kind(
        "rows.csv",
        written("rows.csv", "message,more\nx,1\ny,2\n", ECHO),
        judged(
            echoed("rows.csv", rows_of),
            *("batch", "flow.yaml", "rows.csv", "--column", "message", "--json", "more", *KEPT),
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
        call(rights_read, rights),
    ),
    "upload": Kind(
        upload(Path(tempfile.gettempdir())), make_upload, call(lambda f: RunFiles(f).uploads("ada"))
    ),
    "triggers": Kind(
        "axil.toml", written("axil.toml", TRIGGERS), call(triggers_read, triggers_meant)
    ),
    "build": Kind(
        "axil-build.toml",
        written("axil-build.toml", BUILD),
        call(lambda f: read_build([str(f / "axil-build.toml")])),
    ),
    "policy": Kind("axil.toml", written("axil.toml", POLICY), call(policy_read, policy_meant)),
    "notes": Kind("notes.jsonl", make_notes, call(noted)),
    "memory": Kind(
        "memory.jsonl",
        lambda f: Lines(str(f / "memory.jsonl")).append([{"op": "put", "key": "a", "value": 1}]),
        call(lambda f: Lines(str(f / "memory.jsonl")).read()[1], memory_meant),
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
    "cache": Kind(f"cache/ab/{'ab' * 32}.json", make_cache, call(use_cache)),
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
    limit()
    hide_secrets()
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
            begin(each, number)
            shutil.copytree(Path(whole, each), work)
            os.chdir(work)
            file, turn = work / kind.file, number // len(names)
            if count:
                file.write_bytes(damaged(file.read_bytes(), number, file.suffix))
            elif turn:
                file.write_bytes(WHOLE[-turn])
            if fault := kind.use(work) or left(work):
                found = {"file": each, "number": number, "command": kind.file}
                sys.stdout.write(json.dumps({**found, "fault": fault[-1500:]}) + "\n")
            os.chdir(whole)
            shutil.rmtree(work)


if __name__ == "__main__":
    sys.stdin = open(os.devnull)  # noqa: SIM115
    main_of_damaged(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
