"""The kernel is typed strictly. Most plugins are, too: `make types` takes longer."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.house.publics import public_anys
from tests.internals import internal

from axil import Options
from axil.plugin import NodeOptions
from axil_agent import Agent


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
from typing import Annotated, Literal, TypedDict
from axil import Limits, Result, RootGraph
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
both: int | Told = SingleAgent("m", output_type=int | Told).invoke({"q": "?"})
verdict: Literal["yes", "no"] = SingleAgent("m", output_type=Literal["yes", "no"]).invoke("?")
rated: int = SingleAgent("m", output_type=Annotated[int, "from 1 to 5"]).invoke("?")
words: dict[str, object] = SingleAgent("m", output_type=None).invoke("?")
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

class Topic(TypedDict):
    topic: str

class Brief(TypedDict):
    text: str

brief = RootGraph[Topic, Brief]("brief")
briefed: Result[Brief] = brief.invoke({"topic": "axils"})
line: str = briefed.output["text"]
told_again: Result[Told] = graph.build().invoke(Told(category="x"))

async def both_ways(graph: RootGraph[Topic, Brief]) -> str:
    return (await graph.run({"topic": "axils"})).output["text"]
"""
SLIPS = """# pyright: standard
from typing import Literal, TypedDict
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
yes: Literal["yes"] = SingleAgent("m", output_type=Literal["yes", "no"]).invoke("?")  # slip
whole: int = SingleAgent("m", output_type=int | str).invoke("?")  # slip
SingleAgent("m", output_type=42)  # slip
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
graph.create_node(Agent, name="g", instrctions="Be brief.")  # slip
Limits(fireings=3)  # slip
brief = RootGraph[Told, Told]("brief")
brief.invoke({"categroy": "x"})  # slip
brief.invoke("hello")  # slip
brief.invoke({"category": "x"}).output["categroy"]  # slip
number = 1 + brief.invoke({"category": "x"}).output["category"]  # slip
"""


SETTINGS = """# pyright: standard
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict
from axil import CustomNode, Graph, Limits, RootGraph
from axil_agent import Agent, AgentSwitch, Cached, DynamicAgent, HumanNode, SingleAgent
from axil_agent import HistoryMemory, Reflection, Scripted
from axil_context import CohereEmbedder, FactMemory, FileMemory, HybridRetriever, KeywordRetriever
from axil_context import ModelReranker, RerankedRetriever, StoreRetriever, VectorRetriever
from axil_control import Loop, LogicSwitch, Map, NodeTemplate, Tree
from axil_mcp import MCPTools
from axil_models import ContextBlock, ContextQuery, Hit, ProviderTool, Row
from axil_openai import OpenAIModel
from axil_process import ProcessExecutor
from axil_sqlite import SqliteJournal
from axil_teams import Debate
from axil_wrappers import Cache, Fallback, FallbackModel, Guarded, Limit, Retry, Timeout, Write

class Told(TypedDict):
    category: str

class Mine:
    def __init__(self, size: int = 1) -> None:
        self.size = size

    def run(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return inputs

class Rounds(Loop):
    def __init__(self, name: str, step: int) -> None:
        super().__init__(name, step)

class Curt(Agent):
    pass

class Spoken:
    def invoke(self, messages: list[Any], tools: Any, settings: Any) -> str:
        return "yes"

class Lengths:
    name = "lengths"
    dimensions: int | None = 1

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(len(text))] for text in texts]

    async def rerank(self, query: str, texts: Sequence[str], ctx: Any = None) -> list[float]:
        return [0.0 for text in texts]

class Rows:
    def upsert(self, rows: Sequence[Row]) -> None: ...
    def delete(self, ids: Sequence[str]) -> None: ...
    def marks(self, tags: Sequence[str]) -> dict[str, str]:
        return {}
    async def search(self, vector: Sequence[float], top_k: int, tags: Sequence[str]) -> list[Hit]:
        return []

class Notes:
    def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        return []
    async def put(self, blocks: Sequence[ContextBlock]) -> None: ...
    def delete(self, blocks: Sequence[ContextBlock]) -> None: ...

class NoNames:
    def check(self, text: str, ctx: object) -> None: ...

def add(a: int, b: int) -> int:
    return a + b

model = Scripted(["yes"])
graph = RootGraph("g", state=Told)
plain = RootGraph("p")
agent: Agent = plain.create_node(
    Agent, "a", model, "Be brief.", tools=[add, "measure_text", MCPTools(command=["notes"])],
    memories=HistoryMemory(), retrievers=[KeywordRetriever(paths=["docs"]), "keyword"],
    pull_keys={"n": ""}, wrappers=[Retry(tries=3, on=[ValueError, "OSError"]), Timeout(seconds=5)],
    thinking=Reflection(after="Shorten it."), formatters=["paragraphs", "json"], output_type=Told,
)
curt: Curt = plain.create_node(Curt, name="curt", model=Spoken(), inline=True)
told: DynamicAgent = plain.create_node(DynamicAgent, "d", model, "Usual.", instruction_key="how")
plain.create_node(HumanNode, "person", prompt="Well?", fields={"x": ""}, lane="human")
plain.create_node(AgentSwitch, name="s", model={"type": "openai"}, routes={"a": "It is."})
loop: Loop = plain.create_node(Loop, "l", max_iterations=2, wrappers=[Write(fields={"a": 1})])
inner: Graph = plain.create_node(Graph, "i", state=Told, cycles="allow", inline=False)
mine: Mine = plain.create_node(Mine, name="m", size=3, collect="list")
turns: Rounds = plain.create_node(Rounds, name="r", step=3)
plain.create_node(CustomNode, name="c", forward=lambda m: m, inline=True)
plain.create_node(LogicSwitch, name="w", routes={"a": lambda m: True})
plain.create_node(NodeTemplate(Agent, model=model), name="t", instructions="Be kind.")
plain.create_node(Agent(model, tools=[agent]), name="o", lane="x")
debate: Debate = plain.create_node(Debate, name="debate", members=[agent, agent], rounds=2)
plain.create_node("agent", name="f", model="openai", instructions="Be brief.")
plain.create_node(add, name="add", inline=True)
made = [
    Map(over="items", split="regex"), Tree(group_size=3, edges=["a"]), Limit(concurrency=2),
    Fallback(value={"n": 0}, on_status=[500]), Guarded(input=["no_secrets"]), Cached(model),
    FileMemory(path="m.jsonl", namespace=["user"]), HybridRetriever(providers=["keyword"]),
    StoreRetriever(store="memory", embedder="lexical"), ProcessExecutor(lanes=["slow"]),
    StoreRetriever(store=Rows(), embedder=Lengths()), VectorRetriever(embedder=Lengths()),
    HybridRetriever(providers=[Notes(), "keyword", KeywordRetriever()]), FactMemory(index=Notes()),
    RerankedRetriever(provider=Notes(), reranker=Lengths()), FileMemory(path="m", index=Notes()),
    RerankedRetriever(provider={"type": "keyword"}, reranker=ModelReranker(model=model)),
    VectorRetriever(embedder=CohereEmbedder("m", api_key="k", dimensions=8)), Cached(Spoken()),
    FallbackModel([model, OpenAIModel("m", profile="ollama"), "openai"], on_status=[503]),
    OpenAIModel(model_name="m", api_key={"env": "K"}, invoke_settings={"temperature": 0.0}),
    Guarded(input=[NoNames(), {"type": "pii"}]), ProviderTool("computer", act=add),
    SqliteJournal(Path("runs")), SqliteJournal("runs"), SqliteJournal(folder="runs"),
    KeywordRetriever(documents=[{"text": "A leaf."}]), Cached("openai", keep=False),
    Map(split={"type": "regex", "pattern": ";"}), MCPTools(url="https://x", token={"env": "T"}),
]
"""
SLIPS_IN_SETTINGS = """# pyright: standard
from typing import TypedDict
from axil import Limits, Result, RootGraph
from axil_agent import Agent, AgentSwitch, Cached, DynamicAgent, HumanNode, Scripted, SingleAgent
from axil_context import FactMemory, FileMemory, HybridRetriever, KeywordRetriever
from axil_context import RerankedRetriever, StoreRetriever, VectorRetriever
from axil_control import Loop, Map
from axil_mcp import MCPTools
from axil_models import ProviderTool
from axil_openai import OpenAIModel
from axil_wrappers import Cache, FallbackModel, Guarded, Retry, Timeout

class Told(TypedDict):
    category: str

class Words:
    async def embed(self, texts: list[str]) -> list[str]:
        return texts

model = Scripted(["yes"])
found = KeywordRetriever(paths=["docs"])
graph = RootGraph("g", state=Told)
plain = RootGraph("p")
VectorRetriever(embedder=model)  # slip
VectorRetriever(embedder=Words())  # slip
StoreRetriever(store=found)  # slip
FactMemory(index=model)  # slip
FileMemory(path="notes.jsonl", index=42)  # slip
HybridRetriever(providers=[model])  # slip
RerankedRetriever(provider=found, reranker=found)  # slip
RerankedRetriever(provider=None, reranker="model")  # slip
Cached(found)  # slip
Cached(model=found, keep=True)  # slip
FallbackModel([found])  # slip
Guarded(input=[model])  # slip
ProviderTool("computer", act=42)  # slip
MCPTools(command=["notes"], sampling_model=found)  # slip
OpenAIModel("m", temperature=0.5)  # slip
OpenAIModel("m", api_key=42)  # slip
Agent(model, memories=model)  # slip
Agent(model, memories=[Words()])  # slip
Agent(model, tools=[found, 42])  # slip
Agent(model, retrievers=[42])  # slip
Agent(found)  # slip
plain.create_node(Agent, "m", name="mem", memories=[model])  # slip
plain.create_node(Agent, "m", name="ret", retrievers=Words())  # slip
plain.create_node(Agent, "m", name="too", tools=[42])  # slip
plain.create_node(Agent, name="mod", model=found)  # slip
Agent(42)  # slip
Agent("m", instruction="Be brief.")  # slip
agent = graph.create_node(Agent, "m", name="a")
plain.create_node(Agent, "m", name="b", temperature=0.5)  # slip
plain.create_node(Agent, name="c", max_turns="many")  # slip
plain.create_node(DynamicAgent, name="d", instruction_keys="how")  # slip
plain.create_node(HumanNode, name="e", promt="Well?")  # slip
plain.create_node(AgentSwitch, name="f", rutes={"a": "It is."})  # slip
plain.create_node(Loop, name="l", max_iteration=3)  # slip
SingleAgent("m", output_types=str)  # slip
SingleAgent("m", instruction="Be brief.", output_type=str)  # slip
Retry(attempt=3)  # slip
Timeout(seconds="5 s")  # slip
Cache(ttl=60)  # slip
Map(ovr="items")  # slip
FileMemory(paht="notes.jsonl")  # slip
MCPTools(comand=["notes"])  # slip
Limits(second=5)  # slip
wrong: Result[int] = graph.invoke({"category": "x"})  # slip
graph.create_edge(agent, "b", {"categroy": ""})  # slip, not seen: no type has the names of keys
graph.invoke({"categroy": "x"})  # slip, not seen: an input may hold a part of the state
"""
PROGRAMS = {
    "correct.py": CORRECT,
    "slips.py": SLIPS,
    "settings.py": SETTINGS,
    "slips_in_settings.py": SLIPS_IN_SETTINGS,
}


LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
thorough = pytest.mark.skipif(not LONG, reason="it reads all there is: make types")


@pytest.fixture(scope="module")
def found(root, tmp_path_factory) -> dict[str, Any]:
    """The report of the type checker on programs that use axil and, in ``make types``, on the
    kernel, from one run.
    """
    started = pyright(root, "--version", timeout_seconds=60)
    if started.returncode != 0:
        pytest.skip("pyright cannot start here")
    folder = tmp_path_factory.mktemp("programs")
    for name, text in (("correct.py", CORRECT), ("slips.py", SLIPS)):
        (folder / name).write_text(text)
    kernel = ["core/src/axil/kernel"] if LONG else []
    paths = (*kernel, str(folder / "correct.py"), str(folder / "slips.py"))
    done = pyright(
        root, "--outputjson", "--pythonpath", sys.executable, *paths, timeout_seconds=300
    )
    return json.loads(done.stdout)


def problems(report: dict[str, Any], of: str = "") -> list[str]:
    """Return the errors in files of a name; without a name, those in the kernel."""
    return [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1} {each['message']}"
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
        and (Path(each["file"]).name == of if of else "core" in Path(each["file"]).parts)
    ]


@thorough
def test_the_kernel_is_strictly_typed(found):
    assert found["summary"]["filesAnalyzed"] > 0
    assert problems(found) == []


def test_correct_use_is_clean_for_a_type_checker(found):
    assert problems(found, "correct.py") == []


def test_a_type_checker_finds_each_slip(found):
    assert lines_of(problems(found, "slips.py"), "slips.py") == planted(SLIPS)


def lines_of(report: Sequence[str], of: str) -> set[int]:
    """Return the lines of a program at which a report begins."""
    return {int(line.split(":")[1].split()[0]) for line in report if line.startswith(of)}


def planted(text: str) -> set[int]:
    """Return the lines of a program with a slip that can be seen."""
    return {
        n
        for n, line in enumerate(text.splitlines(), 1)
        if "# slip" in line and "not seen" not in line
    }


SLIPS_OF_EACH = {name: planted(text) for name, text in PROGRAMS.items()}


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """A folder with all programs."""
    folder = tmp_path_factory.mktemp("all")
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    return folder


@thorough
def test_mypy_finds_as_many_slips_and_no_others(programs):
    mypy = Path(sys.executable).with_name("mypy")
    command = [mypy, "--python-executable", sys.executable, "--follow-imports=silent"]
    done = subprocess.run([*command, *PROGRAMS], cwd=programs, capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if " error: " in line]
    assert {name: lines_of(errors, name) for name in PROGRAMS} == SLIPS_OF_EACH


@thorough
def test_pyright_finds_slips_in_settings_and_no_others(root, programs):
    paths = [str(programs / name) for name in PROGRAMS]
    command = ("--outputjson", "--pythonpath", sys.executable)
    done = pyright(root, *command, *paths, timeout_seconds=300)
    report = json.loads(done.stdout)
    found = {name: lines_of(problems(report, name), name) for name in PROGRAMS}
    assert found == SLIPS_OF_EACH


MOST_ANY = {
    "core/src/axil": 24,
    "plugins/axil-agent/src": 18.5,
    "plugins/axil-context/src": 13,
    "plugins/axil-control/src": 19,
    "plugins/axil-models/src": 18,
}
"""The most times that `Any` may stand in 1,000 lines, which goes down only. Where it is right:
CONVENTIONS.md.
"""


def anys(folder: Path) -> float:
    """Return how often the name `Any` is used in 1,000 lines."""
    texts = [file.read_text("utf-8") for file in folder.rglob("*.py")]
    names = (node for text in texts for node in ast.walk(ast.parse(text)))
    found = sum(isinstance(node, ast.Name) and node.id == "Any" for node in names)
    return 1000 * found / sum(text.count("\n") for text in texts)


@pytest.mark.parametrize("folder", MOST_ANY)
def test_any_stands_no_oftener_than_it_did(root, folder):
    assert anys(root / folder) <= MOST_ANY[folder]


REASONS = {
    "its author knows the type: of a node, a state, a model or a run": """
        value payload payloads input inputs input_of output content args state default deps
        questions ask answers step execute call_async __call__ attempt data fact expected result
        first second seen chunk chunks a b out raw after get pop popitem setdefault __getitem__
        owner isolate thaw without_views safe_get_attr recall RunInput Report Log
    """,
    "it is JSON, a row or a value to be written, and taken apart": """
        document fields row rows part query response used edges encode_value decode_value
        plain_data redact_data without_secrets there chosen
    """,
    "it has one of many forms, which are distinguished here": """
        given kind call component components body condition process made spec effects estimate
        pricing provider providers known_tools thinking out_edge out_edges scorers cases tries
        target model config stop ctx waiting
    """,
    "the kind that was asked for gives it": """
        component_of resolve edge_function wrap_body ledger activation
    """,
    "it is another library's, or has what only some of its kind have": """
        hooks engine server service sdk journal clock plan
    """,
    "they are handed on as options that are typed there": "options settings more wanted",
}
"""The reasons for having no type, each with names of parameters, fields and results."""


def test_each_any_of_a_public_signature_has_its_reason():
    """Values of mappings are fields, settings or JSON; parameters of other generics are those of
    their class; what stands alone is called by a name that has a reason.
    """
    named = {name for names in REASONS.values() for name in names.split()}
    found = [each for each in public_anys() if each.form == "value"]
    assert [each for each in found if each.name not in named] == []
    assert named - {each.name for each in found} == set(), "no longer needed"


def test_the_options_of_agents_are_those_that_agents_take():
    """The keys that editors complete, beside those of a node, are the parameters."""
    options = internal("agent_arguments")
    node, both = set(NodeOptions.__annotations__), {"output_type", "name"}
    agent = set(inspect.signature(Agent).parameters)
    assert set(options.AgentOptions.__annotations__) == agent - both
    assert set(options.AgentNodeOptions.__annotations__) - node == agent - {"name"}


def test_the_options_of_runs_are_those_that_runs_take():
    assert set(internal("RunOptions").__annotations__) == set(Options.__dataclass_fields__)
