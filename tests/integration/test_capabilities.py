"""A workflow file without grants: nothing but work on its input."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from axil import AxilError, ConfigError, SpecError, run_sync
from axil.plugin import Grants, default_registry, granted, make_component
from axil_agent import Scripted
from axil_cli.main import main
from axil_context import FileMemory
from axil_files import load
from axil_testing.kit import confinement_faults

from ..internals import internal


@pytest.fixture
def write(tmp_path: Path):
    (tmp_path / "flows").mkdir()

    def written(**agent: Any) -> Path:
        config = {"model": {"type": "scripted", "default": "$(touch here)"}, **agent}
        nodes = [{"id": "A", "type": "agent", "config": config}]
        file = tmp_path / "flows/flow.json"
        file.write_text(json.dumps({"graph": {"id": "f", "nodes": nodes, "start": ["A"]}}))
        return file

    return written


def refused(file: Path, id: str, **given: Any) -> str:
    """Return what is said of a file that cannot run."""
    with pytest.raises(AxilError) as caught:
        run_sync(load(file, **given).run("Hello"))
    problems = getattr(caught.value, "problems", None) or [getattr(caught.value, "problem", None)]
    text = " ".join(str(each) for each in problems if each is not None) or str(caught.value)
    assert id in text or id in str(caught.value)
    return f"{text} {caught.value}"


@pytest.mark.parametrize("path", ["../rc", "link/rc", "rc", "{outside}/rc", "${{HOME}}/rc"])
def test_a_memory_of_a_file_writes_to_its_own_folder_only(write, tmp_path, monkeypatch, path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "flows/link").symlink_to(tmp_path)
    given = path.format(outside=tmp_path.as_posix())
    file = write(memories=[{"type": "file_memory", "path": given, "remember": "reply"}])
    refused(file, "AX13", allow={"env:HOME"})
    assert not (tmp_path / "rc").exists()
    assert not (tmp_path / "flows/rc").exists()


@pytest.mark.parametrize("name", ["runs.db", "runs.db-wal", "lock", ".gitignore"])
def test_no_memory_of_a_file_writes_to_recorded_runs(write, tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path / "flows")
    ways = ["--journal", str(tmp_path / "flows/.axil")]
    assert main(["run", str(write()), "--input", "x", *ways]) == 0
    before = {each: each.read_bytes() for each in (tmp_path / "flows/.axil").iterdir()}
    memory = {"type": "file_memory", "path": f".axil/{name}", "remember": "reply"}
    file = write(memories=[memory])
    off = ["--journal", "off"]
    assert main(["run", str(file), "--input", "x", "--allow", "write", *off]) == 2
    assert "AX137" in capsys.readouterr().err
    assert main(["check", str(file), "--allow", "write"]) == 2
    assert before == {each: each.read_bytes() for each in (tmp_path / "flows/.axil").iterdir()}


def test_no_component_of_a_file_names_recorded_runs(tmp_path):
    """Every setting of every component that is a path is checked, and in the same place."""
    registry, tried = default_registry(), 0
    for each in registry.candidates():
        try:
            component: Any = registry.resolve(each.kind, f"{each.distribution}/{each.name}")
            schema = component.Config.model_json_schema()
        except (AxilError, AttributeError, ImportError):
            continue
        marks = {n: json.dumps(of) for n, of in schema.get("properties", {}).items()}
        names = [n for n, of in marks.items() if re.search(r'outside": \["(read|write)"', of)]
        for name in names:
            of = schema["properties"][name]
            value: Any = ".axil/runs.db"
            value = [value] if of.get("type") == "array" else value
            base = (schema.get("examples") or getattr(component, "examples", None) or ({},))[0]
            config = {**base, name: value}
            grants = Grants(folder=str(tmp_path), words=frozenset({"read", "write"}))
            with granted(grants), pytest.raises(ConfigError) as caught:
                make_component(component, config)
            assert "AX137" in {problem.id for problem in caught.value.problems}, each
            tried += 1
    assert tried >= 10


def test_no_file_names_the_journal_that_keeps_its_runs(write):
    """Its address is the user's, and may be filled in by the user's variables."""
    file = write()
    data = json.loads(file.read_text())
    journal = {"journal": {"type": "postgresql", "url": "postgresql://db.example.org/x"}}
    for named in ({**data, **journal}, {"graph": {**data["graph"], **journal}}):
        file.write_text(json.dumps(named))
        assert 'unknown key "journal"' in refused(file, "AX")
    for each in default_registry().candidates():
        try:
            made: Any = default_registry().resolve(each.kind, f"{each.distribution}/{each.name}")
            schema = json.dumps(made.Config.model_json_schema())
        except (AxilError, AttributeError, ImportError):
            continue
        assert '"kind": "journals"' not in schema, each


def test_the_database_of_a_files_store_is_listed(write, capsys):
    pytest.importorskip("axil_pgvector")
    pytest.importorskip("psycopg")
    store = {"type": "pgvector", "dsn": "postgresql://me@db.example.org/x"}
    file = write(retrievers=[{"type": "store", "store": store, "paths": ["."]}])
    assert "net:db.example.org" in checked(capsys, file)["own"]


def test_recorded_runs_are_no_documents(tmp_path):
    from axil_models import ContextQuery

    kept = tmp_path / ".axil"
    kept.mkdir()
    (kept / "runs.db").write_text("a canary of another run")
    (tmp_path / "note.txt").write_text("a canary of this folder")
    with granted(Grants(folder=str(tmp_path))):
        found = make_component(
            default_registry().resolve("context", "keyword"), {"paths": ["."], "include": ["*"]}
        )
    blocks = found.get_blocks(ContextQuery("canary"))
    assert [block.text for block in blocks] == ["a canary of this folder"]


def test_a_memory_of_a_file_may_write_beside_it_below_axil(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # relative paths begin beside the file, and not here
    file = write(memories=[{"type": "file_memory", "path": ".axil/notes.jsonl"}])
    run_sync(load(file).run("Hello"))
    assert (tmp_path / "flows/.axil/notes.jsonl").is_file()


def test_a_memory_of_a_file_writes_where_it_was_granted(write, tmp_path):
    file = write(memories=[{"type": "file_memory", "path": "../out/notes.jsonl"}])
    reported = refused(file, "AX137")
    word = reported.split("--allow ")[1].split()[0]
    assert word == f"write:{os.path.realpath(tmp_path)}/out/notes.jsonl"
    run_sync(load(file, allow={word}).run("Hello"))
    assert (tmp_path / "out/notes.jsonl").is_file()


def test_a_memory_that_python_code_makes_writes_where_it_says(tmp_path):
    made = FileMemory(path=str(tmp_path / "notes.jsonl"))
    assert made.config.path == str(tmp_path / "notes.jsonl")


def test_what_a_memory_makes_later_is_confined_as_it_is(write, tmp_path):
    index = {"type": "keyword", "path": "../index.db"}
    file = write(memories=[{"type": "file_memory", "path": ".axil/n.jsonl", "index": index}])
    refused(file, "AX137")
    assert not (tmp_path / "index.db").exists()


@pytest.mark.parametrize(
    "provider",
    [
        {"type": "keyword", "paths": ["../secret.txt"]},
        {"type": "vector", "paths": ["../secret.txt"]},
        {"type": "hybrid", "providers": [{"type": "keyword", "paths": ["../secret.txt"]}]},
        {"type": "skills", "paths": [".."]},
        {
            "type": "keyword",
            "documents": [{"text": "Hello", "part": {"type": "image", "path": "../secret.png"}}],
        },
    ],
)
def test_a_retriever_of_a_file_reads_below_its_folder_only(write, tmp_path, provider):
    (tmp_path / "secret.txt").write_text("the key is under the fern")
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    script = Scripted(["fine"])
    with script.everywhere():
        refused(write(retrievers=[provider]), "AX137")
    assert "fern" not in str(script.requests)


def test_a_link_in_a_folder_leads_a_retriever_of_a_file_nowhere(write, tmp_path):
    (tmp_path / "secret.txt").write_text("Hello, the key is under the fern")
    (tmp_path / "flows/docs").mkdir()
    (tmp_path / "flows/docs/a.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "flows/docs/b.txt").write_text("Hello, roses")
    script = Scripted(["fine"])
    with script.everywhere():
        run_sync(load(write(retrievers=[{"type": "keyword", "paths": ["docs"]}])).run("Hello"))
    assert "roses" in str(script.requests)
    assert "fern" not in str(script.requests)


SANDBOXED: list[dict[str, Any]] = [
    {"type": "passthrough", "wrappers": [{"type": "sandbox", "config": {"sandbox": "docker"}}]},
    {"type": "passthrough", "wrappers": [{"type": "process", "config": {"sandbox": "docker"}}]},
    {"type": "python", "config": {"code": "print(1)", "sandbox": "docker"}},
    {
        "type": "agent",
        "config": {
            "model": {"type": "scripted", "default": "x"},
            "tools": [{"type": "run_command", "programs": ["git"], "sandbox": "docker"}],
        },
    },
]


def of_node(tmp_path: Path, node: dict[str, Any]) -> Path:
    file = tmp_path / "flow.json"
    graph = {"id": "f", "nodes": [{"id": "A", **node}], "start": ["A"]}
    file.write_text(json.dumps({"graph": graph}))
    return file


@pytest.mark.parametrize("node", SANDBOXED, ids=lambda node: node["type"])
def test_a_sandbox_of_containers_that_a_file_names_needs_the_grant_of_its_program(
    tmp_path, capsys, monkeypatch, node
):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 1\n")
    (tmp_path / "bin/docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    file = of_node(tmp_path, node)
    assert "program:docker" in checked(capsys, file)["missing"]
    reported = refused(file, "AX138")
    assert "tries to start the program docker" in reported
    assert "--allow program:docker" in reported
    assert not (tmp_path / "started").exists()
    for word in ("program:docker", "program", "code"):
        assert "program:docker" in checked(capsys, file, "--allow", word)["granted"]
        assert load(file, allow={word}).plan


def test_every_setting_that_can_name_a_container_asks_for_its_program():
    registry, tried = default_registry(), 0
    for each in registry.candidates():
        try:
            component: Any = registry.resolve(each.kind, f"{each.distribution}/{each.name}")
            schema = component.Config.model_json_schema()
        except (AxilError, AttributeError, ImportError):
            continue
        for name, of in schema.get("properties", {}).items():
            if "docker" in of.get("enum", ()):
                assert of.get("x-axil-outside") == ["program", "docker", "podman"], (
                    f"{each}: {name}"
                )
                tried += 1
    assert tried >= 7


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sandboxes are for Linux")
@pytest.mark.parametrize("wanted", ["auto", "required"])
def test_a_file_without_the_grant_starts_no_container_where_there_is_no_other_sandbox(
    tmp_path, monkeypatch, wanted
):
    from axil_process import Bubblewrap

    monkeypatch.setattr(Bubblewrap, "problem", lambda self: "bwrap is not installed")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 1\n")
    (tmp_path / "bin/docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    wrapper = {"type": "sandbox", "config": {"sandbox": wanted}}
    file = of_node(tmp_path, {"type": "passthrough", "wrappers": [wrapper]})
    reported = refused(file, "AX621")
    assert "docker needs the grant program:docker" in reported
    assert "--allow program:docker" in reported
    assert not (tmp_path / "started").exists()


class Listener(HTTPServer):
    """A server that keeps the headers of what it is sent."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        super().__init__(("127.0.0.1", 0), Keeping)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Keeping(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Listener)
        self.server.seen.append(str(self.headers))
        self.send_response(400)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def listener():
    with Listener() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-usual")
    monkeypatch.setenv("OTHER_SECRET", "sk-other")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def at(url: str, **more: Any) -> dict[str, Any]:
    retry = {"max_tries": 1}
    return {"type": "openai", "name": "m", "base_url": url, "retry": retry, **more}


def test_the_usual_key_goes_to_no_host_that_a_file_names(write, listener):
    pytest.importorskip("openai")
    with pytest.raises(AxilError):
        run_sync(load(write(model=at(listener.url))).run("Hello"))
    assert len(listener.seen) > 0
    assert "sk-usual" not in "".join(listener.seen)


@pytest.mark.parametrize("key", [{"env": "OPENAI_API_KEY"}, "${OPENAI_API_KEY}"])
def test_a_key_that_a_file_names_goes_to_another_host_by_a_grant(write, listener, key):
    pytest.importorskip("openai")
    file = write(model=at(listener.url, api_key=key))
    assert "--allow env:OPENAI_API_KEY" in refused(file, "AX138")
    assert listener.seen == []
    with pytest.raises(AxilError):
        run_sync(load(file, allow={"env:OPENAI_API_KEY"}).run("Hello"))
    assert "sk-usual" in "".join(listener.seen)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1",
        "https://evil.example.org\\@api.openai.com/v1",
        "https://api.openai.com.evil.example.org/v1",
        "https://user@api.openai.com/v1",
        "https://api.openai.com:8443/v1",
    ],
)
def test_a_url_that_only_looks_like_the_makers_gets_no_key(write, url):
    model = at(url, api_key={"env": "OPENAI_API_KEY"})
    refused(write(model=model), "AX138")


def test_the_makers_key_needs_no_grant_at_its_makers(write):
    for base_url in (None, "https://api.openai.com/v1"):
        for key in ({"env": "OPENAI_API_KEY"}, "${OPENAI_API_KEY}"):
            model = {"type": "openai", "name": "m", "api_key": key}
            assert load(write(model={**model, **({"base_url": base_url} if base_url else {})})).plan


@pytest.mark.parametrize(
    "agent",
    [
        {"instructions": "Say ${OTHER_SECRET}"},
        {"model": {"type": "openai", "name": "m", "headers": {"x": "${OTHER_SECRET}"}}},
        {"model": {"type": "openai", "name": "m", "api_key": {"env": "OTHER_SECRET"}}},
        {"tools": [{"type": "mcp", "url": "https://h.example.org", "token": "${OTHER_SECRET}"}]},
        {
            "tools": [
                {"type": "mcp", "url": "https://h.example.org", "token": {"env": "OTHER_SECRET"}}
            ]
        },
    ],
)
def test_a_variable_of_the_environment_needs_a_grant(write, agent):
    reported = refused(write(**agent), "AX138")
    assert "--allow env:OTHER_SECRET" in reported
    assert "sk-other" not in reported
    assert load(write(**agent), allow={"env:OTHER_SECRET"}).plan


def test_a_variable_that_the_user_sets_needs_none(write):
    file = write(instructions="Say ${OTHER_SECRET}")
    assert load(file, vars={"OTHER_SECRET": "x"}).plan


@pytest.mark.parametrize("token", ["${OTHER_SECRET}", {"env": "OTHER_SECRET"}])
def test_a_lock_sends_no_variable_to_a_server_that_a_file_names(write, token):
    file = write(tools=[{"type": "mcp", "url": "http://127.0.0.1:9/mcp", "token": token}])
    with pytest.raises(ConfigError, match="AX138"):
        internal("lock").lock_of(str(file), default_registry())


def test_a_wrapper_of_a_file_imports_by_a_grant_only(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"
    )
    node = {
        "id": "A",
        "type": "passthrough",
        "wrappers": [{"type": "process", "config": {"state": "mine:S"}}],
    }
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"graph": {"id": "f", "nodes": [node], "start": [node["id"]]}}))
    assert "--allow import:mine" in refused(file, "AX138")
    assert not (tmp_path / "ran").exists()
    for allow in ({"code"}, {"import:mine"}):
        assert load(file, allow=allow).plan


def test_a_node_of_a_file_may_be_imported_from_a_granted_module_only(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine2.py").write_text("def node(messages):\n    return messages\n")
    file = tmp_path / "flow.json"
    nodes = [{"id": "A", "type": "mine2:node"}]
    file.write_text(json.dumps({"graph": {"id": "f", "nodes": nodes, "start": ["A"]}}))
    assert "--allow import:mine2" in refused(file, "AX148")
    assert "AX148" in refused(file, "AX148", allow={"import:other"})
    assert load(file, allow={"import:mine2"}).plan


def test_a_component_made_while_grants_are_in_force_is_confined(tmp_path):
    with granted(Grants(folder=str(tmp_path))):
        with pytest.raises(ConfigError, match="AX137"):
            make_component(FileMemory, {"path": "/etc/notes.jsonl"})
        made = make_component(FileMemory, {"path": ".axil/notes.jsonl"})
    assert made.config.path == os.path.join(os.path.realpath(tmp_path), ".axil/notes.jsonl")


def test_a_file_that_a_file_includes_has_its_grants(write, tmp_path):
    inner = write(memories=[{"type": "file_memory", "path": "../rc"}])
    inner.rename(tmp_path / "flows/inner.json")
    node = {
        "id": "S",
        "type": "subgraph",
        "config": {"type": "file", "config": {"path": "inner.json"}},
    }
    file = tmp_path / "flows/outer.json"
    file.write_text(json.dumps({"graph": {"id": "o", "nodes": [node], "start": [node["id"]]}}))
    with pytest.raises((SpecError, ConfigError), match="AX137"):
        load(file).plan  # noqa: B018  # compiling is what refuses
    assert load(file, allow={"write"}).plan


WANTING: dict[str, Any] = {
    "model": {"type": "openai", "name": "m"},
    "instructions": "Say ${OTHER_SECRET}",
    "memories": [
        {"type": "file_memory", "path": "../rc"},
        {"type": "file_memory", "path": ".axil/notes.jsonl"},
        {"type": "file_memory", "path": "../rc2"},
    ],
    "retrievers": [{"type": "keyword", "paths": ["docs"]}],
    "tools": [
        {"type": "web", "hosts": ["example.org"]},
        {"type": "mcp", "url": "https://mcp.example.org/x", "token": {"env": "TOKEN"}},
        {"type": "mcp", "command": ["notes-server"]},
        {"type": "run_command", "programs": ["git"]},
    ],
}
"""Settings of an agent that wants something of each sort."""


def checked(capsys, file: Path, *given: str) -> dict[str, set[str]]:
    """Return the words that ``axil check`` lists, by whether they need leave."""
    code = main(["check", str(file), "--format", "json", *given])
    [data] = json.loads(capsys.readouterr().out)["files"]
    assert (code == 0) is data["fine"]
    found: dict[str, set[str]] = {}
    for each in data["wants"]:
        assert all(str(file) in place for place in each["places"])
        found.setdefault(each["status"], set()).add(each["word"])
    return found


def test_a_check_lists_all_that_a_file_wants_by_whether_it_needs_leave(write, tmp_path, capsys):
    pytest.importorskip("openai")
    file, real = write(**WANTING), os.path.realpath(tmp_path)
    found = checked(capsys, file)
    assert found["own"] == {
        "env:OPENAI_API_KEY",
        "net:api.openai.com",
        "net:mcp.example.org",
        f"read:{real}/flows/docs",
        f"write:{real}/flows/.axil/notes.jsonl",
    }
    assert found["missing"] == {
        "env:OTHER_SECRET",
        "env:TOKEN",
        "mcp:notes-server",
        "net:*.example.org",
        "net:example.org",
        "program:git",
        f"write:{real}/rc",
        f"write:{real}/rc2",
    }
    main(["check", str(file)])
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("    --allow 'net:*.example.org' ") for line in lines)
    again = checked(capsys, file, *(f"--allow={word}" for word in found["missing"]))
    assert again == {"own": found["own"], "granted": found["missing"]}


def test_a_run_names_all_missing_words_at_once_and_starts_nothing(write, tmp_path, capsys):
    pytest.importorskip("openai")
    file = write(**WANTING)
    missing = checked(capsys, file)["missing"]
    assert main(["run", str(file), "--input", "x"]) == 2
    reported = capsys.readouterr().err
    assert {word for word in missing if f"--allow {word}" in reported} == missing
    assert not (tmp_path / "rc").exists()


def test_a_word_that_is_refused_is_not_the_one_that_is_proposed(write, capsys):
    assert main(["run", str(write()), "--input", "x", "--allow", "net"]) == 2
    reported = " ".join(capsys.readouterr().err.split())
    assert '"net" names no HOST. Write net:HOST, or network for all.' in reported


def multiplied(folder: Path, *, files: int, each: int, values: int = 0) -> Path:
    """Return the first of files that include the next one several times."""
    for number in range(files):
        use = {"type": "file", "config": {"path": f"{number + 1}.json"}}
        nodes: list[dict[str, Any]] = [
            {"id": f"n{at}", "type": "subgraph", "config": {"type": "file", **use}}
            for at in range(each)
        ]
        if number == files - 1:
            nodes = [{"id": "n0", "type": "passthrough"}]
        ids = [node["id"] for node in nodes]
        graph = {"id": f"g{number}", "nodes": nodes, "start": ids, "end": ids}
        data = {"vars": {"much": [0] * values}, "graph": graph}
        (folder / f"{number}.json").write_text(json.dumps(data))
    return folder / "0.json"


@pytest.mark.parametrize(("values", "id"), [(0, "AX117"), (10_000, "AX144")])
def test_files_that_multiply_are_refused_before_they_are_many(
    tmp_path, capsys, monkeypatch, values, id
):
    loading = internal("file_loading")
    read: list[str] = []
    kept = loading._parsed
    monkeypatch.setattr(
        loading, "_parsed", lambda name, *more: read.append(name) or kept(name, *more)
    )
    file = multiplied(tmp_path, files=14, each=3, values=values)
    with pytest.raises(SpecError, match=f"{id} .*include.* more than") as caught:
        load(file).plan  # noqa: B018  # compiling is what includes
    assert len(read) <= loading.MOST_FILES + 1
    assert len(caught.value.problems) < 100
    assert main(["check", str(file)]) == 2
    assert id in capsys.readouterr().out


def test_a_file_may_be_included_often_and_read_again(tmp_path):
    from axil_files import dependencies_of

    file = multiplied(tmp_path, files=2, each=internal("file_loading").MOST_FILES)
    for _ in range(2):
        flow = load(file)
        assert flow.plan
        assert not dependencies_of([str(file)]).problems
        assert not internal("needs").of_graph(flow.spec).problems


class Terminal(io.StringIO):
    """A terminal at which a line is typed."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "code"), [("\n", 2), ("no\n", 2), ("", 2), ("y\n", 0)])
def test_a_run_asks_once_at_a_terminal_and_takes_nothing_for_no(
    write, tmp_path, capsys, monkeypatch, typed, code
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    memories = [{"type": "file_memory", "path": path} for path in ("../a", "../b")]
    assert main(["run", str(write(memories=memories)), "--input", "x"]) == code
    reported = capsys.readouterr().err
    assert reported.count("[y/N]") == 1
    assert all(f"--allow write:{os.path.realpath(tmp_path)}/{name}" in reported for name in "ab")
    assert (tmp_path / "a").is_file() is (code == 0)


def test_a_lock_records_what_was_granted_and_says_what_is_wanted_beyond(write, tmp_path, capsys):
    file = write(memories=[{"type": "file_memory", "path": "${PLACE}"}], tools=["http_get"])
    word, near = f"write:{tmp_path}/notes", ["--set", "PLACE=.axil/notes"]
    text = file.read_text()
    file.write_text(text.replace('{"graph"', '{"vars": {"PLACE": "../notes"}, "graph"'))
    assert main(["lock", str(file), "--allow", word, "--allow", "network"]) == 0
    kept = json.loads(Path(f"{file}.lock").read_text())
    assert kept["wants"] == ["network", "write:../notes"]
    assert kept["allow"] == ["network", "write:../notes"]
    given = ["--input", "x", "--locked", "--allow", word, "--allow", "network"]
    assert main(["run", str(file), *given, *near]) == 2
    assert "AX737" in (reported := capsys.readouterr().err)
    assert "wants more than when it was locked: write:.axil/notes" in reported
    assert main(["run", str(file), *given]) == 0


def test_settings_of_a_strangers_file_do_nothing_that_needs_leave():
    """Not of those whose nodes are made of agents or whose runs start others, which take half of
    the time: ``make kits`` tries each distribution; nor of those whose own tests pass the kit.
    """
    of_agents = {"axil-devall", "axil-importers", "axil-ray", "axil-teams"}
    of_kits = {"axil-agent", "axil-control", "axil-core", "axil-files", "axil-models"}
    registry = default_registry()
    names = {each.distribution for each in registry.candidates()} - {"", *of_agents, *of_kits}
    assert confinement_faults(*sorted(names)) == {}


@pytest.mark.parametrize("setting", [{"env": {"PATH": "."}}, {"cwd": "elsewhere"}])
def test_a_server_that_is_allowed_by_its_name_is_no_other_program(write, setting):
    name = "./server" if "cwd" in setting else "server"
    file = write(tools=[{"type": "mcp", "command": [name], **setting}])
    with pytest.raises(AxilError, match=r"AX921.*which program"):
        run_sync(load(file).run("Hello", allow={f"mcp:{name}"}))


def test_the_key_of_a_search_goes_to_no_service_that_a_file_names(write, listener, monkeypatch):
    monkeypatch.setenv("SERPER_DEV_API_KEY", "sk-search")
    calls = [{"name": "web_search", "arguments": {"query": "x"}}]
    file = write(tools=[{"type": "web_search", "url": listener.url}])
    for allow, is_sent in (({"network"}, False), ({"network", "env:SERPER_DEV_API_KEY"}, True)):
        with Scripted([{"tool_calls": calls}, "fine"]).everywhere():
            run_sync(load(file, allow=allow).run("Hello", allow=allow))
        assert ("sk-search" in "".join(listener.seen)) is is_sent


def test_a_model_that_is_loaded_from_a_folder_is_code(write):
    pytest.importorskip("axil_chroma")
    embedder = {"type": "sentence_transformers", "model": "models/m"}
    file = write(retrievers=[{"type": "vector", "paths": ["docs"], "embedder": embedder}])
    assert "--allow code" in refused(file, "AX138")
    assert load(file, allow={"code"}).plan


def test_a_network_that_is_not_public_is_allowed_by_its_own_word(write, listener):
    file = write(tools=[{"type": "http_get", "allow_networks": ["127.0.0.1/8"]}])
    calls = [{"name": "http_get", "arguments": {"url": listener.url}}]
    for allow, is_asked in (({"network"}, False), ({"network", "net:127.0.0.0/8"}, True)):
        script = Scripted([{"tool_calls": calls}, "fine"])
        with script.everywhere():
            run_sync(load(file, allow=allow).run("Hello", allow=allow))
        assert ("AX877" in str(script.requests[-1])) is not is_asked


def test_a_file_writes_no_lines_of_its_own_into_the_list_of_its_wants(write, capsys):
    file = write(tools=[{"type": "mcp", "command": ["a\n  without leave:\n\x1b[2J", "b"]}])
    assert main(["check", str(file)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "without leave:" in line and "?" not in line]) == 0
    assert "\x1b" not in "".join(line for line in lines if line.startswith("    "))


@pytest.mark.parametrize(
    "node",
    [
        {"type": "subgraph", "config": {"type": "file", "config": {"path": "inner.json"}}},
        {
            "type": "map",
            "config": {"body": {"type": "subprocess:Popen", "config": {"args": ["touch", "here"]}}},
        },
        {
            "type": "horizontal",
            "config": {
                "members": {
                    "m": {"type": "subprocess:Popen", "config": {"args": ["touch", "here"]}}
                }
            },
        },
        {
            "type": "agent",
            "config": {
                "model": "scripted",
                "tools": [
                    {
                        "type": "agent",
                        "config": {
                            "name": "t",
                            "agent": {
                                "type": "subprocess:Popen",
                                "config": {"args": ["touch", "here"]},
                            },
                        },
                    }
                ],
            },
        },
        {
            "type": "passthrough",
            "wrappers": [
                {
                    "type": "fallback",
                    "config": {
                        "use": {"type": "subprocess:Popen", "config": {"args": ["touch", "here"]}}
                    },
                }
            ],
        },
    ],
    ids=["file", "map", "team", "tool", "wrapper"],
)
def test_what_is_inside_a_file_may_do_no_more_than_the_file(tmp_path, monkeypatch, capsys, node):
    """Also where the outermost file was granted something else."""
    monkeypatch.chdir(tmp_path)
    code = {"type": "subprocess:Popen", "config": {"args": ["touch", "here"]}}
    inner = {"version": 1, "graph": {"start": ["n"], "nodes": [{"id": "n", **code}]}}
    (tmp_path / "inner.json").write_text(json.dumps(inner))
    outer = tmp_path / "outer.json"
    outer.write_text(json.dumps({"graph": {"start": ["o"], "nodes": [{"id": "o", **node}]}}))
    for words in ((), ("import:json", "network", "env", "read", "write", "program:touch")):
        options = [each for word in words for each in ("--allow", word)]
        assert main(["run", str(outer), "--input", "x", "--journal", "off", *options]) != 0
        assert main(["check", str(outer), *options]) != 0
        assert "--allow import:subprocess" in capsys.readouterr().out
    assert not (tmp_path / "here").exists()


def test_a_run_goes_on_with_words_that_are_typed_or_that_its_user_gave(
    tmp_path, monkeypatch, capsys
):
    """Neither an answer, nor a fork, nor what a journal of others says of words widens them."""
    pytest.importorskip("axil_sqlite")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIVATE", "a-secret-of-mine")
    nodes = [
        {"id": "h", "type": "human", "config": {"description": "?"}},
        {"id": "s", "type": "literal", "config": {"content": "${PRIVATE}"}},
    ]
    graph = {"start": ["h"], "nodes": nodes, "edges": [{"from": "h", "to": "s"}], "end": ["s"]}
    (tmp_path / "flow.json").write_text(json.dumps({"version": 1, "graph": graph}))
    kept = ("--journal", str(tmp_path / "kept"))
    begun = main(
        ["run", "flow.json", "--input", "x", "--run-id", "r", "--allow", "env:PRIVATE", *kept]
    )
    assert begun == 3
    monkeypatch.setenv("AXIL_LEAVE_KEY_FILE", str(tmp_path / "key"))  # another user's
    for command in (["answer", "r", "yes"], ["resume", "r"], ["fork", "r", "--current"]):
        assert main(["runs", *command, *kept]) == 2, command
        assert "env:PRIVATE" in capsys.readouterr().err
    assert main(["runs", "resume", "r", "--allow", "env:PRIVATE", *kept]) == 3
    assert main(["runs", "answer", "r", "yes", *kept]) == 0  # kept for the next time
