"""For every question ``--format json`` gives one JSON document and nothing beside it."""

from __future__ import annotations

import argparse
import os
from typing import Any

import pytest

from axil_plugins.command import Plugins
from axil_plugins.lock import Lock

TICK = '''
class Tick:
    """``acme.tick``: says it again."""

    capabilities = ("pure",)

    def run(self, messages):
        return messages
'''
FLOW = '{"graph": {"nodes": [{"id": "a", "type": "acme.tick"}], "edges": [], "start": ["a"]}}'

COMMANDS: dict[str, tuple[list[str], type, int]] = {
    "list": (["list"], dict, 0),
    "list of a kind": (["list", "--kind", "nodes"], dict, 0),
    "list of requirements": (["list", "--requirements"], list, 0),
    "show of a distribution": (["show", "acme-a"], dict, 0),
    "show of a component": (["show", "nodes:acme.tick"], dict, 0),
    "show of a schema": (["show", "nodes:literal", "--schema"], dict, 0),
    "show of an example": (["show", "nodes:literal", "--example"], dict, 0),
    "doctor": (["doctor", "acme-a"], dict, 0),
    "doctor that imports": (["doctor", "acme-a", "--import"], dict, 0),
    "why": (["why", "flow.json"], dict, 0),
    "why of something missing": (["why", "missing.json"], dict, 2),
    "freeze": (["freeze", "flow.json"], dict, 0),
    "freeze that writes": (["freeze", "flow.json", "--write"], dict, 0),
    "new": (["new", "acme-b", "--into", "."], dict, 0),
    "test": (["test", "acme-a"], dict, 0),
    "docs": (["docs", "acme-a"], dict, 0),
    "docs in files": (["docs", "acme-a", "--out", "pages"], dict, 0),
    "manifest": (["manifest", "acme-a"], list, 0),
    "manifest of two": (["manifest", "acme-a", "axil-files"], list, 0),
    "manifest that is stale": (["manifest", "acme-a", "--check"], list, 2),
    "manifest that is written": (["manifest", "acme-a", "--write"], list, 0),
    "lock": (["lock", "flow.json"], list, 0),
    "lock that has changed": (["lock", "flow.json", "--check"], list, 2),
}
"""The command, its output, and the exit code."""


@pytest.fixture
def tick(world, flow, monkeypatch):
    """A plugin, and a workflow that uses it."""
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:Tick"}, plugin={"acme-a": "acme_a"})
    world.package("acme_a", TICK)
    flow(FLOW, "flow.json")
    flow(FLOW.replace("acme.tick", "acme.gone"), "missing.json")
    path = os.pathsep.join([str(world.folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)  # for processes of their own
    return world


@pytest.mark.parametrize("said", COMMANDS)
def test_every_command_says_it_in_json(tick, axil, said):
    typed, shape, code = COMMANDS[said]
    if said == "lock that has changed":
        axil("lock", "flow.json")
        (tick.folder.parent / "flow.json").write_text(FLOW + "\n")
    done = axil(*([] if typed[0] == "lock" else ["plugins"]), *typed, "--format", "json")
    assert isinstance(done.data, shape), done.out
    assert done.code == code, done.err


def test_no_command_is_left_out():
    parser = argparse.ArgumentParser()
    Plugins().configure(parser)
    (parts,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    assert set(parts.choices) | {"lock"} == {typed[0] for typed, _, _ in COMMANDS.values()}
    lock: Any = argparse.ArgumentParser()
    Lock().configure(lock)
    for each in (*parts.choices.values(), lock):
        assert "--format" in each._option_string_actions
