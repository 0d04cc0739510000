"""Programs in MASFactory's vocabulary give what they give there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from . import programs_agents, programs_composed, programs_files, programs_graphs, programs_tasks
from .programs import PROGRAMS

MODULES = (programs_agents, programs_composed, programs_files, programs_graphs, programs_tasks)
"""The modules that enter programs into the table."""
THERE = json.loads((Path(__file__).parent / "programs.json").read_text("utf-8"))
"""The results of MASFactory, as they were recorded."""


@pytest.mark.third
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_masfactory_gives(name):
    assert json.loads(json.dumps(PROGRAMS[name](), default=str)) == THERE[name]


def test_every_program_was_recorded():
    assert THERE.keys() == PROGRAMS.keys()
