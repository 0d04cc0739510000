"""The doors of axil: three modules that hold all public names and load none before it is used."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from axil._door import PROVIDED_BY, table_of

from axil.plugin import install_advice

DOORS = ("axil", "axil.plugin", "axil.driver")

LOADED = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] == "axil")))
"""

EACH_FIRST = """
import importlib, sys
for source in sys.argv[1:]:
    for name in [name for name in sys.modules if name.split(".")[0].startswith("axil")]:
        del sys.modules[name]
    importlib.import_module(source)
"""

HIDDEN = """
import sys
class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing)
"""


def without(packages, code):
    """Run code in a process in which packages are not installed; return what it printed."""
    command = [sys.executable, "-W", "error", "-c", HIDDEN + code, *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_installed(source):
    return importlib.util.find_spec(source.partition(".")[0]) is not None


def table(door):
    return table_of(importlib.import_module(door)._SUBJECTS)


def renamed(door):
    """Return the old names of a door, with their new ones."""
    return getattr(importlib.import_module(door), "_RENAMED", {})


def for_type_checkers(door):
    """Return name → (module, name there), as the stub beside the door says it.

    A name is imported ``as`` itself, which makes it public, or assigned: a name that its module
    calls otherwise, or an old one.
    """
    stub = Path(importlib.import_module(door).__file__).with_suffix(".pyi")
    found, private = {}, {}
    for each in ast.parse(stub.read_text("utf-8")).body[1:]:
        if isinstance(each, ast.ImportFrom):
            for alias in each.names:
                assert alias.asname in (None, alias.name)
                (found if alias.asname else private)[alias.name] = (each.module, alias.name)
        else:
            (name,) = each.targets
            found[name.id] = {**private, **found}[each.value.id]
    return found


def test_each_name_belongs_to_one_door():
    names = [name for door in DOORS for name in table(door)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("door", DOORS)
def test_a_door_lists_the_names_of_its_table(door):
    module = importlib.import_module(door)
    assert sorted(module.__all__) == dir(module) == sorted(table(door))


@pytest.mark.parametrize("door", DOORS)
def test_type_checkers_see_what_a_door_gives(door):
    names = table(door)
    old = {old: names[new] for old, new in renamed(door).items()}
    assert for_type_checkers(door) == names | old


@pytest.mark.parametrize("door", DOORS)
def test_an_old_name_works_with_a_warning_and_is_not_listed(door):
    module = importlib.import_module(door)
    names = table(door)
    for old, new in renamed(door).items():
        if not is_installed(names[new][0]):
            continue
        with pytest.warns(DeprecationWarning, match=rf"{door}\.{old} is now called {door}\.{new}"):
            assert getattr(module, old) is getattr(module, new)
        assert old not in module.__all__


@pytest.mark.parametrize("door", DOORS)
def test_every_name_of_a_door_is_what_its_module_defines(door):
    module = importlib.import_module(door)
    for name, (source, inner) in table(door).items():
        if is_installed(source):
            assert getattr(module, name) is getattr(importlib.import_module(source), inner)


@pytest.mark.parametrize("door", DOORS)
def test_a_name_that_a_door_does_not_have_is_an_attribute_error(door):
    module = importlib.import_module(door)
    with pytest.raises(AttributeError, match=f"module '{door}' has no attribute 'nonsense'"):
        _ = module.nonsense


@pytest.mark.parametrize("door", DOORS)
def test_importing_a_door_loads_no_other_module(door):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, door],
        capture_output=True,
        check=True,
        text=True,
        timeout=600,
    )
    assert set(json.loads(done.stdout)) == {"axil", "axil._door", door}


def test_a_door_may_load_any_of_its_modules_first():
    sources = sorted({module for door in DOORS for module, _ in table(door).values()})
    sources = [source for source in sources if is_installed(source)]
    subprocess.run([sys.executable, "-c", EACH_FIRST, *sources], check=True, timeout=600)


def test_a_run_without_a_journal_imports_nothing_of_journals():
    code = """
import axil

g = axil.RootGraph("asks")

async def work():
    return 1

async def look(inputs, ctx):
    ctx.now()
    await ctx.sleep(0)
    step = await ctx.step("work", work)
    return {"n": inputs["n"] + step}

async def ask(inputs, ctx):
    return {"n": await ctx.ask("really?")}

first, second = g.create_node(look, name="look"), g.create_node(ask, name="ask")
g.edge_from_entry(first, ["n"])
g.create_edge(first, second, ["n"])
g.edge_to_exit(second, ["n"])
print(axil.run_sync(g.build().run({"n": 1})).status)
print(axil.run_sync(g.run({"n": 1}, answers={"ask?1": 2})).output)
import sys
print([name for name in sys.modules if name.startswith("axil_journals")])
"""
    assert without([], code).splitlines() == ["paused", "{'n': 2}", "[]"]


# ---------------------------------------------------------------------- other distributions


@pytest.mark.parametrize("door", DOORS)
def test_a_name_of_a_missing_distribution_says_what_to_install(door):
    packages = {name: source.partition(".")[0] for name, (source, _) in table(door).items()}
    provided = {name: PROVIDED_BY[each] for name, each in packages.items() if each in PROVIDED_BY}
    code = f"""
import importlib
from axil.plugin import NotInstalled, install_advice

door = importlib.import_module({door!r})
for name, distribution in {provided!r}.items():
    try:
        getattr(door, name)
    except NotInstalled as error:
        assert str(error) == (
            f"AX306 {door}.{{name}} needs {{distribution}}, which is not installed. "
            f"Install it: {{install_advice(distribution)}}"
        ), error
        assert error.distribution == distribution
        assert isinstance(error, ImportError)
    else:
        raise AssertionError(name)
"""
    without(PROVIDED_BY, code)


def test_an_error_inside_a_distribution_is_not_taken_for_a_missing_one():
    code = """
import types
sys.modules["axil_journals"] = package = types.ModuleType("axil_journals")
package.__path__ = []
from axil_journals import LocalEngine
"""
    with pytest.raises(
        AssertionError, match=r"ModuleNotFoundError: No module named 'axil_journals.engine.local'"
    ):
        without([], code)


def test_without_files_load_says_what_to_install():
    code = """
import axil
for load in (lambda: axil.load, lambda: axil.Workflow.from_file("flow.json")):
    try:
        load()
    except ImportError as error:
        print(error)
"""
    reported = (
        "AX306 axil.load needs axil-files, which is not installed. Install it: "
        + install_advice("axil-files")
    )
    assert without(["axil_files"], code).splitlines() == [reported, reported]


def test_without_other_distributions_a_graph_is_built_and_run_in_memory():
    code = """
import axil
g = axil.RootGraph("hello", attributes={"seen": 0})
def greet(inputs, attributes):
    attributes["seen"] += 1
    return {"text": f"hello {inputs['name']}"}
node = g.create_node(axil.CustomNode, name="greet", forward=greet)
g.edge_from_entry(node, ["name"])
g.edge_to_exit(node, ["text"])
print(tuple(g.build().invoke({"name": "world"})))
"""
    assert without(PROVIDED_BY, code) == "({'text': 'hello world'}, {'seen': 1})\n"


def test_without_other_distributions_what_a_graph_needs_says_what_to_install():
    code = """
import axil
g = axil.RootGraph("g")
async def body(ctx):
    return {"n": ctx.allows("code")}
g.edge_from_entry(g.create_node(body, name="a"), keys={})
g.edge_to_exit("a", ["n"])
def run():
    try:
        g.build().invoke({}, allow=frozenset({"code"}))
    except axil.NodeFailed as failed:
        raise failed.__cause__
for act in (lambda: g.create_edge("a", "a", formatter="json"), lambda: g.to_spec().digest(), run):
    try:
        act()
    except ImportError as error:
        print(str(error).partition(", which")[0])
print(g.invoke({}).output)
"""
    assert without(PROVIDED_BY, code).splitlines() == [
        "AX306 an edge's formatter needs axil-models",
        "AX306 GraphSpec.digest needs axil-journals",
        "AX306 a run with allow needs axil",
        "{'n': False}",
    ]


CONFIGURED = """
import os
from axil.plugin import NotInstalled, Registry, make_component

class Plain:
    def __init__(self, n): self.n = n

class Configured(Plain):
    class Config: pass

print(make_component(Plain, {"n": 1}).n, Registry(entry_points=[]).names("joins"))
try:
    make_component(Configured, {})
except NotInstalled as error:
    print(error)
for name, value in (("AXIL_BLOCK", "axil-far"), ("AXIL_ONLY", ""), ("AXIL_CONFIG", "x.toml")):
    os.environ[name] = value
    try:
        Registry()
    except NotInstalled as error:
        print(error)
    del os.environ[name]
os.environ["AXIL_CONFIG"] = ""
print(Registry(entry_points=[]).names("joins"))
"""


def test_without_config_a_policy_that_is_asked_for_is_not_ignored():
    reported = "AX306 {} needs axil, which is not installed. Install it: " + install_advice("axil")
    wanted = ("the Config of Configured", "AXIL_BLOCK", "AXIL_ONLY", "AXIL_CONFIG")
    assert without(["axil"], CONFIGURED).splitlines() == [
        "1 ()", *map(reported.format, wanted), "()",
    ]  # fmt: skip


def test_without_inspection_a_graph_says_what_to_install_for_its_picture():
    code = """
import axil
g = axil.RootGraph("hello")
node = g.create_node(axil.CustomNode, name="greet", forward=lambda inputs: {"text": "hello"})
g.edge_from_entry(node, keys={})
g.edge_to_exit(node, ["text"])
g.build()
print(g._repr_mimebundle_())
try:
    g.draw()
except ImportError as error:
    print(error)
"""
    reported = "needs axil-journals, which is not installed. Install it: " + install_advice(
        "axil-journals"
    )
    shown, drawn = without(["axil_journals"], code).splitlines()
    assert shown == str(
        {"text/plain": f'<RootGraph "hello": 1 node, 2 edges>\nAX306 a picture {reported}'}
    )
    assert drawn == f"AX306 draw {reported}"


def test_without_budgets_a_limit_that_core_does_not_count_says_what_to_install():
    code = """
import axil
g = axil.RootGraph("hello")
node = g.create_node(axil.CustomNode, name="greet", forward=lambda inputs: {"text": "hello"})
g.edge_from_entry(node, keys={})
g.edge_to_exit(node, ["text"])
g.build()
for limits in (axil.Limits(tokens=5), axil.Limits(firings=5, cost=0.5, tokens=5)):
    try:
        g.invoke({}, limits=limits)
    except ImportError as error:
        print(error)
"""
    reported = "needs axil-models, which is not installed. Install it: " + install_advice(
        "axil-models"
    )
    assert without(["axil_models"], code).splitlines() == [
        f"AX306 a limit on tokens {reported}",
        f"AX306 a limit on cost and tokens {reported}",
    ]


def test_without_budgets_a_run_counts_what_its_bodies_spend():
    code = """
import axil
async def body(ctx):
    ctx.spend(cost=0.5, input_tokens=3)
    with await ctx.reserve(model="small", characters=9) as reservation:
        reservation.settle(model="small", input_tokens=2)
    try:
        ctx.ledger
    except ImportError as error:
        print(error)
    return {}
g = axil.RootGraph("spends")
g.edge_from_entry(g.create_node(body, name="a"), keys={})
g.edge_to_exit("a", keys={})
limits = axil.Limits(firings=5)
result = axil.run_sync(g.build().run({}, limits=limits, journal=axil.MemoryJournal()))
print(result.status, result.usage.firings, result.usage.amounts)
"""
    reported = (
        "AX306 ctx.ledger needs axil-models, which is not installed. Install it: "
        + install_advice("axil-models")
    )
    counted = "done 1 {'cost': 0.5, 'input_tokens': 5}"
    assert without(["axil_models"], code).splitlines() == [reported, counted]


WITH_A_JOURNAL = """
import axil

class Journal:
    def __getattr__(self, name):
        raise AssertionError(name)  # nothing is asked of it

g = axil.RootGraph("asks")

async def ask(inputs, ctx):
    return {"n": await ctx.ask(axil.Question(text="really?", within_seconds=1))}

node = g.create_node(ask, name="ask")
g.edge_from_entry(node, ["n"])
g.edge_to_exit(node, ["n"])
g.build()
for doing in (
    lambda: g.run({"n": 1}, journal=Journal()),
    lambda: g.resume("run", journal=Journal()),
    lambda: g.run({"n": 1}),
):
    try:
        axil.run_sync(doing())
    except ImportError as error:
        print(error)
    except axil.NodeFailed as failed:
        print(failed.__cause__)
"""


def test_without_journals_what_needs_one_says_what_to_install():
    reported = "AX306 {} needs axil-journals, which is not installed. Install it: "
    reported += install_advice("axil-journals")
    wanted = ("a run with a journal", "Workflow.resume", "a question with a deadline")
    assert without(["axil_journals"], WITH_A_JOURNAL).splitlines() == [
        *map(reported.format, wanted)
    ]


def test_without_typed_state_a_model_says_what_to_install():
    code = """
import axil

class Brief: pass
for act in (lambda: axil.RootGraph("g", state=Brief), lambda: axil.schema_of(Brief)):
    try:
        act()
    except ImportError as error:
        print(error)
print(type(axil.RootGraph("g", state=axil.Schema())).__name__)
"""
    reported = "AX306 {} needs axil, which is not installed. Install it: " + install_advice("axil")
    assert without(["axil"], code).splitlines() == [
        reported.format("state=Brief"), reported.format("axil.schema_of"), "RootGraph",
    ]  # fmt: skip


def test_without_dependencies_runs_are_not_pinned_and_none_is_refused():
    code = """
from axil import EdgeSpec, GraphSpec, NodeSpec, ComponentRef, Workflow, run_sync
from axil_journals import MemoryJournal
from axil_journals import recorded_graph
nodes = (NodeSpec(id="a", use=ComponentRef(type="custom")),)
edges = (EdgeSpec(source="@entry", target="a"), EdgeSpec(source="a", target="@exit"))
flow = Workflow(GraphSpec(id="g", nodes=nodes, edges=edges, payload="fields"))
journal = MemoryJournal()
run_sync(flow.run({"x": 1}, journal=journal, run_id="here"))
pins = {"acme": {"version": "1.0"}}
run_sync(flow.run({"x": 1}, journal=journal, run_id="there", pins=pins))
print([recorded_graph(journal.entries(run)).get("pins") for run in ("here", "there")])
print(flow.pins, run_sync(flow.resume("there", journal=journal)).output)
"""
    assert without(["axil"], code).splitlines() == [
        "[None, {'acme': {'version': '1.0'}}]", "{} {'x': 1}",
    ]  # fmt: skip
