"""Laws of a run's folder, its attachments and artifacts, and of functions brought along."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from axil import Context
from axil.plugin import default_registry
from axil_cli.folder import RunFolder, remove_folder
from axil_files import with_functions


class Maker:
    """Writes a given text, if there is one, into the run's folder."""

    def run(self, messages: list[Any], ctx: Context) -> str:
        said = messages[-1]["content"]
        for line in said.splitlines():
            name, _, text = line.partition("=")
            path = ctx.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return f"{sorted(what for what in ('code', 'network') if ctx.allows(what))}"


@pytest.fixture(autouse=True)
def maker(registry, tmp_path, monkeypatch):
    registry.register("nodes", "maker", Maker)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def make(flow):
    return flow(["A maker"])


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_run_that_makes_no_files_leaves_nothing_behind(axil, make):
    done = axil("run", make)
    assert (done.code, done.out) == (0, "[]\n")
    assert not Path("axil-runs").exists()
    assert "Files" not in done.err


def test_a_run_that_makes_files_has_a_folder_of_its_own_and_says_so(axil, make):
    done = axil("run", make, "--input", "a.txt=hello\nb/c.md=x")
    (folder,) = Path("axil-runs").iterdir()
    assert (folder / "a.txt").read_text() == "hello"
    assert done.err == (
        f"Files in axil-runs/{folder.name}:\n    a.txt  5 bytes, made\n    b/c.md  1 bytes, made\n"
    )
    axil("run", make, "--input", "a.txt=again")
    assert len(list(Path("axil-runs").iterdir())) == 2


def test_each_run_of_a_worker_has_a_folder_of_its_own_also_where_it_is_answered(
    axil, flow, monkeypatch
):
    monkeypatch.setenv("AXIL_JOURNAL", "j")
    file = flow(["A maker", "B askt"], [{"from": "A", "to": "B"}], end=["B"])
    for run_id in ("r", ".."):
        given = ("--input", f"a.txt={run_id}", "--run-id", run_id)
        assert axil("submit", file, *given).code == 0
    assert axil("worker", file, "--drain").code == 0
    made = {path.as_posix(): path.read_text() for path in Path("axil-runs").glob("*/*")}
    assert made == {"axil-runs/r/a.txt": "r", "axil-runs/%2E%2E/a.txt": ".."}
    answered = axil("runs", "answer", "r", "yes", "--format", "json").data
    assert answered["workspace"] == os.path.realpath("axil-runs/r")


@pytest.mark.parametrize("run_id", ["../../outside", "/abs", "a/b", "..", "a b", "."])
def test_a_run_has_a_folder_of_its_own_whatever_its_id_is(axil, make, monkeypatch, run_id):
    monkeypatch.setenv("AXIL_JOURNAL", "j")
    assert axil("run", make, "--input", "a.txt=x", "--run-id", run_id).code == 0
    (folder,) = Path("axil-runs").iterdir()
    assert [each.name for each in folder.iterdir()] == ["a.txt"]
    pruned = axil("runs", "prune", "--older-than", "-1", "--files", "axil-runs")
    assert pruned.code == 0
    assert not folder.exists()


def test_a_named_folder_is_used_again_and_changes_are_reported(axil, make):
    axil("run", make, "--workspace", "w", "--input", "a=1\nb=1\n.hidden=1\n__pycache__/x=1")
    reported = axil(
        "run", make, "--workspace", "w", "--input", "a=1\nc=22", "--format", "json"
    ).data
    assert reported["workspace"] == os.path.realpath("w")
    media_type = "application/octet-stream"
    assert reported["artifacts"] == [
        {
            "name": "a",
            "size": 1,
            "media_type": media_type,
            "sha256": digest("1"),
            "change": "changed",
        },
        {
            "name": "c",
            "size": 2,
            "media_type": media_type,
            "sha256": digest("22"),
            "change": "made",
        },
    ]
    assert (reported["attachments"], reported["artifacts_left_out"]) == ([], 0)


def test_a_run_begins_when_the_times_of_files_have_moved_on(monkeypatch):
    """Many file systems keep times in ticks: what is changed in the tick in which it was looked at
    would look as before.
    """
    file = Path("w/a")
    file.parent.mkdir()
    file.write_text("1")
    changed, slept = file.stat().st_ctime_ns, list[float]()
    for now in (5_000_000, 20_000_000, -5_000_000):
        monkeypatch.setattr(
            "axil_cli.folder.time",
            SimpleNamespace(time_ns=lambda now=now: changed + now, sleep=slept.append),
        )
        with RunFolder("w", "r"):
            pass
    assert slept == [0.015]


def test_a_folder_that_is_a_file_cannot_be_used(axil, make):
    Path("w").write_text("")
    done = axil("run", make, "--workspace", "w")
    assert done.code == 2
    assert "AX700 --workspace: w is not a folder." in done.err


def test_attached_files_are_copied_and_recorded(axil, make, tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n")
    (tmp_path / "more.json").write_text("{}")
    reported = axil("run", make, "--attach", "data.csv", "more.json", "--format", "json").data
    assert reported["attachments"] == [
        {
            "name": "attachments/data.csv",
            "size": 4,
            "media_type": "text/csv",
            "sha256": digest("a,b\n"),
        },
        {
            "name": "attachments/more.json",
            "size": 2,
            "media_type": "application/json",
            "sha256": digest("{}"),
        },
    ]
    assert reported["artifacts"] == []
    folder = Path(reported["workspace"])
    assert (folder / "attachments/data.csv").read_text() == "a,b\n"
    assert json.loads((folder / ".axil/attachments.json").read_text()) == reported["attachments"]


def test_attachments_are_added_to_those_that_are_there_and_replace_none(axil, make, tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    axil("run", make, "--workspace", "w", "--attach", "a")
    assert axil("run", make, "--workspace", "w", "--attach", "a", "--attach", "b").code == 0
    assert [each["name"] for each in json.loads(Path("w/.axil/attachments.json").read_text())] == [
        "attachments/a",
        "attachments/b",
    ]
    (tmp_path / "a").write_text("changed")
    done = axil("run", make, "--workspace", "w", "--attach", "a")
    assert done.code == 2
    assert "w has another file called attachments/a." in done.err
    assert Path("w/attachments/a").read_text() == "1"
    assert sorted(os.listdir("w/attachments")) == ["a", "b"]


@pytest.mark.parametrize(
    ("attached", "fault"),
    [("none", "No such file"), (".", "is no file"), ("x/a", "have the same name")],
)
def test_what_cannot_be_attached_is_reported_and_nothing_runs(
    axil, make, tmp_path, attached, fault
):
    (tmp_path / "x").mkdir()
    (tmp_path / "x/a").write_text("1")
    (tmp_path / "a").write_text("1")
    done = axil("run", make, "--attach", "a", attached, "--input", "made=1")
    assert done.code == 2
    assert "AX700 --attach" in done.err
    assert fault in done.err
    assert not list(Path().rglob("made"))


def test_artifacts_do_not_lead_out_of_the_folder(axil, make, tmp_path):
    (tmp_path / "secret").write_text("canary")
    (tmp_path / "w").mkdir()
    os.symlink("../secret", tmp_path / "w/link")
    os.symlink("..", tmp_path / "w/up")
    reported = axil("run", make, "--workspace", "w", "--input", "a=1", "--format", "json").data
    assert [each["name"] for each in reported["artifacts"]] == ["a"]


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ([], "[]"),
        (["--allow-code"], "['code']"),
        (["--allow", "code"], "['code']"),
        (["--allow", "network", "--allow", "code"], "['code', 'network']"),
    ],
)
def test_a_run_may_do_what_it_is_allowed_to(axil, make, options, allowed):
    assert axil("run", make, *options).out == f"{allowed}\n"


def test_what_cannot_be_allowed_is_reported(axil, make):
    done = axil("run", make, "--allow", "everything")
    assert done.code == 2
    assert '"everything" is not a permission. Available: code, ' in done.err


# ---------------------------------------------------------------------- functions


@pytest.fixture
def functions(tmp_path):
    def write(**files: str) -> str:
        for name, text in files.items():
            path = tmp_path / "functions" / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return "functions"

    return write


def test_functions_become_conditions_processors_and_tools_of_this_run(
    axil, flow, functions, registry
):
    folder = functions(
        conditions="def is_short(text):\n    return len(text) < 9\n",
        edge_processor__loud="from .._shared import mark\ndef louder(text):\n    return "
        "text.upper() + mark()\n",
        _shared="def mark():\n    return '!'\n",
        search="import json\ndef look(q: str) -> str:\n    '''Look.'''\n    return "
        "json.dumps(q)\ndef _own(): ...\n",
    )
    named = {"type": "by_name", "config": {"name": "louder"}}
    registry.register("processors", "by_name", _NamedProcessor)
    file = flow(
        ["A maker", "B echo"],
        [{"from": "A", "to": "B", "condition": "is_short", "process": named}],
        end=["B"],
    )
    assert (
        axil("run", file, "--functions", folder, "--allow", "code", "--allow", "network").code == 0
    )
    assert axil("run", file, "--functions", folder, "--allow", "code").out == "['CODE']!\n"
    assert axil("check", file, "--functions", folder, "--allow", "code").code == 0
    assert axil("show", file, "--functions", folder, "--allow", "code").code == 0
    assert axil("check", file).code == 2
    known = with_functions(default_registry(), folder)
    assert known.resolve("tools", "look")("x") == '"x"'
    assert "look" not in registry.names("tools")
    assert "_own" not in known.names("tools")


class _NamedProcessor:
    """A processor that its config names."""

    def __init__(self, name: str) -> None:
        self.found = default_registry().resolve("processors", name)

    def __call__(self, seen: Any) -> Any:
        return self.found(seen.text)


def test_functions_are_code_and_code_has_to_be_allowed(axil, make, functions, tmp_path):
    folder = functions(spy="open('loaded', 'w').close()")
    done = axil("run", make, "--functions", folder)
    assert done.code == 2
    assert (
        "AX700 --functions: functions are code, which this run does not allow. Add --allow code"
        in done.err
    )
    assert not (tmp_path / "loaded").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\ndef f(:\n    pass\n", "functions/a.py:2: the file failed to load (SyntaxError: "),
        (
            "x = 1\n\nx / 0\n",
            "functions/a.py:3: the file failed to load (ZeroDivisionError: division by zero)",
        ),
        (
            "import no_such_module\n",
            "functions/a.py:1: the file failed to load (ModuleNotFoundError: No module named "
            "'no_such_module')",
        ),
        ("raise SystemExit(3)\n", "functions/a.py:1: the file failed to load (SystemExit: 3)"),
    ],
)
def test_a_file_that_fails_is_reported_with_its_line(axil, make, functions, text, said):
    done = axil("run", make, "--functions", functions(a=text), "--allow", "code")
    assert done.code == 2
    assert f"AX884 {said}" in done.err


def test_names_that_collide_are_errors(axil, make, functions):
    folder = functions(a="\ndef find(): ...\n", b="def find(): ...\n")
    done = axil("run", make, "--functions", folder, "--allow", "code")
    assert (
        'AX884 functions/b.py:1: "find" is defined in functions/a.py:2 already. Rename one.'
        in done.err
    )


def test_what_a_file_offers_it_may_say_itself(functions):
    folder = functions(
        a="__all__ = ['Box']\nclass Box:\n    def tools(self): ...\ndef helper(): ...\n"
    )
    assert set(with_functions(default_registry(), folder).names("tools")) - set(
        default_registry().names("tools")
    ) == {"Box"}


def test_each_run_loads_its_functions_anew(functions):
    assert (
        with_functions(default_registry(), functions(a="def f(): return 1")).resolve("tools", "f")()
        == 1
    )
    os.utime("functions/a.py", (1, 1))
    assert (
        with_functions(default_registry(), functions(a="def f(): return 22")).resolve(
            "tools", "f"
        )()
        == 22
    )


def test_a_folder_of_functions_has_to_be_one(axil, make):
    assert (
        "AX700 functions: none is not a folder."
        in axil("run", make, "--functions", "none", "--allow", "code").err
    )


# ---------------------------------------------------------------------- going on


class Doubter:
    """Asks, and then writes the answer into the run's folder."""

    async def run(self, ctx: Context) -> str:
        answer = await ctx.ask("well?")
        ctx.workspace.mkdir(parents=True, exist_ok=True)
        (ctx.workspace / "answer.txt").write_text(answer)
        return f"{answer} {ctx.allows('network')}"


def test_a_run_goes_on_in_its_folder_with_its_functions(axil, flow, functions, registry, tmp_path):
    pytest.importorskip("axil_sqlite", reason="runs are kept by a plugin")
    registry.register("nodes", "doubter", Doubter)
    folder = functions(conditions="def is_sure(text):\n    return 'sure' in text\n")
    file = flow(
        ["A doubter", "B echo"], [{"from": "A", "to": "B", "condition": "is_sure"}], end=["B"]
    )
    (tmp_path / "in.txt").write_text("given")
    paused = axil(
        "run",
        file,
        "--attach",
        "in.txt",
        "--functions",
        folder,
        "--allow",
        "code",
        "--run-id",
        "r",
        "--journal",
        "j",
        "--format",
        "json",
    )
    assert paused.code == 3
    done = axil(
        "runs",
        "answer",
        "r",
        "sure",
        "--journal",
        "j",
        "--allow",
        "code",
        "--allow",
        "network",
        "--format",
        "json",
    )
    assert done.code == 0, done.err
    assert done.data["output"] == "sure True"
    assert done.data["workspace"] == paused.data["workspace"] == os.path.realpath("axil-runs/r")
    assert [each["name"] for each in done.data["artifacts"]] == ["answer.txt"]
    # functions are code, and their leave is kept while they are the same
    assert axil("runs", "show", "r", "--at", "2", "--journal", "j").code == 0
    assert axil("runs", "show", "r", "--at", "2", "--journal", "j", "--allow", "code").code == 0


def test_a_file_that_cannot_be_read_in_the_end_takes_nothing_from_the_run(monkeypatch):
    """It may be on a broken disk, or something else may be in its place by then."""
    Path("w").mkdir()
    with RunFolder("w", "r") as folder:
        for name in ("broken", "good", "replaced"):
            Path("w", name).write_text(name)
        is_seen, digested = RunFolder._seen, hashlib.file_digest

        def seen(self: RunFolder) -> Any:
            for name, found in is_seen(self):
                if name == "replaced":
                    Path("w", name).unlink()
                    Path("w", name).mkdir()
                yield name, found

        def reads(file: Any, kind: str) -> Any:
            if file.read(1) == b"b":
                raise OSError(errno.EIO, "Input/output error")
            file.seek(0)
            return digested(file, kind)

        monkeypatch.setattr(RunFolder, "_seen", seen)
        monkeypatch.setattr(hashlib, "file_digest", reads)
    assert [each.name for each in folder.artifacts] == ["good"]


def test_two_that_attach_at_once_are_both_admitted_and_a_full_disk_is_reported(
    axil, make, tmp_path, monkeypatch
):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    replace = os.replace

    def meanwhile(source: Any, target: Any, **places: Any) -> None:
        if Path(target).name == "attachments.json":
            monkeypatch.setattr(os, "replace", replace)
            RunFolder("w", "other").attach(["b"])
        replace(source, target, **places)

    monkeypatch.setattr(os, "replace", meanwhile)
    RunFolder("w", "r").attach(["a"])
    assert {path.name for path in Path("w/attachments").iterdir()} == {"a", "b"}

    def full(source: Any, target: Any, **places: Any) -> None:
        if Path(target).name == "attachments.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target, **places)

    monkeypatch.setattr(os, "replace", full)
    done = axil("run", make, "--workspace", "w", "--attach", "a")
    assert done.code == 2
    assert "No space left on device" in done.err
    assert [path.name for path in Path("w/.axil").iterdir()] == ["attachments.json"]


@pytest.mark.parametrize("link", ["attachments", ".axil"])
def test_nothing_is_attached_by_a_link_that_an_earlier_run_left(axil, make, tmp_path, link):
    elsewhere, workspace = tmp_path / "elsewhere", tmp_path / "w"
    elsewhere.mkdir()
    workspace.mkdir()
    (workspace / link).symlink_to(elsewhere)
    (tmp_path / "a").write_text("1")
    done = axil("run", make, "--workspace", str(workspace), "--attach", str(tmp_path / "a"))
    assert done.code == 2
    assert "AX700" in done.err
    assert list(elsewhere.iterdir()) == []


def test_runs_are_looked_for_in_a_folder_that_is_there(axil, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = axil("runs", "list", "--journal", "kpet")
    assert done.code == 2
    assert done.err == (
        'error: AX700 --journal: there is no folder "kpet". Name one with runs in it.\n'
    )
    assert not (tmp_path / "kpet").exists()


# ---------------------------------------------------------------------------- folders of runs


@pytest.mark.parametrize("run_id", ["", ".", "..", "../outside", "linked"])
def test_only_the_folder_of_a_run_is_removed(tmp_path, run_id):
    outside, root = tmp_path / "outside", tmp_path / "runs"
    for folder in (outside, root / "r"):
        folder.mkdir(parents=True)
        (folder / "kept").touch()
    (root / "linked").symlink_to(outside)
    remove_folder(str(root), run_id)
    assert (outside / "kept").exists()
    assert (root / "r" / "kept").exists()
    remove_folder(str(root), "r")
    assert not (root / "r").exists()


@pytest.mark.parametrize("command", ["show", "cancel"])
def test_a_run_that_is_forgotten_while_a_command_looks_is_unknown(axil, flow, monkeypatch, command):
    sqlite = pytest.importorskip("axil_sqlite", reason="runs are kept by axil-sqlite")
    file = flow([{"id": "a", "type": "passthrough"}])
    assert axil("run", file, "--journal", "j", "--run-id", "r", "--input", "x").code == 0
    infos, asked = sqlite.SqliteJournal.infos, list[object]()

    def once(journal: Any, run_ids: list[str]) -> object:
        asked.append(run_ids)
        return infos(journal, run_ids) if len(asked) == 1 else []

    monkeypatch.setattr(sqlite.SqliteJournal, "infos", once)
    done = axil("runs", command, "r", "--journal", "j")
    assert done.code == 2
    assert 'AX503 the journal knows no run "r"' in done.err
