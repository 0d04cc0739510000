"""The doors of axil: three modules that hold all public names and load none before it is used."""

from __future__ import annotations

import ast
import importlib
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from axil._lazy import module_of_each

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


def table(door):
    return module_of_each(importlib.import_module(door)._SUBJECTS, "axil")


def renamed(door):
    """Return the old names of a door, with their new ones."""
    return getattr(importlib.import_module(door), "_RENAMED", {})


def for_type_checkers(door):
    """Return name → module, as the stub beside the door says it.

    A name is imported ``as`` itself, which makes it public; an old one is assigned.
    """
    stub = Path(importlib.import_module(door).__file__).with_suffix(".pyi")
    found = {}
    for each in ast.parse(stub.read_text("utf-8")).body[1:]:
        if isinstance(each, ast.ImportFrom):
            for alias in each.names:
                assert alias.asname == alias.name
                found[alias.name] = each.module
        else:
            (name,) = each.targets
            found[name.id] = found[each.value.id]
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
    for old, new in renamed(door).items():
        with pytest.warns(DeprecationWarning, match=rf"{door}\.{old} is now called {door}\.{new}"):
            assert getattr(module, old) is getattr(module, new)
        assert old not in module.__all__


@pytest.mark.parametrize("door", DOORS)
def test_every_name_of_a_door_is_what_its_module_defines(door):
    module = importlib.import_module(door)
    for name, source in table(door).items():
        assert getattr(module, name) is getattr(importlib.import_module(source), name)


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
    assert set(json.loads(done.stdout)) == {"axil", "axil._lazy", door}


def test_a_door_may_load_any_of_its_modules_first():
    sources = sorted({module for door in DOORS for module in table(door).values()})
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

OTHERS = ("axil_files", "axil_journals", "axil_models", "axil_control")

HELLO = """
import axil
g = axil.RootGraph("hello", attributes={"seen": 0})
def greet(inputs, attributes):
    attributes["seen"] += 1
    return {"text": f"hello {inputs['name']}"}
node = g.create_node(axil.CustomNode, name="greet", forward=greet)
g.edge_from_entry(node, ["name"])
g.edge_to_exit(node, ["text"])
g.build()
"""


def test_without_other_distributions_a_graph_is_built_and_run_in_memory():
    code = HELLO + 'print(tuple(g.invoke({"name": "world"})), len(g.to_spec().digest()))'
    assert without(OTHERS, code) == "({'text': 'hello world'}, {'seen': 1}) 64\n"


MISSING_COMPONENTS = """
from importlib.metadata import entry_points
from axil.plugin import Registry, use_registry
with use_registry(Registry(entry_points=[])):
    print(g._repr_mimebundle_()["text/plain"].partition(". ")[0])
    for act in (
        g.draw,
        lambda: g.invoke({"name": "world"}, limits=axil.Limits(tokens=5)),
    ):
        try:
            act()
        except axil.AxilError as error:
            print(str(error).partition(". ")[0])
"""


def test_what_needs_a_component_that_is_not_installed_names_it():
    assert without(OTHERS, HELLO + MISSING_COMPONENTS).splitlines() == [
        '<RootGraph "hello": 1 node, 2 edges>',
        'AX301 unknown picture "notebook"',
        'AX301 unknown picture "text"',
        'AX301 unknown meter "budget"',
    ]


def test_a_run_counts_what_its_bodies_spend_without_a_meter_that_limits_it():
    code = """
import axil
async def body(ctx):
    ctx.spend(cost=0.5, input_tokens=3)
    with await ctx.reserve(model="small", characters=9) as reservation:
        reservation.settle(model="small", input_tokens=2)
    return {}
g = axil.RootGraph("spends")
g.edge_from_entry(g.create_node(body, name="a"), keys={})
g.edge_to_exit("a", keys={})
result = axil.run_sync(g.build().run({}, limits=axil.Limits(firings=5)))
print(result.status, result.usage.firings, result.usage.tokens, result.usage.cost)
"""
    assert without(OTHERS, code) == "done 1 {'input_tokens': 5} 0.5\n"


@pytest.mark.parametrize(("name", "package"), [("Agent", "axil_agent"), ("load", "axil_files")])
def test_axil_says_which_plugin_has_a_name_that_it_lacks(name, package, tmp_path):
    pytest.importorskip(package)
    way = f"from {package} import {name}"
    (tmp_path / "asks.py").write_text(f"from axil import {name}", "utf-8")
    with pytest.raises(ImportError, match=way):
        runpy.run_path(str(tmp_path / "asks.py"))
    with pytest.raises(AttributeError, match=way):
        getattr(importlib.import_module("axil"), name)
    assert not hasattr(importlib.import_module("axil"), "Nowhere")
