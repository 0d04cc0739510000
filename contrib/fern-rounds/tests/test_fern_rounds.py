"""It counts the rounds of its own loop, in its own run, and passes the kit."""

from __future__ import annotations

from pathlib import Path

import axil_files
from axil_testing.kit import NodeKit
from fern_rounds import Rounds

FLOW = Path(__file__).parent.parent / "examples" / "flow.json"


class TestRounds(NodeKit):
    component = Rounds
    config = {"most": 2, "label": "{round}: "}  # noqa: RUF012  # the kit's own attribute


def test_a_loop_turns_as_often_as_it_says():
    flow = axil_files.load(FLOW)
    for _ in range(2):
        assert flow.invoke("hello")[0] == "3 2 1 hello"
