"""A build holds what its workflows need and nothing else, the same bytes every time, and it
runs.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from axil import ConfigError
from axil.plugin import Policy, Registry, use_registry
from axil_cli.main import main
from axil_files import with_functions
from axil_plugins.builds import command, outputs, wheels
from axil_plugins.builds.command import build
from axil_plugins.builds.plan import plan
from axil_plugins.builds.settings import Settings, read
from axil_testing.members import command_runner

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
TWO = {
    "graph": {
        "nodes": [
            {"id": "a", "type": "literal", "config": {"content": "hello"}},
            {"id": "b", "type": "passthrough"},
        ],
        "edges": [{"from": "a", "to": "b"}],
        "start": ["a"],
        "end": ["b"],
    }
}
AGENT = {
    "graph": {
        "nodes": [
            {
                "id": "ask",
                "type": "agent",
                "config": {
                    "model": {"type": "scripted"},
                    "prompt_template": "{message}",
                    "output": {"n": "a"},
                    "max_repairs": 0,
                },
            },
            {
                "id": "inner",
                "type": "subgraph",
                "config": {"type": "file", "config": {"path": "parts/inner.json"}},
            },
        ],
        "edges": [{"from": "ask", "to": "inner"}],
        "start": ["ask"],
        "end": ["inner"],
    }
}


def write(folder: Path, name: str, data: Any) -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(file)


@pytest.fixture
def axil(capsys, monkeypatch, tmp_path):
    """``axil("build", "flow.json")``: the exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def afresh(arguments: list[str]) -> int:
        with use_registry(Registry(Policy())):
            return main(arguments)

    return command_runner(afresh, capsys)


def digests(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


def test_a_build_ships_what_its_workflow_reads(tmp_path):
    ask = {**AGENT["graph"]["nodes"][0]}
    ask["config"] = {
        "model": {"type": "scripted"},
        "retrievers": [{"type": "keyword", "paths": ["clauses"]}],
    }
    graph = {"nodes": [ask], "start": ["ask"], "end": ["ask"]}
    flow = write(tmp_path, "flow.json", {"graph": graph})
    for name in ("clauses/notice.md", "clauses/more/terms.md", "clauses/.hidden", "other.md"):
        write(tmp_path, name, "30 days")
    made = plan(read([flow]), Registry(Policy()))
    shipped = sorted(made.inside(each) for each in made.files)
    assert shipped == ["clauses/more/terms.md", "clauses/notice.md", "flow.json"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A build of two workflows, the smaller one verified on its own as well."""
    folder = tmp_path_factory.mktemp("built")
    write(folder, "flows/agent.json", AGENT)
    write(folder, "flows/parts/inner.json", TWO)
    write(
        folder,
        "axil-build.toml",
        '[dist]\nname = "acme-flow"\nversion = "2.0.1"\n[workflows]\nfiles = ["flows/*.json"]\n'
        '[limits]\nmax_mb = 35\ndeny = ["torch", "openai"]\n',
    )
    settings = read([str(folder / "axil-build.toml")])
    result = build(settings, Registry(Policy()), folder / "out")
    return folder, result


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    settings = read([write(folder, "two.json", TWO)])
    return folder, build(settings, Registry(Policy()), folder / "out")


def test_a_workflow_of_two_node_types_is_small(small):
    _, result = small
    # axil-cli brings axil-files, which brings pyyaml, axil-models for what runs used, and
    # axil-journals for `axil runs`; axil-control brings axil-process, and regex for axil
    assert len(result.plan.distributions) <= 20
    # of 16.4 MB, pydantic-core is 5, regex and pyyaml are 3 each; without bytecode, which differs
    # between versions of Python
    assert result.report["sizes"]["total"] <= 16.6e6
    roots = {"axil-core", "axil-cli", "axil-control", "axil-files"}
    assert roots == set(result.plan.roots)
    assert not {"axil-agent", "axil-sqlite", "axil-testing", "pytest", "axil-plugins"} & set(
        result.plan.distributions
    )


@pytest.mark.skipif(not LONG, reason="installs the SDK: make thorough")
def test_the_same_with_an_agent_of_openai_is_within_its_size(axil, tmp_path):
    """Its dry run asks a stand-in, so no key is needed; the size is that of the environment it was
    proved in.
    """
    pytest.importorskip("axil_openai")
    model = {
        "type": "openai",
        "config": {"name": "gpt-5-mini", "api_key": {"env": "OPENAI_API_KEY"}},
    }
    ask = {"id": "ask", "type": "agent", "config": {"model": model, "prompt_template": "{message}"}}
    graph = TWO["graph"]
    nodes, edges = [*graph["nodes"], ask], [*graph["edges"], {"from": "b", "to": "ask"}]
    write(
        tmp_path, "flow.json", {"graph": {**graph, "nodes": nodes, "edges": edges, "end": ["ask"]}}
    )
    write(
        tmp_path,
        "axil-build.toml",
        '[workflows]\nfiles = ["flow.json"]\n[limits]\nmax_mb = 35\n[dist]\noutputs = ["wheel"]\n',
    )
    done = axil("build", "axil-build.toml", "--format", "json")
    assert done.code == 0, done.err
    said = done.data
    assert {
        "axil-core",
        "axil-agent",
        "axil-cli",
        "axil-control",
        "axil-files",
        "axil-models",
        "axil-openai",
    } == set(said["plan"]["roots"])
    assert said["report"]["verified"]["faults"] == []
    assert (
        1e6
        < said["report"]["sizes"]["only_because_of"]["axil-openai"]
        < said["report"]["verified"]["bytes"]
        <= 35e6
    )


def test_defaults_and_inner_files_bring_what_they_need(made):
    folder, result = made
    assert {"axil-agent", "axil-control", "axil-models"} <= set(result.plan.roots)
    assert "formatters:json (default)" in result.plan.roots["axil-models"]
    with zipfile.ZipFile(folder / "out" / "acme_flow-2.0.1-py3-none-any.whl") as wheel:
        assert {"acme_flow_flow/flows/agent.json", "acme_flow_flow/flows/parts/inner.json"} <= set(
            wheel.namelist()
        )


def test_it_was_proved_in_a_fresh_environment(made):
    _, result = made
    proof = result.report["verified"]
    assert proof["faults"] == []
    assert set(proof["ran"]) == {"agent.json"}
    assert proof["ran"]["agent.json"]["firings"] >= 1
    locked = {**result.plan.distributions, "acme-flow": "2.0.1"}
    assert proof["installed"] == locked
    assert set(proof["registering"]) <= set(locked)


def test_the_lock_has_every_wheel_with_its_hash(made):
    folder, result = made
    out = folder / "out"
    locked = dict(
        re.findall(
            r"^(\S+)==\S+ --hash=sha256:([0-9a-f]{64})$",
            (out / "requirements.lock").read_text(),
            re.MULTILINE,
        )
    )
    assert set(locked) == set(result.plan.distributions)
    hashes = {hashlib.sha256(file.read_bytes()).hexdigest() for file in (out / "wheels").iterdir()}
    assert hashes == set(locked.values())


def test_the_main_wheel_requires_exactly_the_lock(made):
    folder, result = made
    with zipfile.ZipFile(folder / "out" / "acme_flow-2.0.1-py3-none-any.whl") as wheel:
        metadata = wheel.read("acme_flow-2.0.1.dist-info/METADATA").decode()
    wanted = dict(re.findall(r"^Requires-Dist: (\S+)==(\S+)$", metadata, re.MULTILINE))
    assert wanted == result.plan.distributions


def test_the_single_file_runs_with_nothing_but_python(small, tmp_path):
    folder, _ = small
    environment = {
        "PATH": os.environ["PATH"],
        "AXIL_BUILD_CACHE": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
    }
    for _ in range(2):
        command = [sys.executable, "-I", folder / "out" / "two.pyz", "--input", "x"]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert (done.stdout, done.returncode) == ("hello\n", 0), done.stderr
    listed = [
        sys.executable,
        "-I",
        folder / "out" / "two.pyz",
        "axil-core",
        "check",
        "--format",
        "json",
        "no.json",
    ]
    assert (
        subprocess.run(
            listed, env=environment, capture_output=True, text=True, timeout=600, check=False
        ).returncode
        == 2
    )
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_the_bill_names_all_that_is_in_it(made):
    folder, result = made
    bill = json.loads((folder / "out" / "sbom.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert {
        each["name"]: each["version"] for each in bill["components"]
    } == result.plan.distributions
    assert all(len(each["hashes"][0]["content"]) == 64 for each in bill["components"])
    refs = {each["bom-ref"] for each in bill["components"]} | {
        bill["metadata"]["component"]["bom-ref"]
    }
    assert {
        ref for each in bill["dependencies"] for ref in (each["ref"], *each["dependsOn"])
    } == refs
    assert next(each["licenses"] for each in bill["components"] if each["name"] == "axil-core") == [
        {"expression": "Apache-2.0"}
    ]


def test_the_bill_is_cyclonedx_by_its_schema(made):
    validation = pytest.importorskip("cyclonedx.validation.json")
    from cyclonedx.schema import SchemaVersion

    folder, _ = made
    text = (folder / "out" / "sbom.cdx.json").read_text()
    schema = validation.JsonStrictValidator(SchemaVersion.V1_6)
    assert schema.validate_str(text) is None
    assert schema.validate_str(text.replace('"SHA-256"', '"SHA-257"')) is not None


def test_licences_and_sizes_are_listed(made):
    folder, result = made
    lines = (folder / "out" / "licences.txt").read_text().splitlines()
    assert len(lines) == len(result.plan.distributions)
    assert not [line for line in lines if line.endswith("not said")]
    sizes = json.loads((folder / "out" / "report.json").read_text())["sizes"]
    assert sum(sizes["distributions"].values()) == sizes["total"]
    assert 0 < sizes["only_because_of"]["axil-control"] < sizes["total"]


def test_the_container_needs_nothing_from_outside(made):
    folder, _ = made
    inside = folder / "out" / "container"
    text = (inside / "Dockerfile").read_text()
    assert "--no-index" in text
    assert "--require-hashes" in text
    assert "USER 10001:10001" in text.splitlines()
    assert "acme-flow==2.0.1" in (inside / "requirements.lock").read_text()
    assert len(list((inside / "wheels").iterdir())) == len(
        (inside / "requirements.lock").read_text().splitlines()
    )


def test_the_same_input_gives_the_same_bytes(made, tmp_path, afresh, monkeypatch):
    for name, make in afresh.items():
        monkeypatch.setattr(wheels, name, make)
    folder, _ = made
    for name in ("axil-build.toml", "flows/agent.json", "flows/parts/inner.json"):
        write(tmp_path / "elsewhere", name, (folder / name).read_text())
    settings = read([str(tmp_path / "elsewhere" / "axil-build.toml")])
    build(settings, Registry(Policy()), tmp_path / "again", until="assemble")
    first, second = digests(folder / "out"), digests(tmp_path / "again")
    first.pop("report.json")  # the first one was verified
    second.pop("report.json")
    assert first == second
    assert len(first) > 30


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("until", "made", "not_made"),
    [
        ("plan", None, "plan.json"),
        ("lock", "requirements.lock", "flow.pyz"),
        ("assemble", "flow.pyz", None),
    ],
)
def test_each_step_can_be_the_last(axil, tmp_path, until, made, not_made):
    file = write(tmp_path, "flow.json", TWO)
    done = axil("build", file, "--until", until, "--out", "out", "--format", "json")
    assert done.code == 0
    assert done.data["plan"]["roots"]["axil-control"] == ["nodes:literal", "nodes:passthrough"]
    assert made is None or (tmp_path / "out" / made).is_file()
    assert not_made is None or not (tmp_path / "out" / not_made).exists()


def test_without_the_command_a_build_is_smaller_still(axil, tmp_path):
    write(tmp_path, "flow.json", TWO)
    write(
        tmp_path,
        "axil-build.toml",
        '[dist]\ncommand = false\noutputs = ["pyz"]\n[workflows]\nfiles = ["flow.json"]\n',
    )
    done = axil(
        "build", "axil-build.toml", "--until", "assemble", "--out", "out", "--format", "json"
    )
    assert "axil-cli" not in done.data["plan"]["distributions"]
    assert not (tmp_path / "out" / "container").exists()
    environment = {"PATH": os.environ["PATH"], "AXIL_BUILD_CACHE": str(tmp_path / "cache")}
    ran = subprocess.run(
        [sys.executable, "-I", "out/flow.pyz", "x"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("hello\n", 0), ran.stderr


# --------------------------------------------------------------------------------------------------


def settings(tmp_path: Path, text: str, flow: object = TWO) -> Settings:
    write(tmp_path, "flow.json", flow)
    return read(
        [write(tmp_path, "axil-build.toml", f'{text}\n[workflows]\nfiles = ["flow.json"]\n')]
    )


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            '[limits]\ndeny = ["Pydantic_Core"]',
            "AX744 limits.deny: pydantic-core would be in the build: axil",
        ),
        ('[limits]\ndeny = ["pydantic_core"]', ". Remove what requires it, or take it out of the"),
        ("[limits]\nmax_distributions = 3", "distributions; the limit is 3"),
        ("[limits]\nmax_distributions = 3", ". Raise the limit, or remove nodes or plugins that"),
        (
            '[plugins]\ninclude = ["no-such-plugin"]',
            "AX741 plugins.include: not installed: no-such-plugin",
        ),
        ('[sources]\nnothing = "x.whl"', "AX740 sources: nothing would not be in the build"),
        ('[sources]\naxil-control = "nowhere"', "AX742 axil-control: its source"),
        (
            '[dist]\nentry = "other.json"',
            "AX745 dist.entry: other.json is not one of the workflows: flow.json",
        ),
    ],
)
def test_what_cannot_be_built_is_reported_and_leaves_nothing(tmp_path, text, reported):
    with pytest.raises(ConfigError) as caught:
        build(settings(tmp_path, text), Registry(Policy()), tmp_path / "out", until="assemble")
    assert reported in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("[dist]\nnam = 'x'", 'unknown key "nam"'),
        ("[dist]\nname = 'Two Words'", "expected a distribution's name"),
        ("[", "AX740"),
        ("folder = 'x'", "folder"),
    ],
)
def test_settings_that_make_no_sense_are_reported(tmp_path, text, reported):
    with pytest.raises(ConfigError, match=reported):
        read([write(tmp_path, "axil-build.toml", text)])


def test_a_workflow_that_needs_what_is_not_installed_says_what_to_install(tmp_path):
    flow = {
        "graph": {
            "nodes": [{"id": "a", "type": "acme.x"}, {"id": "b", "type": "loop_timr"}],
            "edges": [{"from": "a", "to": "b"}],
            "start": ["a"],
        }
    }
    with pytest.raises(ConfigError) as caught:
        build(settings(tmp_path, "", flow), Registry(Policy()), tmp_path / "out")
    assert [problem.id for problem in caught.value.problems] == ["AX741", "AX741"]
    assert 'Did you mean "loop_timer"' in str(caught.value)


def test_no_workflow_is_no_build(tmp_path):
    with pytest.raises(ConfigError, match="AX745"):
        read(
            [write(tmp_path, "axil-build.toml", '[workflows]\nfiles = ["flows/*.json"]\n')]
        ).workflow_files()


def test_what_is_not_a_build_is_not_replaced(axil, tmp_path):
    file = write(tmp_path, "flow.json", TWO)
    write(tmp_path, "out/precious.txt", "mine")
    done = axil("build", file, "--out", "out", "--until", "lock")
    assert done.code == 2
    assert "AX746" in done.err
    assert (tmp_path / "out" / "precious.txt").read_text() == "mine"


def test_a_build_for_which_there_is_no_room_leaves_the_one_before(tmp_path, monkeypatch):
    for name, text in (("old", "before"), ("new", "after")):
        write(tmp_path, f"{name}/plan.json", text)

    def full(place: Path, into: Path) -> None:
        into.mkdir(parents=True)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(command.shutil, "copytree", full)
        with pytest.raises(ConfigError, match=r"AX955 .*No space left"):
            command._put(tmp_path / "new", tmp_path / "old")
    assert digests(tmp_path / "old") == digests_of(b"before")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            command._put(tmp_path / "new", tmp_path / "old")
    assert digests(tmp_path / "old") == digests_of(b"before")
    command._put(tmp_path / "new", tmp_path / "old")
    assert digests(tmp_path / "old") == digests_of(b"after")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new", "old"]


def digests_of(text: bytes) -> dict[str, str]:
    return {"plan.json": hashlib.sha256(text).hexdigest()}


def test_a_single_file_that_cannot_be_unpacked_leaves_nothing(tmp_path):
    wheel = outputs.write_zip(tmp_path / "a.whl", {"a.txt": b"something", "b.txt": b"more"})
    plan = cast("Any", SimpleNamespace(name="two"))
    file = outputs.single_file(
        plan, [wheel], (sys.version_info.major, sys.version_info.minor), tmp_path
    )
    data = bytearray(file.read_bytes())
    data[data.index(b"site/b.txt") + len(b"site/b.txt") + 2] ^= 0xFF  # as a disk does, or a line
    file.write_bytes(data)
    (cache := tmp_path / "cache").mkdir()
    environment = {**os.environ, "AXIL_BUILD_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-I", file], env=environment, capture_output=True, timeout=600, check=False
    )
    assert done.returncode
    assert list(cache.iterdir()) == []


def test_a_build_that_fails_its_dry_run_and_is_too_large_is_not_shipped(tmp_path):
    flow = {
        "graph": {
            "nodes": [{"id": "a", "type": "python", "config": {"code": "print(1)"}}],
            "edges": [],
            "start": ["a"],
        }
    }
    text = '[dist]\noutputs = ["wheel"]\n[limits]\nmax_mb = 1'
    with pytest.raises(ConfigError) as caught:
        build(settings(tmp_path, text, flow), Registry(Policy()), tmp_path / "out")
    failed, large = map(str, caught.value.problems)
    assert failed.startswith("AX743 verify: flow.json: the dry run fails")
    assert re.match(
        r"AX744 limits\.max_mb: it is \d+\.\d MB; the limit is 1\. Raise the limit", large
    )
    assert not (tmp_path / "out").exists()


def test_people_read_sizes_and_reasons(axil, tmp_path):
    file = write(tmp_path, "flow.json", TWO)
    reported = axil("build", file, "--until", "lock").out
    lock = (tmp_path / "build" / "flow" / "requirements.lock").read_text()
    assert f"flow 0.1.0: {len(lock.splitlines())} distributions" in reported
    assert re.search(
        r"axil-control 0\.1\.0: nodes:literal, nodes:passthrough, \d\.\d\d MB that nothing else "
        r"needs",
        reported,
    )


@pytest.mark.parametrize(
    "name", ["flow\nRequires-Dist: evil==1.json", "a\rRUN x.json", "b\x1b.json"]
)
def test_a_file_whose_name_would_add_lines_to_what_is_written_is_refused(axil, tmp_path, name):
    (tmp_path / name).write_text(json.dumps(TWO))
    done = axil("build", str(tmp_path / name), "--out", str(tmp_path / "out"))
    assert done.code != 0
    assert "AX745" in done.err
    assert "not printable" in done.err


ASKING = {
    "graph": {
        "nodes": [
            {
                "id": "sort",
                "type": "agent",
                "config": {
                    "model": {"type": "scripted"},
                    "prompt_template": "{message}",
                    "output": {"category": "spam or not"},
                    "max_repairs": 0,
                },
            },
            {"id": "approve", "type": "human", "config": {"description": "Send it?"}},
        ],
        "edges": [{"from": "sort", "to": "approve", "process": "shout"}],
        "start": ["sort"],
        "end": ["approve"],
    }
}
MADE = """
from axil import RootGraph
from axil_journals import MemoryJournal

from words import shouted

graph = RootGraph("shouting")
node = graph.create_node(lambda inputs: {"message": shouted(inputs["message"])}, name="shout")
graph.edge_from_entry(node)
graph.edge_to_exit(node)
graph.build()
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A build of a file that asks people and has functions of its own, and of a graph in Python."""
    folder = tmp_path_factory.mktemp("mixed")
    write(folder, "ask.json", ASKING)
    write(folder, "own/processors.py", "def shout(text):\n    return text.upper()\n")
    write(folder, "made.py", MADE)
    write(folder, "words.py", "import yaml\n\n\ndef shouted(text):\n    return text.upper()\n")
    write(
        folder,
        "axil-build.toml",
        '[dist]\nname = "acme-mixed"\nentry = "made.py:graph"\noutputs = ["pyz", "container"]\n'
        '[workflows]\nfiles = ["ask.json", "made.py:graph"]\nfunctions = "own"\n',
    )
    path = list(sys.path)
    try:
        settings = read([str(folder / "axil-build.toml")])
        registry = with_functions(Registry(Policy()), folder / "own")
        return folder, build(settings, registry, folder / "out")
    finally:
        sys.path[:] = path
        for name in ("made", "words"):
            sys.modules.pop(name, None)


def test_a_workflow_that_asks_people_brings_what_asks_and_keeps_its_runs(mixed):
    folder, result = mixed
    uses = result.plan.roots
    assert "channels:terminal (people are asked)" in uses["axil-control"]
    assert uses["axil-sqlite"] == ("journals:sqlite (people are asked)",)
    reported = list(command.lines(result, folder / "out"))
    assert (
        "asks people (ask.json:1 nodes[1]): acme-mixed axil runs list shows runs that wait"
        in reported
    )


def test_a_build_says_that_a_run_would_be_lost_where_no_journal_is_in_it(tmp_path):
    plan = SimpleNamespace(
        name="x",
        version="1",
        distributions={"axil-core": "1"},
        roots={},
        blind=(),
        asks="",
        graphs={},
    )
    ran = {"flow.py:graph": {"status": "paused", "firings": 1, "asked": 1}}
    made = command.Made(plan=cast("Any", plan), report={"verified": {"ran": ran}})
    reported = "\n".join(command.lines(made, tmp_path))
    assert "dry run is paused after 1 firing\n" in reported
    assert "warning: flow.py:graph asks people, and no journal is in the build." in reported


def test_the_stand_in_for_models_fills_the_fields_that_are_declared(mixed):
    _, result = mixed
    ran = result.report["verified"]["ran"]["ask.json"]
    assert (ran["status"], ran["asked"], "note" in ran) == ("paused", 1, False)


def test_a_graph_in_python_is_built_with_what_it_imports(mixed):
    folder, result = mixed
    assert sorted(result.plan.plain()["files"]) == [
        "ask.json",
        "made.py",
        "own/processors.py",
        "words.py",
    ]
    assert result.plan.roots["pyyaml"] == ("import:pyyaml",)
    assert result.plan.roots["axil-journals"] == ("import:axil-journals",)
    assert result.report["verified"]["ran"]["made.py:graph"]["status"] == "done"
    environment = {
        "PATH": os.environ["PATH"],
        "AXIL_BUILD_CACHE": str(folder / "cache"),
        "AXIL_JOURNAL": "off",
    }
    done = subprocess.run(
        [sys.executable, "-I", folder / "out" / "acme-mixed.pyz", "--input", "hi"],
        env=environment,
        cwd=folder.parent,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("HI\n", 0), done.stderr
    reported = subprocess.run(
        [sys.executable, "-I", folder / "out" / "acme-mixed.pyz", "--help"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    ).stdout
    assert reported.startswith("usage: acme-mixed [-h]")
    assert "WORKFLOW" not in reported


def test_a_summary_counts_what_is_in_folders(mixed):
    folder, result = mixed
    *_, reported = command.lines(result, folder / "out")
    count = len(result.plan.distributions)
    assert f"wheels/ ({count} files)" in reported
    assert f"container/ ({count + 4} files)" in reported


def test_functions_are_built_with_leave_only(axil, tmp_path):
    write(tmp_path, "ask.json", ASKING)
    write(tmp_path, "own/processors.py", "def shout(text):\n    return text.upper()\n")
    refused = axil("build", "ask.json", "--functions", "own", "--until", "plan")
    assert (refused.code, "Add --allow code" in refused.err) == (2, True)
    ways = ("--functions", "own", "--allow", "code", "--until", "plan", "--format", "json")
    plan = axil("build", "ask.json", *ways).data["plan"]
    assert (plan["functions"], plan["files"]) == ("own", ["ask.json", "own/processors.py"])
    missing = axil("build", "ask.json", "--until", "plan")
    assert (missing.code, "--functions DIR" in missing.err) == (2, True)


def test_a_build_is_planned_and_proved_with_variables_and_grants(axil, tmp_path):
    node = {"id": "a", "type": "${KIND}", "config": {"code": "return '${TONE}'"}}
    write(tmp_path, "flow.json", json.dumps({"graph": {"nodes": [node], "start": ["a"]}}))
    given = ("--set", "KIND=python", "--set", "TONE=dry", "--allow", "code")
    made = axil("build", "flow.json", *given, "--format", "json").data
    assert made["report"]["verified"]["ran"]["flow.json"]["status"] == "done"
    assert "axil-control" in made["plan"]["roots"]
    missing = axil("build", "flow.json", "--until", "plan")
    assert missing.code == 2


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A wheel with programs, data and headers, and an environment without pip that has it."""
    folder = tmp_path_factory.mktemp("environment")
    files = {
        "tool/__init__.py": b"",
        "tool-1.0.data/scripts/tool-native": b"\x7fELF",
        "tool-1.0.data/scripts/tool-script": b"#!python\nprint(1)\n",
        "tool-1.0.data/data/share/tool.txt": b"data",
        "tool-1.0.dist-info/METADATA": b"Metadata-Version: 2.3\nName: tool\nVersion: 1.0\n",
        "tool-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        "tool-1.0.dist-info/entry_points.txt": b"[console_scripts]\ntool = tool:main\n",
    }
    files["tool-1.0.dist-info/RECORD"] = wheels.record_of(files, "tool-1.0.dist-info/RECORD")
    original = wheels.write_zip(folder / "tool-1.0-py3-none-any.whl", files)
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wheels, "find_spec", lambda name: None)  # as in an environment of uv's
        pip = wheels.pip_command()
    subprocess.run([*pip, "--python", python, "install", "--no-index", original], check=True)
    return original, files, python


@pytest.fixture
def installed(environment, monkeypatch):
    """Its wheel and where it is installed, as if it were this environment."""
    original, files, python = environment
    site = Path(sysconfig.get_path("purelib", vars={"base": str(python.parents[1])}))
    metadata = PathDistribution(site / "tool-1.0.dist-info")
    monkeypatch.setattr(wheels, "metadata_of", lambda name: metadata)
    monkeypatch.setattr(sys, "prefix", str(python.parents[1]))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(python.parent))
    return original, files, site


def test_a_wheel_is_shipped_whole_as_it_was_or_packed_again(installed, tmp_path):
    original, files, site = installed
    (tmp_path / "out").mkdir()
    [packed] = wheels.make(["tool"], tmp_path / "out", {})
    with zipfile.ZipFile(packed.path) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files
    (original.parent / "stray.whl").touch()
    [same] = wheels.make(["tool"], tmp_path / "out", {}, original.parent)
    assert same.path.read_bytes() == original.read_bytes()
    record = site / "tool-1.0.dist-info/RECORD"
    known = record.read_text()
    record.write_text(known.replace("tool/__init__.py,sha256=", "tool/__init__.py,sha256=x"))
    try:
        with pytest.raises(ConfigError, match=r"AX742.*is not what is installed.*__init__"):
            wheels.make(["tool"], tmp_path / "out", {}, original.parent)
    finally:
        record.write_text(known)


def test_a_single_file_has_the_programs_of_its_wheels(installed, tmp_path, small):
    _, result = small
    path = outputs.single_file(result.plan, [installed[0]], (3, 11), tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert {"site/bin/tool-native", "site/share/tool.txt", "site/tool/__init__.py"} <= set(
            archive.namelist()
        )
