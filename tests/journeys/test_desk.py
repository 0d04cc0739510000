"""A desk that reads contracts: a PDF in, a letter out, a person between.

The same files are then served, run over a table, evaluated, locked, built, submitted to a worker
and offered over MCP.
"""

from __future__ import annotations

import asyncio
import csv
from typing import Any

import pytest

from tests.journeys.person import LONG, Terminal

LEAVE = "--functions functions --allow code"
SCRIPT = "--model-script replies.yaml"
QUESTION = "May we sign, and is the notice clause in it?"


def paused(desk: Terminal, run: str = "contract") -> str:
    """Begin a run in one process; return the command that it says it is answered with."""
    line = f"axil run desk.yaml {LEAVE} {SCRIPT} --attach contract.pdf --run-id {run}"
    shown = desk.type(f'{line} --input "{QUESTION}" --prompts whole --progress', code=3)
    shown.shows("May this be sent?", "round 2", "Do not sign before a notice clause is in it.")
    shown.shows("count_days", "→ 364")
    return shown.find(r"The run is kept: (axil runs answer .*)")


def test_a_contract_is_read_by_three_and_a_person_approves_in_another_process(
    desk: Terminal,
) -> None:
    way = paused(desk)
    desk.type("axil runs list --status paused").shows("contract", "desk")
    desk.type("axil runs show contract").shows("waits for an answer", "May this be sent?")
    asked = desk.type("axil runs show contract --prompts")
    asked.shows("Every contract has a notice clause of 30 days.", "contract.pdf")
    assert "ReportLab" not in asked.text  # the model is shown the document, not its source
    done = desk.type(f"{way.replace('ANSWER', 'yes')} {SCRIPT}")
    assert done.out == "The letter is in letter.md.\n"
    letter = desk.folder / "axil-runs/contract/letter.md"
    done.shows("Files in", "letter.md", "made")
    assert letter.read_text("utf-8") == "# The contract\n\nDo not sign it yet.\n"
    desk.type("axil runs show contract").shows("contract desk done", "2 rounds", "approve")


def test_a_refusal_ends_without_a_letter_and_nothing_is_asked_twice(desk: Terminal) -> None:
    way = paused(desk)
    done = desk.type(way.replace("ANSWER", "no"))  # nothing behind it asks a model
    assert done.out == "Nothing was sent.\n"
    assert not (desk.folder / "axil-runs/contract/letter.md").exists()
    desk.type(way.replace("ANSWER", "yes"), code=2).shows("no question")


def test_a_run_is_forked_where_it_was_decided_and_both_are_compared(desk: Terminal) -> None:
    way = paused(desk)
    desk.type(way.replace("ANSWER", "no"))
    steps = desk.type("axil runs show contract --steps")
    decided = steps.find(r"(?m)^ +(\d+) +\S+  approve$")
    line = f"axil runs fork contract --at {decided} --as sent --route --allow code"
    forked = desk.type(f"{line} --output '\"yes\"'")
    way = forked.find(r"Resume it: (axil runs resume .*)")
    assert desk.type(f"{way} {SCRIPT}").out == "The letter is in letter.md.\n"
    desk.type("axil runs diff contract sent", code=1).shows("approve", "no", "yes")


def test_twenty_contracts_in_a_table_pause_and_go_on_where_they_were_answered(
    desk: Terminal,
) -> None:
    rows = "".join(f"Contract {n}: {QUESTION}\n" for n in range(1, 21))
    desk.write("rows.csv", "question\n" + rows.replace(",", ""))
    line = f"axil batch desk.yaml rows.csv {LEAVE} {SCRIPT}"
    shown = desk.type(line, code=1).shows("rows 20", "paused 20", "results rows.results.csv")
    way = shown.find(r"Answer with (axil runs answer .*)")
    assert desk.type(f"{way.replace('ANSWER', 'no')}").out == "Nothing was sent.\n"
    desk.type(line, code=1).shows("done 1", "paused 19")
    with (desk.folder / "rows.results.csv").open(encoding="utf-8", newline="") as file:
        results = list(csv.DictReader(file))
    assert results[0]["output"] == "Nothing was sent."
    assert [row["run.status"] for row in results] == ["done"] + ["paused"] * 19


def test_a_worker_executes_what_was_submitted(desk: Terminal) -> None:
    run = desk.type(f'axil submit desk.yaml {LEAVE} --input "{QUESTION}"').out.strip()
    desk.type("axil runs list").shows(run[:8])
    desk.type(f"axil worker --drain {LEAVE} {SCRIPT}")
    desk.type(f"axil runs show {run}").shows("desk paused", "May this be sent?")
    desk.type(f"axil runs answer {run} no --allow code").shows("Nothing was sent.")


def test_what_was_tried_is_compared_and_what_was_approved_is_held(desk: Terminal) -> None:
    shown = desk.type(f"axil eval run desk.yaml cases.yaml --node money {LEAVE} {SCRIPT}")
    shown.shows("price pass", "1 of 1 cases pass")
    desk.type(f"axil lock desk.yaml {LEAVE}").shows("desk.yaml.lock: written")
    held = f'axil run desk.yaml --locked {LEAVE} {SCRIPT} --input "{QUESTION}"'
    desk.type(held, code=3)
    text = (desk.folder / "desk.yaml").read_text("utf-8")
    desk.write("desk.yaml", text.replace("You are the critic", "You are the strict critic"))
    changed = desk.type(held, code=2).shows("desk.yaml")
    assert "lock" in changed.text


def test_an_editor_asks_the_desk_over_mcp(desk: Terminal) -> None:
    mcp = pytest.importorskip("mcp")

    async def asks(context: Any, params: Any) -> Any:
        assert params.message.startswith("May this be sent?")
        return mcp.types.ElicitResult(action="accept", content={"answer": "no"})

    async def call() -> Any:
        words = f"mcp serve desk.yaml {LEAVE} {SCRIPT}".split()
        server = mcp.StdioServerParameters(
            command=desk.program("axil"),
            args=words,
            env=desk.environment,
            cwd=desk.folder,
        )
        async with mcp.Client(mcp.stdio_client(server), elicitation_callback=asks) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["desk"]
            return await client.call_tool("desk", {"input": QUESTION})

    result = asyncio.run(call())
    assert result.structured_content["output"] == "Nothing was sent."


@pytest.mark.skipif(not LONG, reason="installs from a package index: make thorough")
def test_the_desk_is_built_and_runs_from_its_own_folder(desk: Terminal) -> None:
    desk.type(f"axil build desk.yaml {LEAVE}").shows("verified")
