"""The kernel is typed strictly. Most plugins are, too: `make types` takes longer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.internals import internal

from axil import Options


def pyright(
    root: Path, *arguments: str, timeout_seconds: float
) -> subprocess.CompletedProcess[str]:
    """Runs the type checker of this environment; skips the test where it cannot start (it needs
    Node, and fetches itself once).
    """
    program = Path(sys.executable).with_name("pyright")
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    try:  # a session of its own, so that the Node below it ends with it
        child = subprocess.Popen(
            [program, *arguments], cwd=root, env=environment, start_new_session=True, **pipes
        )
    except FileNotFoundError:
        pytest.skip("pyright is not installed")
    with child:
        try:
            reported, complained = child.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            (os.killpg if hasattr(os, "killpg") else os.kill)(child.pid, 9)
            pytest.skip(f"pyright did not answer within {timeout_seconds} s")
    return subprocess.CompletedProcess(child.args, child.returncode, reported, complained)


CORRECT = """# pyright: standard
from typing import TypedDict
from axil import Limits, RootGraph
from axil_control import Loop
from axil_files import load
from axil_journals import MemoryJournal
from axil_agent import Agent, SingleAgent

class Told(TypedDict):
    category: str

def upper(inputs: dict[str, str]) -> dict[str, str]:
    return {"text": inputs["text"].upper()}

async def counted(words: list[str]) -> int:
    return len(words)

async def asked() -> bool:
    return await SingleAgent("m", output_type=bool).run({"q": "?"})

told: Told = SingleAgent("m", output_type=Told).invoke({"q": "?"})
numbers: list[int] = SingleAgent("m", output_type=list[int]).invoke({"q": "?"})
upped: dict[str, str] = SingleAgent("m", output_type=upper).invoke({"q": "?"})
count: int = SingleAgent("m", output_type=counted).invoke({"q": "?"})
both: int | Told = SingleAgent[int | Told]("m", output_type=int | Told).invoke({"q": "?"})
fields: dict[str, object] = SingleAgent("m", output_keys=["a"]).invoke({"q": "?"})
graph = RootGraph("g", state=Told, limits=Limits(firings=9))
agent = graph.create_node(Agent, name="a", model="scripted", wrappers=["retry"])
agent.add_memory(None)
graph.create_node(upper, name="u", inline=True)
name: str = graph.create_node("literal", name="n", content="x")
loop = graph.create_node(Loop, name="l", max_iterations=3)
loop.edge_from_controller("x", ["text"], trigger=False)
graph.create_edge(agent, "u", {"text": "what to raise"}, when=lambda payload: True)
graph.edge_to_exit("u", ["text"])
result = graph.build().invoke({"category": "x"}, limits=Limits(firings=3), journal=MemoryJournal())
category: str = result.state["category"]
output, attributes = result
text = load("flow.yaml", functions="functions", allow=["code"]).invoke("hello").output
plain = RootGraph("p", attributes={"a": 1}).invoke({"a": 1}).output["a"]
"""
# One is not seen: settings of a class that `create_node` makes, since every class has its own.
SLIPS = """# pyright: standard
from typing import TypedDict
from axil import Limits, RootGraph
from axil_control import Loop
from axil_files import load
from axil_journals import MemoryJournal
from axil_agent import Agent, SingleAgent

class Told(TypedDict):
    category: str

def upper(inputs: dict[str, str]) -> dict[str, str]:
    return {"text": inputs["text"].upper()}

graph = RootGraph("g", state=Told)
number: int = SingleAgent("m", output_type=str).invoke({"q": "?"})  # slip
word: str = SingleAgent("m", output_type=upper).invoke({"q": "?"})  # slip
first: str = SingleAgent("m").invoke({"q": "?"})  # slip
agent = graph.create_node(Agent(), name="a")
RootGraph("h", atributes={"a": 1})  # slip
agent.add_memroy(None)  # slip
graph.create_edge(agent, "b", wehn=None)  # slip
graph.edge_from_entry(agent, trigger="no")  # slip
graph.create_node(Agent(instrctions="Be brief."), name="c")  # slip
graph.invoke({"category": "x"}, limits={"firings": 3})  # slip
graph.resume("r", journal=MemoryJournal(), answers=["allow"])  # slip
graph.invoke({"category": "x"}).ouput  # slip
graph.invoke({"category": "x"}).state["categroy"]  # slip
load("flow.yaml", functons="f")  # slip
RootGraph("i", cycles="alow")  # slip
graph.create_node(Agent(tools=upper), name="d")  # slip
graph.create_node(upper, name="e", wrapers=["retry"])  # slip
graph.create_node(Loop(max_iteration=3), name="f")  # slip
graph.edge_to_exit(agent, "text")  # slip
graph.create_edge(agent, "b", when=True)  # slip
graph.set_cycle_limit(agent, 3, "stop")  # slip
graph.run({"category": "x"}).output  # slip
graph.create_node(Agent, name="g", instrctions="Be brief.")  # slip, not seen
Limits(fireings=3)  # slip
"""


@pytest.fixture(scope="module")
def found(root, tmp_path_factory) -> dict[str, Any]:
    """The report of the type checker on the kernel and on programs that use it, from one run."""
    started = pyright(root, "--version", timeout_seconds=15)
    if started.returncode != 0:
        pytest.skip("pyright cannot start here")
    folder = tmp_path_factory.mktemp("programs")
    for name, text in (("correct.py", CORRECT), ("slips.py", SLIPS)):
        (folder / name).write_text(text)
    paths = ("core/src/axil/kernel", str(folder / "correct.py"), str(folder / "slips.py"))
    done = pyright(root, "--outputjson", "--pythonpath", sys.executable, *paths, timeout_seconds=45)
    return json.loads(done.stdout)


def problems(report: dict[str, Any], of: str = "") -> list[str]:
    """Return the errors in files of a name; without a name, those in the kernel."""
    return [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1} {each['message']}"
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
        and (Path(each["file"]).name == of if of else "core" in Path(each["file"]).parts)
    ]


def test_the_kernel_is_strictly_typed(found):
    assert found["summary"]["filesAnalyzed"] > 0
    assert problems(found) == []


def test_correct_use_is_clean_for_a_type_checker(found):
    assert problems(found, "correct.py") == []


def test_a_type_checker_finds_nine_of_ten_slips(found):
    planted = {n for n, line in enumerate(SLIPS.splitlines(), 1) if "# slip" in line}
    seen = {int(each.split(":")[1].split()[0]) for each in problems(found, "slips.py")}
    assert seen == {n for n in planted if "not seen" not in SLIPS.splitlines()[n - 1]}
    assert len(seen) >= 0.9 * len(planted)


@pytest.mark.skipif(
    os.environ.get("AXIL_HYPOTHESIS") != "thorough", reason="it reads all there is: make types"
)
def test_mypy_finds_as_many_slips_and_no_others(tmp_path):
    mypy = Path(sys.executable).with_name("mypy")
    for name, text in (("correct.py", CORRECT), ("slips.py", SLIPS)):
        (tmp_path / name).write_text(text)
    command = [mypy, "--python-executable", sys.executable, "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "correct.py", "slips.py"], cwd=tmp_path, capture_output=True, text=True
    )
    errors = [line for line in done.stdout.splitlines() if " error: " in line]
    planted = {n for n, line in enumerate(SLIPS.splitlines(), 1) if "# slip" in line}
    seen = {int(line.split(":")[1]) for line in errors if line.startswith("slips.py")}
    assert seen == {n for n in planted if "not seen" not in SLIPS.splitlines()[n - 1]}
    assert [line for line in errors if not line.startswith("slips.py")] == []


def test_the_options_of_runs_are_those_that_runs_take():
    assert set(internal("RunOptions").__annotations__) == set(Options.__dataclass_fields__)
