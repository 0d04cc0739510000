"""Plugins of strangers, from wheels beside ours in an empty environment: found by name, used in one
workflow, and nothing else there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from axil.plugin import Policy, Registry

from ..internals import internal

build, read = internal("builds").build, internal("build_settings").read

REPLIES = {
    "rules": [
        {"match": {"user_contains": "between a stem and a leaf"}, "replies": ["a bud", "a leaf"]}
    ],
    "default": "nothing",
}
FLOW = {
    "graph": {
        "id": "strangers",
        "nodes": [
            {
                "id": "answer",
                "type": "agent",
                "config": {
                    "model": {"type": "scripted", "config": REPLIES},
                    "retrievers": [
                        {
                            "type": "fern.glossary",
                            "config": {"terms": {"axil": "the angle between a stem and a leaf"}},
                        }
                    ],
                },
            },
            {
                "id": "count",
                "type": "fern-rounds/fern.rounds",
                "config": {"most": 2, "label": "axil {round}: "},
            },
            {"id": "out", "type": "passthrough"},
        ],
        "edges": [
            {"from": "answer", "to": "count"},
            {
                "from": "count",
                "to": "answer",
                "condition": {"type": "expression", "config": {"expression": "not message.last"}},
            },
            {
                "from": "count",
                "to": "out",
                "condition": {"type": "expression", "config": {"expression": "message.last"}},
            },
        ],
        "start": ["answer"],
        "end": ["out"],
    }
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strangers")
    (folder / "strangers.json").write_text(json.dumps(FLOW))
    return folder, build(read([str(folder / "strangers.json")]), Registry(Policy()), folder / "out")


def test_strangers_are_installed_from_wheels_beside_ours(built):
    folder, made = built
    assert made.plan.roots["fern-rounds"] == ("nodes:fern-rounds/fern.rounds",)
    assert made.plan.roots["fern-glossary"] == ("context:fern.glossary",)
    wheels = {file.name.split("-")[0] for file in (folder / "out" / "wheels").iterdir()}
    assert {
        "fern_rounds",
        "fern_glossary",
        "axil_core",
        "axil_agent",
        "axil_control",
        "axil_models",
    } <= wheels
    assert made.report["verified"]["installed"].keys() == {*made.plan.distributions, "strangers"}
    assert made.report["verified"]["faults"] == []


def test_a_workflow_uses_both(built, tmp_path):
    folder, _ = built
    environment = {
        "PATH": os.environ["PATH"],
        "AXIL_BUILD_CACHE": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
    }
    command = [
        sys.executable,
        "-I",
        folder / "out" / "strangers.pyz",
        "--input",
        "what is an axil?",
    ]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.stdout, done.returncode) == ("axil 2: a leaf\n", 0), done.stderr
