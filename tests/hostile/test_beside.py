"""Files beside a workflow are data, too: datasets, locks, drafts and recordings that mean harm
touch nothing outside, and give no leave.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any

import pytest
from tests.internals import internal

from axil_cli import DraftRecord
from axil_cli.main import main

from .harness import CANARY, Scene, observing, tree

pytestmark = pytest.mark.third
RECORD = internal("draft_record").RECORD
Data = dict[str, Any]
OUT, ENV = "../outside/secret", "${PRIVATE_TOKEN}"
ODD = "\x1b]0;taken\x07\u202etxt\x1b[2J"
CODE = {"type": "function", "name": "strange_module:node"}
RUN = ("--input", "Hello", "--journal", "off", "--no-progress")


def case(**more: Any) -> Data:
    return {"cases": [{"name": "one", "inputs": "x", "expected": "fine", **more}]}


def scored(*scorers: Any) -> Data:
    return {"scorers": list(scorers), **case()}


DATASETS: dict[str, Data | str] = {
    "a name with signs of terminals": case(name=ODD),
    "an input that is a path": case(inputs={"message": OUT, "path": OUT}),
    "an input that is a variable": case(inputs=ENV, expected=ENV),
    "a file outside": case(files=[OUT]),
    "a file outside as an attachment": case(attach=OUT),
    "an expectation outside": case(expected={"path": OUT}),
    "metadata with a variable": case(metadata={"kind": ENV, ODD: OUT}),
    "a scorer that is code": scored(CODE),
    "a scorer by its import path": scored("strange_module:node"),
    "a scorer with code inside": scored({"type": "python", "code": "open('taken','w')"}),
    "a scorer with a schema elsewhere": scored(
        {"type": "schema", "schema": {"$ref": "file:///etc/shadow"}}
    ),
    "a scorer with a schema of a page": scored(
        {"type": "schema", "schema": {"$ref": "http://127.0.0.1:9/x"}}
    ),
    "a scorer without end": scored({"type": "regex", "pattern": "(a|aa)+$"}),
    "a scorer too large": scored({"type": "regex", "pattern": "((a{99}){99}){99}"}),
    "a judge with a program": scored(
        {"type": "judge", "model": {"type": "scripted", "path": OUT}, "rubric": ENV}
    ),
    "many cases of one name": {"cases": case()["cases"] * 300},
    "cases in cases": {"cases": [{"name": "a", "inputs": json.loads("[" * 60 + "]" * 60)}]},
    "lines of nothing": "\n" * 100_000,
}


def lock(**more: Any) -> Data:
    return {"lock": 1, "axil": "0.1.0", "distributions": {}, "files": {}, "outside": {}, **more}


LOCKS: dict[str, Data | str] = {
    "a file outside": lock(files={OUT: {"sha256": "0" * 64}}),
    "a file of the system": lock(files={"/etc/shadow": {"sha256": "0" * 64}}),
    "leave that nobody gave": lock(allow=["code", "network"], wants=["code"]),
    "names with signs of terminals": lock(distributions={ODD: {"version": ODD, "record": ODD}}),
    "a distribution that is a path": lock(distributions={OUT: {"version": "1", "record": "x"}}),
    "a server of its own": lock(outside={ODD: {"server": ENV, "tools": {ODD: {"x": ODD}}}}),
    "models": lock(models=[OUT, ENV]),
    "nothing": "{}",
    "no end": '{"lock": 1, "files": {"a": ' * 20_000,
    "numbers": lock(files={"flow.json": 1e308}, distributions=[1, 2]),
}
DRAFTS: dict[str, Data | str] = {
    "a text that is code": {"text": json.dumps({"graph": {"nodes": [{"id": "a", **CODE}]}})},
    "a text that reads outside": {
        "text": json.dumps(
            {
                "graph": {
                    "nodes": [
                        {
                            "id": "a",
                            "type": "subgraph",
                            "config": {"type": "file", "config": {"path": "../outside/inner.json"}},
                        }
                    ],
                    "start": ["a"],
                }
            }
        )
    },
    "a file outside": {"text": "x", "file": OUT, "path": OUT},
    "signs of terminals": {"text": ODD, "goal": ODD, "talk": [ODD]},
    "a variable": {"text": ENV, "goal": ENV},
    "no end": '{"text": ' * 50_000,
}
RECORDINGS = {
    "signs of terminals": json.dumps({"kind": ODD, "reply": ODD}),
    "a path": json.dumps({"path": OUT, "file": OUT}),
    "nested": "[" * 100_000,
    "numbers": "9" * 10_000,
}


def attacked(scene: Scene, *commands: list[str], sends: bool = False) -> str:
    """Run commands; hold that nothing outside was touched, and return what they said. With
    ``sends`` they may connect.
    """
    out, told = io.StringIO(), io.StringIO()
    before = tree(scene.outside)
    with (
        observing(scene.outside) as seen,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(told),
    ):
        codes = [main(each) for each in commands]
    assert [each for each in seen if not (sends and each.startswith("socket."))] == []
    assert tree(scene.outside) == before
    assert not (scene.flows / "taken").exists()
    assert set(codes) <= {0, 1, 2, 3, 4}
    said = out.getvalue() + told.getvalue()
    assert CANARY not in said, said
    assert "Traceback (most recent call last)" not in said, said
    assert not any(sign in told.getvalue() for sign in "\x1b\x07\u202e")
    assert "strange_module" not in sys.modules
    return said


def text(given: Data | str) -> str:
    return given if isinstance(given, str) else json.dumps(given)


@pytest.mark.parametrize("name", DATASETS)
def test_a_hostile_dataset_is_data(scene: Scene, name: str):
    flow = scene.agent()
    cases = scene.write(text(DATASETS[name]), "cases.json")
    attacked(scene, ["eval", "run", str(cases), str(flow), "--out", ".axil/report.json"])


@pytest.mark.parametrize("name", LOCKS)
def test_a_hostile_lock_gives_no_leave(scene: Scene, name: str):
    flow = scene.agent()
    scene.write(text(LOCKS[name]), "flow.json.lock")
    said = attacked(scene, ["run", str(flow), "--locked", *RUN], ["lock", "--check", str(flow)])
    assert "AX736" in said or "AX737" in said


@pytest.mark.parametrize("name", DRAFTS)
def test_a_hostile_draft_is_data(scene: Scene, name: str):
    scene.write(text(DRAFTS[name]), RECORD)
    with contextlib.suppress(ValueError):
        found = DraftRecord.read(scene.flows)
        file = scene.write(getattr(found, "text", "") or "", "drafted.json")
        attacked(scene, ["check", str(file)], ["run", str(file), *RUN])
    attacked(scene, ["draft", "--model", "scripted", "x"])


@pytest.mark.parametrize("key", ["run_on", "allow", "replies"])
def test_a_recording_with_a_key_that_is_not_known_is_refused(scene: Scene, key: str):
    """A line that a person wrote; what a later version wrote has a checksum."""
    flow = scene.agent()
    told = scene.flows / ".axil/told.jsonl"
    attacked(scene, ["run", str(flow), "--record", str(told), *RUN])
    exchange = json.loads(told.read_text())
    del exchange["checksum"]
    told.write_text(json.dumps(exchange) + "\n")
    assert "fine" in attacked(scene, ["run", str(flow), "--replay", str(told), *RUN])
    told.write_text(json.dumps({**exchange, key: OUT}) + "\n")
    said = attacked(scene, ["run", str(flow), "--replay", str(told), *RUN])
    assert "AX663" in said
    assert key in said


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_hostile_recording_is_data(scene: Scene, name: str):
    flow = scene.agent()
    told = scene.write(RECORDINGS[name], "told.jsonl")
    attacked(scene, ["run", str(flow), "--replay", str(told), *RUN])
