"""The programs of docs/how-to/come-from-other-frameworks.md: each pair in its order, axil's run on
a script, and none of them is longer than the other one.

Those of the others run where AXIL_CLIENTS names the folder of ``make clients``, against a service
that follows a script.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from axil_agent import Scripted
from axil_testing.stub import Act, Call, Stub
from tests.house.checkout import ROOT, text_of
from tests.house.test_docs import FENCE

PAGE = ROOT / "docs/how-to/come-from-other-frameworks.md"


class Pair(NamedTuple):
    theirs: str
    ours: str


def pairs() -> list[Pair]:
    blocks = [m["body"] for m in FENCE.finditer(text_of(PAGE)) if m["info"].startswith("python")]
    return [Pair(*blocks[at : at + 2]) for at in range(0, len(blocks), 2)]


def lines(program: str) -> int:
    return sum(bool(line.strip()) for line in program.splitlines())


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


RUNS: list[tuple[list[Any], str]] = [
    (["In the axil of another."], "In the axil of another.\n"),
    (['{"name": "London", "country": "UK"}'], "name='London' country='UK'\n"),
    ([call("balance"), "You have 7.5."], "You have 7.5.\n"),
    (["Buds sleep."], "Buds sleep.\n"),
    ([call("weather", city="Bergen"), "Yes, it rains."], "Yes, it rains.\n"),
    ([call("transfer_to_billing"), "I pass you on.", "It was right."], "It was right.\n"),
    (["no"], "Only homework.\n"),
    ([call("weather", city="Bergen"), "Yes."], "Yes.\n"),
    (["Hello.", "Ada."], "Ada.\n"),
    ([], "{'sent': True}\n"),
]
"""For each program what a model replies, and what the program prints."""


def test_there_are_ten_and_none_is_longer():
    counted = [(lines(each.ours), lines(each.theirs)) for each in pairs()]
    assert len(counted) == len(RUNS) == 10
    assert [each for each in counted if each[0] > each[1]] == []


@pytest.mark.parametrize("number", range(10))
def test_it_runs(number: int):
    replies, expected = RUNS[number]
    program = pairs()[number].ours
    printed = io.StringIO()
    script = Scripted(replies or ["unasked"])
    with script.everywhere(), contextlib.redirect_stdout(printed):
        code = compile(program, PAGE.name, "exec")
        exec(code, {"__name__": "__main__"})  # noqa: S102  # of a page of ours
    assert printed.getvalue() == expected
    assert len(script.requests) == len(replies)


def said(*acts: str | Call) -> list[Act]:
    """Answers in one piece: none of these programs asks for a stream."""
    return [
        Act(calls=(each,), is_whole=True)
        if isinstance(each, Call)
        else Act(text=each, is_whole=True)
        for each in acts
    ]


RAINS = Call(name="weather", arguments={"city": "Bergen"})
NO_HOMEWORK = '{"is_homework": false}'
THEIRS: list[tuple[str, list[Act], str]] = [
    ("responses", said("In the axil of another."), "In the axil of another.\n"),
    ("responses", said('{"name": "London", "country": "UK"}'), RUNS[1][1]),
    ("responses", said(Call(name="balance"), "You have 7.5."), "You have 7.5.\n"),
    ("responses", said("Buds sleep."), "Buds sleep.\n"),
    ("responses", said(RAINS, "Yes, it rains."), "Yes, it rains.\n"),
    ("responses", said(Call(name="transfer_to_billing"), "It was right."), "It was right.\n"),
    ("responses", said(NO_HOMEWORK, NO_HOMEWORK), "Only homework.\n"),  # both are asked at once
    ("chat", said(RAINS, "Yes."), "Yes.\n"),
    ("chat", said("Hello.", "Ada."), "Ada.\n"),
    ("chat", [], "{'letter': 'Dear Ada, …', 'sent': True}\n"),
]
"""For each program of the others the API that it asks, what it answers, and what is printed."""


@pytest.mark.parametrize("number", range(10))
def test_the_one_of_the_others_runs(number: int, tmp_path: Path):
    if not (clients := os.environ.get("AXIL_CLIENTS")):
        pytest.skip("AXIL_CLIENTS names no clients: make clients")
    dialect, acts, expected = THEIRS[number]
    with Stub(dialect) as server:
        server.say(*acts)
        done = subprocess.run(
            [Path(clients) / "python/bin/python", "-c", pairs()[number].theirs],
            env={
                "OPENAI_API_KEY": server.key,
                "OPENAI_BASE_URL": server.url,
                "OPENAI_AGENTS_DISABLE_TRACING": "1",  # it would send traces to OpenAI
                "PYTHONUTF8": "1",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        asked = len(server.requests)
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr
    assert asked == len(acts)
