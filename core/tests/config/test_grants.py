"""Grants: words, narrow and wide; paths; which are in force."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from pydantic import BaseModel, Field

from axil import ConfigError, Problem
from axil.plugin import (
    Grants,
    ReadPath,
    Secret,
    Want,
    WritePath,
    current_grants,
    decode_config,
    granted,
    noting_wants,
    refusals_of,
)


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("env", "env:A"),
        ("env:A", "env:A"),
        ("network", "net:example.org"),
        ("net:Example.org", "net:example.org"),
        ("code", "import:m"),
        ("code", "program:ffmpeg"),
        ("code", "mcp:server"),
        ("mcp", "mcp:server"),
        ("code", "mcp"),
    ],
)
def test_a_word_grants_what_is_narrower(word, what):
    assert Grants.of([word]).allows(what)


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("env:A", "env:AB"),
        ("env:A", "env"),
        ("mcp:server", "mcp"),
        ("mcp", "code"),
        ("network", "code"),
        ("import:m", "code"),
        ("import:m", "import:m.n"),
        ("code", "env:A"),
    ],
)
def test_a_word_grants_nothing_wider(word, what):
    assert not Grants.of([word]).allows(what)


@pytest.mark.parametrize("word", ["", "everything", "code:x", "read:", "file:x", "network:x"])
def test_an_unknown_word_is_refused(word):
    with pytest.raises(ConfigError, match="AX136"):
        Grants.of([word])


@pytest.mark.parametrize("kind", ["env", "import", "mcp", "net", "program", "read", "write"])
def test_the_words_that_a_refusal_proposes_are_accepted(kind):
    for word in (kind, f"{kind}:"):
        try:
            [granted] = Grants.of([word]).words
        except ConfigError as error:
            hint = error.problems[0].hint
            assert hint.startswith(f"Write {kind}:"), hint
            narrow, _, wide = (
                hint.removeprefix("Write ").removesuffix(" for all.").partition(", or ")
            )
            assert Grants.of([narrow, wide]).allows(narrow), hint
            assert word not in (narrow, wide)
        else:
            assert granted == kind


@pytest.mark.parametrize("given", ["..", "../x", "/etc/passwd", "link", "link/x", "a/../../x"])
def test_a_file_reads_below_its_folder_only(tmp_path, given):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="AX137"):
        Grants(folder=str(tmp_path / "in")).path(given, "read")


@pytest.mark.parametrize("given", ["a\0b", "a" * 5000 + "\udcff"])
def test_a_path_that_is_none_is_refused(tmp_path, given):
    with pytest.raises(ConfigError, match="AX137"):
        Grants(folder=str(tmp_path)).path(given, "read")


def test_a_file_writes_below_axil_only(tmp_path):
    grants, real = Grants(folder=str(tmp_path)), os.path.realpath(tmp_path)
    assert grants.path(".axil/x", "write") == f"{real}/.axil/x"
    assert grants.path("x", "read") == f"{real}/x"
    for given in ("x", ".axil/../x", ".axilx/y"):
        with pytest.raises(ConfigError, match="AX137"):
            grants.path(given, "write")


def test_a_folder_that_leads_elsewhere_is_no_leave_to_write_there(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/.axil").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="AX137"):
        Grants(folder=str(tmp_path / "in")).path(".axil/rc", "write")


@pytest.mark.parametrize("act", ["read", "write"])
@pytest.mark.parametrize(
    "given",
    [
        *(".axil/runs.db", ".axil/runs.db-wal", ".axil/runs.db-shm", ".axil/RUNS.db"),
        *(".axil/lock", ".axil/.gitignore", ".axil/values/ab/abcd", ".axil/attachments.json"),
        *("link", "kept/runs.db", ".axil/../.axil/lock", "{root}/.axil/runs.db"),
        *(".axil/runs.db/inside", "../in/.axil/runs.db"),
    ],
)
def test_what_axil_keeps_is_no_files_with_any_grant(tmp_path, given, act):
    home = tmp_path / "in"
    (home / ".axil").mkdir(parents=True)
    (home / "link").symlink_to(home / ".axil/runs.db")
    words = ["read", "write", "code", f"{act}:{home}/.axil/runs.db"]
    with pytest.raises(ConfigError, match=r"AX137 .*axil's own"):
        Grants.of(words, folder=str(home)).path(given.format(root=home), act)


@pytest.mark.parametrize("given", [".axil", ".axil/lock.jsonl", ".axil/notes/lock", "lock"])
def test_what_is_beside_what_axil_keeps_may_be_a_files(tmp_path, given):
    grants = Grants.of(["write"], folder=str(tmp_path))
    assert grants.path(given, "write") == f"{os.path.realpath(tmp_path)}/{given}"


def test_a_granted_path_begins_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    grants = Grants.of(["write:out"], folder=str(tmp_path / "in"))
    assert grants.path("../out/x", "write") == os.path.join(os.path.realpath(tmp_path), "out/x")
    with pytest.raises(ConfigError, match="AX137"):
        grants.path("../out/x", "read")


class Inner(BaseModel):
    path: WritePath = ""


class Settings(BaseModel):
    paths: list[ReadPath] = Field(default_factory=list)
    inner: list[Inner] = Field(default_factory=list)
    key: Secret | None = None
    keys: dict[str, Secret] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("raw", "id", "where"),
    [
        ({"paths": ["a", "../b"]}, "AX137", "x.paths[1]"),
        ({"inner": [{"path": ".axil/a"}, {"path": "b"}]}, "AX137", "x.inner[1].path"),
        ({"key": {"env": "K"}}, "AX138", "x.key"),
        ({"keys": {"n": "${K}"}}, "AX138", "x.keys.n"),
    ],
)
def test_settings_of_a_file_are_confined_where_they_are_decoded(tmp_path, raw, id, where):
    assert decode_config(Settings, raw, "x")
    with granted(Grants(folder=str(tmp_path))), pytest.raises(ConfigError) as caught:
        decode_config(Settings, raw, "x")
    assert [(each.id, each.where) for each in caught.value.problems] == [(id, where)]


def test_a_secret_of_a_file_is_not_resolved_without_leave(monkeypatch):
    monkeypatch.setenv("K", "sk")
    with granted(Grants()):
        secret = Secret("${K}")
    with pytest.raises(ConfigError, match="AX138"):
        secret.resolve()
    with pytest.raises(ConfigError, match="AX138"):
        Secret(secret).resolve()
    with granted(Grants.of(["env:K"])):
        assert Secret("${K}").resolve().get_secret_value() == "sk"
    assert Secret("${K}").resolve().get_secret_value() == "sk"


def test_grants_are_in_force_within_the_with_only():
    given = Grants()
    with granted(given):
        assert current_grants() is given
        with granted(None):
            assert current_grants() is None
    assert current_grants() is None


@pytest.mark.parametrize(
    ("word", "host", "is_granted"),
    [
        ("net:api.example.org", "API.example.org.", True),
        ("net:api.example.org", "example.org", False),
        ("net:api.example.org", "x.api.example.org", False),
        ("net:*.example.org", "a.b.example.org", True),
        ("net:*.example.org", "example.org", False),
        ("net:*.example.org", "badexample.org", False),
        ("net:*.example.org", "example.org.evil.net", False),
        ("net:[::1]", "::1", True),
        ("network", "anything.example.org", True),
    ],
)
def test_a_host_is_granted_by_its_name_or_by_what_is_above_it(word, host, is_granted):
    assert Grants.of([word]).allows(f"net:{host}") is is_granted


@pytest.mark.parametrize(
    "word", ["net:*", "net:*.", "net:https://h", "net:h:80", "net:a*.h", "net:h/x"]
)
def test_what_is_no_host_cannot_be_granted(word):
    with pytest.raises(ConfigError, match="AX136"):
        Grants.of([word])


def test_wants_are_gathered_and_nothing_is_refused_meanwhile(tmp_path):
    grants = Grants.of(["env:A"], folder=str(tmp_path))
    real = os.path.realpath(tmp_path)
    with noting_wants() as wants, granted(grants):
        made = decode_config(Settings, {"inner": [{"path": "/etc/x"}], "paths": ["x"]}, "here")
        assert made.inner[0].path == f"{real}/.axil/not-granted"
        Secret("${A}").permit("there")
        Secret("${B}").permit("there")
        with pytest.raises(ConfigError, match="AX138"):
            Secret("${B}").resolve({"B": "value"}, "there")
        with pytest.raises(ConfigError, match="AX138"):
            grants.need("import:m", "it would import m.")
    assert [(each.word, each.status) for each in wants] == [
        (f"read:{real}/x", "own"),
        ("write:/etc/x", "missing"),
        ("env:A", "granted"),
        ("env:B", "missing"),
        ("env:B", "missing"),
        ("import:m", "missing"),
    ]
    assert [problem.id for problem in refusals_of(wants)] == ["AX137", "AX138", "AX138"]


def test_a_refusal_that_a_file_and_its_component_have_is_reported_once_as_the_file_has_it():
    problem = Problem("AX138", "f.yaml:3", "it tries to read A.", "Allow it; or give a value.")
    again = replace(problem, hint="Allow it.")
    wants = [Want(word="env:A", status="missing", problem=each) for each in (problem, again)]
    assert refusals_of(wants) == [problem]
