"""The fixtures: a machine on the bench, a clock, a world with only some plugins."""

from __future__ import annotations

import pytest

from axil.plugin import ComponentBlocked, Policy, Registry, UnknownComponent, default_registry
from axil_testing import Recorder, VirtualClock


def test_a_machine_is_driven_by_hand(machine):
    bench = machine("in>s s>a s>b a>t b>t t>out", attributes={"x": 0}).start()
    assert bench.take() == ["s"]
    bench.finish("s", x=1)
    assert bench.take() == ["a", "b"]
    assert bench.state("a") == {"x": 1}
    bench.finish("b", {"from": "b"}, x=2)
    assert bench.take() == []
    bench.finish("a", {"from": "a"})
    assert bench.take() == ["t"]
    assert bench.payloads("t") == [{"from": "a"}, {"from": "b"}]
    bench.finish("t")
    assert bench.exits == [("t->@exit", {"by": "t"})]
    assert dict(bench.end().state) == {"x": 2}


def test_joins_groups_and_data_edges_are_said_in_words(machine):
    bench = machine("in>s s>a s>b a>t:group=x b>t:group=y s>t:data", joins={"t": "all"}).start()
    bench.take()
    bench.finish("s", to=["a", "t"])
    bench.go()
    assert bench.skipped == ["b"]
    assert bench.taken == ["s", "a", "t"]


def test_an_edge_that_means_nothing_is_refused(machine):
    with pytest.raises(ValueError, match="a>b"):
        machine("a>b:colour=red")


def test_a_merge_is_given_by_name(machine):
    bench = machine(
        "in>a in>b a>t b>t", merges={"t": lambda states: {"x": 9}}, attributes={"x": 0}
    ).start()
    bench.take()
    bench.finish("a", x=1)
    bench.finish("b", x=2)
    bench.take()
    assert bench.state("t") == {"x": 9}


def test_only_some_entries_may_be_live(machine):
    bench = machine("in>a in>b b>c").start(only=["a"])
    assert (bench.take(), bench.skipped) == (["a"], ["b", "c"])
    assert machine("in>a in>b").put(("@entry->b", "hi")).take() == ["b"]


def test_the_clock_and_the_recorder_are_fresh(virtual_clock, recorder):
    assert isinstance(virtual_clock, VirtualClock)
    assert isinstance(recorder, Recorder)
    assert (virtual_clock.now(), recorder.records) == (0.0, [])


def test_only_named_plugins_are_seen(only_plugins):
    before = default_registry()
    only = only_plugins()
    assert default_registry() is only is not before
    assert {
        component.distribution for component in only.candidates() if component.status == "available"
    } <= {"axil-core"}


def test_what_is_not_named_is_refused_and_never_imported(only_plugins):
    theirs = next((c for c in Registry().candidates() if c.distribution != "axil-core"), None)
    if theirs is None:
        pytest.skip("no plugin with components is installed")
    with pytest.raises((ComponentBlocked, UnknownComponent)):
        only_plugins().resolve(theirs.kind, theirs.name)


def test_the_world_is_whole_again_after_the_test():
    assert default_registry().policy.mode == Policy.from_environment().mode
