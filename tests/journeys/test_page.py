"""A person at the page: with keys where there is a Chromium, by the API where there is none."""

from __future__ import annotations

import shutil
from typing import Any

from tests.journeys.person import ROOT, Server, Terminal

LEAVE = "--functions functions --allow code --model-script replies.yaml"
QUESTION = "May we sign, and is the notice clause in it?"


def uploaded(server: Server, desk: Terminal) -> str:
    ways: dict[str, Any] = {"params": {"name": "contract.pdf"}}
    ways["content"] = (desk.folder / "contract.pdf").read_bytes()
    return server.http.post("/v1/files", **ways).raise_for_status().json()["file_id"]


def answered(server: Server, run: str, text: str, chromium: Any) -> None:
    """Answer the open question of a run: in the page, by keys alone, where there is one."""
    [question] = server.get(f"/v1/runs/{run}")["questions"]
    if chromium is None:
        server.post(f"/v1/runs/{run}/answers", {"answers": {question["id"]: text}})
        return
    page = chromium.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{server.address}/#token={server.token}")
    page.get_by_role("heading", name="Runs").wait_for()
    page.goto(f"{server.address}/#run={run}")
    asked = page.get_by_role("region", name="question")
    asked.get_by_text("May this be sent? Answer yes or no.").wait_for()
    asked.get_by_label("answer").focus()
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.get_by_text("done", exact=True).first.wait_for()
    page.close()


def test_a_served_desk_reads_an_upload_and_a_person_approves_on_the_page(
    desk: Terminal, chromium: Any
) -> None:
    server = Server(desk, f"axil serve desk.yaml {LEAVE}")
    begun = {"workflow": "desk", "input": QUESTION, "files": [uploaded(server, desk)]}
    run = server.post("/v1/runs", begun)["run_id"]
    server.ended(run, status="paused")
    answered(server, run, "yes", chromium)
    assert server.ended(run)["output"] == "The letter is in letter.md."
    assert "letter.md" in server.http.get(f"/v1/runs/{run}/files").text
    server.program.stop()
    # what the page did is what the terminal shows
    desk.type(f"axil runs show {run}").shows("desk done", "The letter is in letter.md.")


def test_a_run_of_the_terminal_is_answered_on_the_page_of_a_server_begun_later(
    desk: Terminal, chromium: Any
) -> None:
    desk.type(f'axil run desk.yaml {LEAVE} --run-id later --input "{QUESTION}"', code=3)
    server = Server(desk, f"axil serve desk.yaml {LEAVE}")
    answered(server, "later", "no", chromium)
    assert server.ended("later")["output"] == "Nothing was sent."


def test_a_server_that_was_killed_goes_on_with_its_runs(terminal: Terminal, chromium: Any) -> None:
    shutil.copy(ROOT / "examples/human.yaml", terminal.folder)
    first = Server(terminal, "axil serve human.yaml")
    run = first.post("/v1/runs", {"workflow": "human", "input": "x"})["run_id"]
    first.ended(run, status="paused")
    first.kill()
    second = Server(terminal, "axil serve human.yaml")
    answered(second, run, "yes", chromium)
    assert second.ended(run)["output"] == "Sent."


def test_a_folder_with_a_broken_file_says_which_file_and_where(terminal: Terminal) -> None:
    shutil.copytree(ROOT / "examples", terminal.folder / "flows")
    terminal.write("flows/broken.yaml", "version: 1\ngraph: {start: [a], nodes: [{id: a}]}\n")
    program = terminal.start("axil serve flows --port 0 --allow code")
    program.find("broken.yaml:2")
