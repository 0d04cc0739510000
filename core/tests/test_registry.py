"""The registry: names become components through entry points, under a policy, and one at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from axil.errors import (
    ComponentBlocked,
    ComponentConflict,
    PluginContract,
    PluginLoadError,
    Problem,
    UnknownComponent,
)
from axil.plugin import Policy, install_advice
from axil.registry import registry as module
from axil.registry.registry import Component, Registry, component_index as index
from axil.spec.kinds import COMPONENT_KINDS


@dataclass
class Dist:
    name: str
    version: str = "1.0"
    requires: list[str] = field(default_factory=list)


@dataclass
class Entry:
    group: str
    name: str
    value: str
    dist: Any


CLOCKS = Dist("acme-clocks", "0.3.1")
FLOW = Dist("Acme_Flow", "2.1")


def registry(*entries: Entry, policy: Policy | None = None) -> Registry:
    return Registry(policy or Policy(), entries)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes an importable module and gives its name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made: list[str] = []

    def write(code: str) -> str:
        name = f"axil_test_plugin_{tmp_path.name.replace('-', '_')}_{len(made)}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
        made.append(name)
        return name

    yield write
    for name in made:
        sys.modules.pop(name, None)


def test_a_name_becomes_the_object_that_the_entry_point_names(plugin):
    name = plugin("class Tick:\n    class Deep: ...")
    known = registry(
        Entry("axil.nodes", "tick", f"{name}:Tick", CLOCKS),
        Entry("axil.nodes", "deep", f"{name}:Tick.Deep [fast]", CLOCKS),
    )
    assert known.resolve("nodes", "tick").__name__ == "Tick"
    assert known.resolve("nodes", "deep").__qualname__ == "Tick.Deep"
    assert known.resolve("nodes", "tick") is known.resolve("nodes", "acme-clocks/tick")


def test_a_value_without_attribute_is_the_module(plugin):
    name = plugin("answer = 42")
    assert registry(Entry("axil.hooks", "h", name, CLOCKS)).resolve("hooks", "h").answer == 42


def test_only_the_component_that_is_asked_for_is_imported(plugin):
    asked, other = plugin("class A: ..."), plugin("raise SystemExit('never')")
    known = registry(
        Entry("axil.nodes", "a", f"{asked}:A", CLOCKS),
        Entry("axil.nodes", "b", f"{other}:B", CLOCKS),
    )
    assert known.names("nodes") == ("a", "b")
    known.resolve("nodes", "a")
    assert other not in sys.modules


def test_groups_that_are_no_kind_are_ignored():
    known = registry(
        Entry("axil.plugin", "acme-clocks", "acme", CLOCKS),
        Entry("console_scripts", "x", "y:z", CLOCKS),
    )
    assert known.candidates() == []


def test_of_one_distribution_the_first_on_the_path_wins(plugin):
    first, second = plugin("class A: first = True"), plugin("class A: first = False")
    known = registry(
        Entry("axil.nodes", "a", f"{first}:A", CLOCKS),
        Entry("axil.nodes", "a", f"{second}:A", Dist("Acme.Clocks", "0.1")),
    )
    assert known.resolve("nodes", "a").first
    assert [each.version for each in known.candidates("nodes")] == ["0.3.1"]


def test_an_unknown_name_says_which_installed_one_is_meant():
    known = registry(Entry("axil.nodes", "metronome", "m:M", CLOCKS))
    with pytest.raises(UnknownComponent) as caught:
        known.resolve("nodes", "metronom", "flow.yaml:14 nodes[0]")
    assert str(caught.value) == (
        'AX301 flow.yaml:14 nodes[0]: unknown node type "metronom". Did you mean "metronome" '
        "(acme-clocks 0.3.1, installed)?"
    )


def test_an_unknown_join_names_those_of_the_kernel_too():
    with pytest.raises(UnknownComponent, match="Installed: gate, all, each"):
        Registry(entry_points=[]).resolve("joins", "majority")


def test_an_unknown_name_that_another_distribution_provides_says_what_to_install():
    with pytest.raises(UnknownComponent) as caught:
        registry().resolve("context", "chroma")
    assert (
        caught.value.hint
        == f"It is provided by axil-chroma (not installed): {install_advice('axil-chroma')}"
    )
    with pytest.raises(UnknownComponent) as caught:
        registry().resolve("nodes", "loop_timr")
    assert caught.value.hint == 'Did you mean "loop_timer" (axil-control, not installed)?'


def test_an_unknown_name_points_at_what_the_workflow_requires():
    with pytest.raises(
        UnknownComponent,
        match=r'requires acme-clocks \(not installed\)\..* publisher: .* "acme-clocks>=1"',
    ):
        registry().resolve("nodes", "metronome", requires={"Acme_Clocks": ">=1"})


def test_an_unknown_kind_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match='no kind of component is called "node"'):
        registry().resolve("node", "x")


def test_two_providers_are_a_conflict_that_names_both_and_the_ways_out():
    known = registry(
        Entry("axil.nodes", "switch", "a:A", CLOCKS), Entry("axil.nodes", "switch", "b:B", FLOW)
    )
    with pytest.raises(ComponentConflict) as caught:
        known.resolve("nodes", "switch")
    assert str(caught.value) == (
        'AX302 the node type "switch" is provided by acme-clocks 0.3.1 and acme-flow 2.1. '
        'Write "acme-clocks/switch" or "acme-flow/switch", pin nodes:switch to one of them '
        "(AXIL_PINS), or block one (AXIL_BLOCK)."
    )


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("Acme-Flow/switch", Policy()),
        ("switch", Policy(pins={"node:switch": "acme_flow"})),
        ("switch", Policy(block=frozenset({"acme-clocks"}))),
        ("switch", Policy(only=frozenset({"acme-flow"}))),
        ("switch", Policy(mode="listed", allow=frozenset({"acme-flow"}))),
    ],
)
def test_each_way_out_of_a_conflict_works(plugin, name, policy):
    right, wrong = plugin("class A: right = True"), plugin("raise ImportError")
    known = registry(
        Entry("axil.nodes", "switch", f"{wrong}:A", CLOCKS),
        Entry("axil.nodes", "switch", f"{right}:A", FLOW),
        policy=policy,
    )
    assert known.resolve("nodes", name).right
    assert wrong not in sys.modules


@pytest.mark.parametrize(
    "policy",
    [
        Policy(block=frozenset({"acme.clocks"})),
        Policy(block=frozenset({"nodes:tick"})),
        Policy(block=frozenset({"node:tick"})),
        Policy(only=frozenset()),
        Policy(mode="listed"),
        Policy(mode="listed", allow=frozenset({"acme-clocks"}), block=frozenset({"acme-clocks"})),
    ],
)
def test_what_policy_blocks_is_never_imported_and_is_still_listed(plugin, policy):
    name = plugin("class Tick: ...")
    known = registry(Entry("axil.nodes", "tick", f"{name}:Tick", CLOCKS), policy=policy)
    for asked in ("tick", "acme-clocks/tick"):
        with pytest.raises(
            ComponentBlocked, match=r"acme-clocks 0\.3\.1 may not be used: the policy"
        ):
            known.resolve("nodes", asked)
    assert name not in sys.modules
    assert known.names("nodes") == ()
    assert [(each.status, bool(each.reason)) for each in known.candidates()] == [("blocked", True)]


def test_the_kernel_is_allowed_unless_it_is_blocked_by_name():
    entry = Entry("axil.nodes", "graph", "axil.errors:Problem", Dist("axil-core"))
    for policy in (Policy(only=frozenset()), Policy(mode="listed")):
        assert registry(entry, policy=policy).resolve("nodes", "graph")
    with pytest.raises(ComponentBlocked):
        registry(entry, policy=Policy(block=frozenset({"nodes:graph"}))).resolve("nodes", "graph")


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(3)",
        "raise ValueError('no licence')",
        "import no_such_module_at_all",
        "x = 1",
        "1 +",
    ],
)
def test_a_plugin_that_fails_to_import_costs_only_what_uses_it(plugin, code):
    broken, sound = plugin(code), plugin("class A: ...")
    known = registry(
        Entry("axil.nodes", "b", f"{broken}:B", CLOCKS),
        Entry("axil.nodes", "a", f"{sound}:A", CLOCKS),
    )
    with pytest.raises(PluginLoadError) as caught:
        known.resolve("nodes", "b", "flow.yaml:3")
    assert caught.value.__cause__ is not None
    assert all(
        part in str(caught.value)
        for part in ("flow.yaml:3", "acme-clocks 0.3.1", f"{broken}:B", "failed to import")
    )
    assert str(caught.value).endswith("More: axil plugins doctor acme-clocks --import")
    assert known.resolve("nodes", "a")


@pytest.mark.parametrize("kind", COMPONENT_KINDS)
def test_an_entry_point_that_is_none_is_no_component_of_any_kind(plugin, kind):
    name = plugin("class Holder: nothing = None\nnothing = None")
    known = registry(
        Entry(f"axil.{kind}", "a", f"{name}:nothing", CLOCKS),
        Entry(f"axil.{kind}", "b", f"{name}:Holder.nothing", CLOCKS),
    )
    for each in ("a", "b", "a"):
        with pytest.raises(PluginContract, match=r"AX305.*acme-clocks 0\.3\.1.*nothing is None"):
            known.resolve(kind, each, "flow.yaml:3")


def test_an_interrupt_during_an_import_is_not_swallowed(plugin):
    name = plugin("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        registry(Entry("axil.nodes", "a", f"{name}:A", CLOCKS)).resolve("nodes", "a")


def test_a_missing_module_of_an_extra_says_which_extra(plugin):
    name = plugin("import no_such_module_at_all")
    dist = Dist(
        "acme-clocks", requires=["axil-core>=0.1", 'no-such-module-at-all>=1 ; extra == "quartz"']
    )
    with pytest.raises(PluginLoadError, match=r'install "acme-clocks\[quartz\]"'):
        registry(Entry("axil.nodes", "a", f"{name}:A", dist)).resolve("nodes", "a")


def test_a_value_that_is_no_target_is_a_load_error():
    with pytest.raises(PluginLoadError, match="is not module:attribute"):
        registry(Entry("axil.nodes", "a", "os; os.system('x')", CLOCKS)).resolve("nodes", "a")


def test_what_is_registered_is_found_and_a_taken_name_is_refused():
    known = registry(Entry("axil.conditions", "never", "m:n", CLOCKS))
    known.register("conditions", "always", 7, "My_Notebook")
    assert (
        known.resolve("conditions", "always")
        == known.resolve("conditions", "my-notebook/always")
        == 7
    )
    assert known.names("conditions") == ("always", "never")
    assert known.candidates("conditions")[0] == Component(
        kind="conditions", name="always", distribution="my-notebook", status="registered"
    )
    for taken in ("always", "never"):
        with pytest.raises(ComponentConflict, match="already"):
            known.register("conditions", taken, 8)


def test_the_default_registry_can_be_replaced_for_a_while():
    mine = registry()
    with module.use_registry(mine):
        assert module.default_registry() is mine
    assert module.default_registry() is not mine
    assert module.default_registry() is module.default_registry()


def test_the_shipped_index_speaks_of_known_kinds():
    assert index()["nodes:agent"] == "axil-agent"
    assert {name.partition(":")[0] for name in index()} <= set(COMPONENT_KINDS)
    assert list(index()) == sorted(index())


def test_a_distribution_with_broken_metadata_costs_only_itself(tmp_path, monkeypatch):
    for name, points in (
        ("sound", "[axil.nodes]\nsound = a:b"),
        ("broken", "[axil.nodes]\ngarbage"),
        ("nameless", "[axil.nodes]\nn = a:b"),
    ):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "entry_points.txt").write_text(points)
        if name != "nameless":
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    known = Registry(Policy())
    assert "sound" in known.names("nodes")
    assert any("broken-1.0.dist-info" in each for each in known.unreadable)


def test_a_scan_of_what_is_installed_imports_no_plugin():
    code = """
import sys
from axil.plugin import Policy
from axil.registry.registry import Registry
before = set(sys.modules)
assert "importlib_metadata" not in before
found = Registry(Policy()).candidates()
providers = {each.value.partition(":")[0].partition(".")[0] for each in found} - {"axil"}
assert not providers & set(sys.modules), providers & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_a_childs_components_are_its_own():
    def one(text: str) -> bool:
        return True

    parent = Registry(Policy(), entry_points=[])
    parent.register("conditions", "one", one)
    child = parent.child()
    child.register("conditions", "two", one)
    parent.register("conditions", "three", one)
    assert parent.names("conditions") == ("one", "three")
    assert child.names("conditions") == ("one", "two")
    assert child.resolve("conditions", "one") is one
    with pytest.raises(ComponentConflict):
        child.register("conditions", "one", one)


def test_a_site_says_what_it_provides(tmp_path):
    index = tmp_path / "site.json"
    index.write_text('{"nodes:tick": "Acme_Clocks"}')
    site = registry(policy=Policy(index=str(index)))
    with pytest.raises(
        UnknownComponent,
        match=r"provided by acme-clocks \(not installed\): .*install acme-clocks",
    ):
        site.resolve("nodes", "tick")
    index.write_text("{")
    with pytest.raises(UnknownComponent, match=r"The site's index .* cannot be read"):
        site.resolve("nodes", "tick")


def test_metadata_is_parsed_once_for_each_distribution():
    class Counting(Dist):
        asked = 0

        @property
        def name(self) -> str:
            Counting.asked += 1
            return "acme-clocks"

        @name.setter
        def name(self, given: str) -> None: ...

    dist = Counting("x")
    known = registry(*(Entry("axil.nodes", f"n{i}", "m:n", dist) for i in range(50)))
    assert len(known.candidates()) == 50
    assert Counting.asked == 1


def test_the_distributions_are_listed_with_their_versions():
    known = registry(
        Entry("axil.nodes", "tick", "m:n", CLOCKS),
        Entry("axil.plugin", "acme-flow", "acme_flow", FLOW),
    )
    assert known.plugins() == {"acme-clocks": "0.3.1", "acme-flow": "2.1"}
    assert known.distribution("Acme.Flow") is FLOW
    assert known.distribution("none") is None


# --------------------------------------------------------------------------------------------------


def renamed(
    tmp_path, monkeypatch, aliases: dict[str, list[str]], policy: Policy | None = None
) -> Registry:
    """Of each ``distribution/name`` its old names, by manifests; and ``held``, a name that the
    first distribution has today.
    """
    monkeypatch.syspath_prepend(str(tmp_path))
    entries = [Entry("axil.nodes", "held", "json:JSONEncoder", Dist("acme-zero"))]
    for i, (who, old) in enumerate(aliases.items()):
        distribution, _, name = who.partition("/")
        package = f"renamed_{tmp_path.name.replace('-', '_')}_{i}"
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        said = {"kind": "nodes", "name": name, "aliases": old}
        manifest = {"manifest": 1, "distribution": distribution, "components": [said]}
        (tmp_path / package / "axil-plugin.json").write_text(json.dumps(manifest))
        dist = Dist(distribution)
        entries += [
            Entry("axil.nodes", name, "json:JSONDecoder", dist),
            Entry("axil.plugin", distribution, package, dist),
        ]
    return registry(*entries, policy=policy)


@pytest.mark.parametrize(
    ("aliases", "written", "now"),
    [
        (["tick"], "tick", "tock"),
        (["tick"], "Acme_New/tick", "acme-new/tock"),
        (["acme-old/tick"], "Acme.Old/tick", "acme-new/tock"),
    ],
)
def test_an_old_name_means_what_it_is_now_and_the_warning_says_so(
    tmp_path, monkeypatch, aliases, written, now
):
    here = renamed(tmp_path, monkeypatch, {"acme-new/tock": aliases})
    reported: list[Problem] = []
    here.warn = reported.append
    for line in (3, 3, 5):  # each place once
        assert here.resolve("nodes", written, f"flow.json:{line}") is json.JSONDecoder
    assert [(each.id, each.severity, each.where) for each in reported] == [
        ("AX326", "warning", "flow.json:3"),
        ("AX326", "warning", "flow.json:5"),
    ]
    assert (
        f'"{written}" is an old name of the node type "tock" of acme-new 1.0. Write "{now}"'
        in str(reported[0])
    )


def test_an_old_name_is_logged_unless_somebody_listens(tmp_path, monkeypatch, caplog):
    here = renamed(tmp_path, monkeypatch, {"acme-new/tock": ["tick"]}).child()
    assert here.find("nodes", "tick").name == "tock"
    assert [(each.name, each.levelname) for each in caplog.records] == [
        ("axil.registry", "WARNING")
    ]


def test_a_name_of_today_goes_before_an_old_one(tmp_path, monkeypatch):
    here = renamed(tmp_path, monkeypatch, {"acme-new/tock": ["held"]})
    assert here.resolve("nodes", "held") is json.JSONEncoder


def test_an_old_name_of_another_distribution_is_none_of_the_bare_name(tmp_path, monkeypatch):
    here = renamed(tmp_path, monkeypatch, {"acme-new/tock": ["acme-old/tick"]})
    for name in ("tick", "acme-new/tick", "acme-else/tick"):
        with pytest.raises(UnknownComponent):
            here.find("nodes", name)


def test_an_old_name_that_two_components_claim_is_a_conflict_that_names_both(tmp_path, monkeypatch):
    claims = {"acme-a/tock": ["tick"], "acme-b/tack": ["tick"]}
    with pytest.raises(ComponentConflict) as caught:
        renamed(tmp_path, monkeypatch, claims).find("nodes", "tick")
    assert (
        'the node type "tick" is an old name of "tack" (acme-b 1.0) and of "tock" (acme-a 1.0).'
        in str(caught.value)
    )
    assert 'Write "acme-b/tack" or "acme-a/tock".' in str(caught.value)


def test_a_pin_decides_between_two_that_claim_an_old_name(tmp_path, monkeypatch):
    claims = {"acme-a/tock": ["tick"], "acme-b/tack": ["tick"]}
    here = renamed(tmp_path, monkeypatch, claims, Policy(pins={"nodes:tick": "acme-b"}))
    assert here.find("nodes", "tick").name == "tack"


@pytest.mark.parametrize("block", ["nodes:tick", "nodes:tock", "acme-new"])
def test_what_is_blocked_is_not_had_by_its_old_name(tmp_path, monkeypatch, block):
    here = renamed(
        tmp_path, monkeypatch, {"acme-new/tock": ["tick"]}, Policy(block=frozenset({block}))
    )
    with pytest.raises(ComponentBlocked, match=f"the policy blocks {block}"):
        here.find("nodes", "tick")
