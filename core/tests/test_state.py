"""The laws of states: what apply, join, replace and fold do to histories, on random histories and
in small.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings, strategies as st

from axil.errors import ConcurrentReset, InvalidValue, SchemaMismatch, StateError, UndeclaredField
from axil.kernel.state import APPEND, Field, History, Reducer, Schema, State, join, merged
from axil.kernel.values import MISSING, Log
from axil.spec.graph import GraphSpec
from axil.typed.reducers import MAXIMUM, SUM

# a failure prints how to repeat it; no law is about seconds
law = settings(deadline=None, print_blob=True, max_examples=200)


def _say(old, new):
    return ("" if old is MISSING else old) + new


SAY = Reducer("say", _say, pure=True)  # cannot be composed
SCHEMA = Schema(
    "test",
    {
        "log": Field("log", APPEND, default=Log),
        "total": Field("total", SUM, default=lambda: 100),
        "said": Field("said", SAY),
        "most": Field("most", MAXIMUM),
        "last": Field("last"),
    },
    closed=True,
)
ACCUMULATING = ("log", "total", "said")


def delta_of(number: int, fields: frozenset[str]) -> dict[str, object]:
    values = {
        "log": [number],
        "total": number,
        "said": f"{number},",
        "most": number,
        "last": number,
        "@node/n": number,
    }
    return {name: value for name, value in values.items() if name in fields}


# --------------------------------------------------------------------------------------------- rand


@dataclass
class Known:
    """A state, and the numbers of the writes that it must know."""

    state: State
    writes: frozenset[int] = frozenset()


@dataclass
class World:
    """A random history beside its model: for each write the fields it wrote and the writes it
    knew.
    """

    keeps: bool = False
    history: History = field(init=False)
    root: State = field(init=False)
    paths: list[Known] = field(init=False)
    wrote: dict[int, frozenset[str]] = field(default_factory=dict)
    past: dict[int, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self):
        self.history = History(SCHEMA, keeps=self.keeps)
        self.root = SCHEMA.start()
        self.paths = [Known(self.root)]

    def write(self, at: int, fields: frozenset[str]) -> None:
        path, number = self.paths[at % len(self.paths)], len(self.wrote) + 1
        self.wrote[number], self.past[number] = fields, path.writes
        self.paths.append(
            Known(path.state.apply(delta_of(number, fields), self.history), path.writes | {number})
        )

    def join(self, ats: list[int]) -> Known:
        chosen = [self.paths[at % len(self.paths)] for at in ats]
        joined = Known(
            join([path.state for path in chosen], self.history),
            frozenset().union(*(path.writes for path in chosen)),
        )
        self.paths.append(joined)
        return joined

    def round(self) -> None:
        """Everything ends, one path goes on."""
        last = self.join(list(range(len(self.paths))))
        self.paths = [Known(self.history.fold(last.state), last.writes)]

    def of(self, path: Known, name: str) -> list[int]:
        return sorted(number for number in path.writes if name in self.wrote[number])


written = st.frozensets(st.sampled_from([*SCHEMA.fields, "@node/n"]), min_size=1)
places = st.integers(0, 30)
steps = st.one_of(
    st.tuples(st.just("write"), places, written),
    st.tuples(st.just("join"), st.lists(places, min_size=1, max_size=4)),
)
programs = st.lists(steps, max_size=25)
with_rounds = st.lists(st.one_of(steps, st.just(("round",))), max_size=25)


def played(program, keeps=False) -> World:
    world = World(keeps)
    for act, *args in program:
        getattr(world, act)(*args)
    return world


@law
@given(programs)
def test_a_state_shows_each_write_it_knows_once_and_no_other(program):
    world = played(program)
    for path in world.paths:
        assert sorted(path.state["log"]) == world.of(path, "log")
        assert path.state["total"] == 100 + sum(world.of(path, "total"))
        assert sorted(path.state.get("said", "").split(",")[:-1], key=int) == [
            str(n) for n in world.of(path, "said")
        ]
        assert path.state.get("most") == max(world.of(path, "most"), default=None)


@law
@given(programs)
def test_a_write_comes_after_the_writes_that_it_knew(program):
    world = played(program)
    for path in world.paths:
        log = list(path.state["log"])
        assert all(
            log.index(known) < at
            for at, number in enumerate(log)
            for known in world.past[number]
            if "log" in world.wrote[known]
        )


@law
@given(programs)
def test_an_overwritten_field_shows_the_write_that_knew_all_others(program):
    world = played(program)
    for path in world.paths:
        for name in ("last", "@node/n"):
            numbers = set(world.of(path, name))
            newest = [number for number in numbers if numbers - {number} <= world.past[number]]
            assert (
                path.state.get(name) == newest[0]
                if newest
                else path.state.get(name) in (numbers or {None})
            )


@law
@given(programs, st.lists(places, min_size=2, max_size=5), st.data())
def test_grouping_joins_differently_gives_the_same_writes(program, ats, data):
    world = played(program)
    ats = [at % len(world.paths) for at in ats]
    flat = world.join(ats)
    cut = data.draw(st.integers(1, len(ats) - 1))
    world.join(ats[:cut])
    left = len(world.paths) - 1
    world.join(ats[cut:])
    grouped = world.join([left, len(world.paths) - 1])
    assert flat.writes == grouped.writes
    assert flat.state.known == grouped.state.known
    for name in ("log", "said"):
        assert sorted(flat.state.get(name, ())) == sorted(grouped.state.get(name, ()))
    assert flat.state["total"] == grouped.state["total"]


@law
@given(programs, places)
def test_joining_a_state_with_itself_or_with_its_past_gives_the_state_itself(program, at):
    world = played(program)
    path = world.paths[at % len(world.paths)]
    assert join([path.state], world.history) is path.state
    assert join([path.state, path.state], world.history) is path.state
    assert join([path.state, world.root], world.history) is path.state
    assert join([world.root, path.state], world.history) is path.state


@law
@given(programs)
def test_no_operation_changes_a_state_that_exists(program):
    world = World()
    shown: list[dict[str, object]] = [dict(world.root)]
    for act, *args in program:
        getattr(world, act)(*args)
        shown += [
            {**path.state, "log": list(path.state["log"])} for path in world.paths[len(shown) :]
        ]
    assert [dict(path.state) for path in world.paths] == shown


@law
@given(with_rounds)
def test_the_changes_of_a_frame_applied_to_its_root_give_its_last_state(program):
    world = played([*program, ("round",)], keeps=True)
    last, changes = world.paths[0].state, world.history.changes
    assert dict(world.root.apply(changes)) == dict(last)
    outside = History(SCHEMA)
    assert dict(world.root.apply(changes, outside)) == dict(last)


@law
@given(with_rounds, with_rounds)
def test_the_changes_of_two_frames_meet_like_any_two_writes(left, right):
    outside = History(SCHEMA)
    worlds = [played([*program, ("round",)], keeps=True) for program in (left, right)]
    met = join([SCHEMA.start().apply(world.history.changes, outside) for world in worlds], outside)
    assert sorted(met["log"]) == sorted(
        n for world in worlds for n in world.of(world.paths[0], "log")
    )
    assert met["total"] == 100 + sum(
        n for world in worlds for n in world.of(world.paths[0], "total")
    )


@law
@given(programs, programs)
def test_folding_forgets_the_history_and_keeps_the_values(before, after):
    world = played([*before, ("round",)])
    state = world.paths[0].state
    assert (dict(state.writes), state.known, world.history.count) == ({}, 0, 0)
    world.root = state
    for act, *args in after:
        getattr(world, act)(*args)
    assert all(sorted(path.state["log"]) == world.of(path, "log") for path in world.paths)


alone = st.lists(
    st.one_of(
        written,
        st.dictionaries(st.sampled_from(["log", "total", "last"]), st.integers(0, 9)),
        st.none(),
    ),
    max_size=12,
)


@law
@given(alone, st.booleans())
def test_writes_and_replacements_on_one_path_compose_into_one_change(acts, numbered):
    """``numbered``: with history, and folded now and then; else as the machine does it for a path
    that is alone.
    """
    root = SCHEMA.start({"said": "", "most": 0, "last": 0}).apply({"log": ["before"], "total": 5})
    history, state = History(SCHEMA, keeps=True), root
    for number, act in enumerate(acts, 1):
        if act is None:
            state = history.fold(state)
        elif isinstance(act, dict):
            values = {**dict(state), **act, **({"log": Log([act["log"]])} if "log" in act else {})}
            new = state.replace(values, history if numbered else None)
            if not numbered:
                history.note_replace(state, new)
            state = new
        else:
            delta = delta_of(number, act)
            state = state.apply(delta, history if numbered else None)
            if not numbered:
                history.note(delta)
    state = history.fold(state)
    assert dict(root.apply(history.changes)) == dict(state)


# --------------------------------------------------------------------------------------------------


@pytest.fixture
def history():
    return History(SCHEMA)


@pytest.fixture
def root():
    return SCHEMA.start()


def test_a_branch_that_left_a_field_alone_cannot_undo_a_write(root, history):
    wrote, idle = root.apply({"last": "B"}, history), root.apply({"log": ["c"]}, history)
    assert join([wrote, idle], history)["last"] == "B"


def test_of_concurrent_overwrites_the_later_edge_wins(root, history):
    b, c = root.apply({"last": "B"}, history), root.apply({"last": "C"}, history)
    assert (join([b, c], history)["last"], join([c, b], history)["last"]) == ("C", "B")


def test_an_overwrite_that_knew_the_other_wins_whatever_the_order(root, history):
    b = root.apply({"last": "B"}, history)
    c = b.apply({"last": "C"}, history)
    assert join([c, b], history)["last"] == join([b, c], history)["last"] == "C"


def test_a_diamond_applies_what_both_branches_share_once(root, history):
    shared = root.apply({"log": ["in"], "total": 1}, history)
    met = join([shared.apply({"log": [name], "total": 1}, history) for name in ("b", "c")], history)
    assert (list(met["log"]), met["total"]) == (["in", "b", "c"], 103)


def test_states_of_two_schemas_do_not_meet(root, history):
    with pytest.raises(SchemaMismatch):
        join([root, Schema("other").start()], history)


def test_a_wide_fan_reduces_each_write_once():
    calls: list[object] = []

    def noted(old, new):
        calls.append(new)
        return [*old, new]

    schema = Schema(
        "wide", {"all": Field("all", Reducer("noted", noted, pure=True), default=list)}, closed=True
    )
    history, root = History(schema), schema.start()
    fan = [root.apply({"all": number}, history) for number in range(300)]
    calls.clear()
    met = join(fan, history)
    assert met["all"] == list(range(300))
    assert len(calls) < 300  # the first branch's value is there already


# --------------------------------------------------------------------------------------------------


def test_a_replacement_that_changes_nothing_is_the_state_itself(root, history):
    state = root.apply({"log": [1], "last": 2}, history)
    assert state.replace(dict(state), history) is state


def test_a_field_that_is_left_out_of_a_replacement_goes_back_to_its_default(root, history):
    state = root.apply({"log": ["x"], "last": "A", "total": 1}, history).replace(
        {"log": Log(["x"])}, history
    )
    assert dict(state) == {"log": ["x"], "total": 100}


def test_an_unchanged_field_keeps_its_history_through_a_replacement(root, history):
    shared = root.apply({"log": ["in"]}, history)
    b = shared.apply({"log": ["b"]}, history)
    filtered = b.replace({"log": b["log"]}, history)
    assert list(join([filtered, shared.apply({"log": ["c"]}, history)], history)["log"]) == [
        "in",
        "b",
        "c",
    ]


def test_a_reset_knows_its_past_and_can_be_written_to(root, history):
    before = root.apply({"log": ["a"]}, history)
    after = before.replace({}, history).apply({"log": ["b"]}, history)
    assert list(join([before, after], history)["log"]) == ["b"]
    assert list(join([after, before], history)["log"]) == ["b"]


@pytest.mark.parametrize("order", [[0, 1], [1, 0], [0, 2, 1], [2, 0, 1], [1, 0, 2], [0, 1, 2]])
def test_a_reset_that_meets_writes_it_did_not_know_is_an_error_in_every_order(root, history, order):
    reset = root.apply({"log": ["a"]}, history).replace({}, history)
    paths = [
        reset.apply({"log": ["b"]}, history),
        root.apply({"log": ["unknown to the reset"]}, history),
        reset.apply({"log": ["c"]}, history),
    ]
    with pytest.raises(ConcurrentReset, match='"log"'):
        join([paths[i] for i in order], history)


def test_resets_of_an_overwritten_field_meet_like_writes(root, history):
    a = root.apply({"last": 1}, history).replace({"last": 2}, history)
    b = root.apply({"last": 3}, history)
    assert join([a, b], history)["last"] == 3


def test_a_custom_merge_knows_every_write_of_the_states(root, history):
    b, c = (
        root.apply({"log": ["b"], "last": "B"}, history),
        root.apply({"log": ["c"], "last": "C"}, history),
    )
    met = merged([b, c], {"last": "B+C", "log": Log()}, history)
    assert dict(join([b, met, c], history)) == {"last": "B+C", "log": [], "total": 100}


@pytest.mark.parametrize("field", ["last", "log"])
def test_what_a_merge_decided_stays_whatever_it_meets(root, history, field):
    """Even if it is the value of the first state: a plain join of both knows as much."""
    b, c = root.apply({field: ["b"]}, history), root.apply({field: ["c"]}, history)
    met = merged([b, c], dict(b), history)
    both = join([b, c], history)
    assert list(both[field]) == (["c"] if field == "last" else ["b", "c"])
    for order in ([met, both], [both, met]):
        assert list(join(order, history)[field]) == ["b"]


def test_a_merge_leaves_fields_alone_of_which_the_first_state_knows_all(root, history):
    b = root.apply({"log": ["b"]}, history)
    c = b.apply({"last": "C"}, history)
    met = merged([b, c], dict(c), history)
    other = root.apply({"log": ["other"]}, history)
    assert list(join([met, other], history)["log"]) == ["b", "other"]  # no reset to refuse


def test_fields_of_the_kernel_survive_every_replacement_and_merge(root, history):
    b, c = root.apply({"@node/b": 1}, history), root.apply({"@node/c": 2}, history)
    met = merged([b, c], {"last": 1}, history).replace({}, history)
    assert (met["@node/b"], met["@node/c"]) == (1, 2)


def test_an_accumulating_field_that_is_reset_to_nothing_is_reset_for_the_parent_too():
    schema = Schema("s", {"n": Field("n", SUM)}, closed=True)
    root = schema.start({"n": 10})
    history = History(schema, keeps=True)
    last = history.fold(root.replace({}, history).apply({"n": 1}, history))
    assert last["n"] == 1
    assert root.apply(history.changes)["n"] == 1


# ---------------------------------------------------------------------------------------------- map


def test_defaults_are_applied_once():
    schema = Schema("s", {"n": Field("n", SUM, default=lambda: 10)}, closed=True)
    history, root = History(schema), schema.start()
    a = root.apply({"n": 1}, history)
    assert (
        join([a, root], history)["n"]
        == a.replace(dict(a), history)["n"]
        == history.fold(a)["n"]
        == 11
    )


def test_an_absent_field_is_not_in_the_state(root):
    assert "last" not in root
    assert root.get("last", 7) == 7
    with pytest.raises(KeyError):
        root["last"]
    assert list(root) == ["log", "total"]
    assert len(root) == 2


def test_an_empty_delta_gives_the_state_itself(root, history):
    assert root.apply({}, history) is root


def test_applying_to_a_state_of_a_thousand_fields_copies_none_of_them():
    state = Schema().start({f"k{number}": number for number in range(1000)})
    base = state._base
    state = state.apply({"k1": -1})
    assert state._base is base
    assert state._over == {"k1": -1}
    rewritten, copied = 0, 0
    for number in range(1000):
        before, state = state, state.apply({f"k{number}": 0})
        copied += len(before._over)
        rewritten += state._base is not before._base
    assert len(state) == 1000
    assert copied < 1000 * 40  # overlays stay below the square root of the size …
    assert rewritten < 1000 / 30  # … and are worked into the base that often


def test_a_delta_is_checked_into_containers_of_its_own(root):
    items = [[1]]
    checked = SCHEMA.check({"log": items})
    items[0].append(2)
    assert checked == {"log": [[1]]}


def test_a_closed_schema_takes_its_own_fields_and_the_kernels():
    assert SCHEMA.check({"last": 1, "@node/x": 2}) == {"last": 1, "@node/x": 2}
    with pytest.raises(UndeclaredField, match=r'"lst".*Did you mean "last"'):
        SCHEMA.check({"lst": 1})


@pytest.mark.parametrize("wrong", [[("last", 1)], {1: 2}, None, "last"])
def test_a_delta_is_a_mapping_of_names(wrong):
    with pytest.raises(StateError, match="AX200"):
        SCHEMA.check(wrong)


def test_an_open_schema_takes_anything_and_overwrites_it():
    history = History(Schema())
    state = history.schema.start({"a": 1}).apply(history.schema.check({"a": [2], "b": 3}), history)
    assert dict(state) == {"a": [2], "b": 3}


def test_a_value_is_validated_where_its_type_is_known():
    def positive(value):
        if value < 0:
            raise ValueError("must not be negative")
        return value

    whole = Schema("s", {"n": Field("n", validate=positive)}, closed=True)
    with pytest.raises(InvalidValue, match='field "n" of s does not take -1: must not be negative'):
        whole.check({"n": -1})
    custom = Reducer("take", lambda old, new: old - new, pure=True)
    result = Schema(
        "s", {"n": Field("n", custom, default=lambda: 1, validate=positive)}, closed=True
    )
    assert result.start().apply(result.check({"n": -5}))["n"] == 6
    with pytest.raises(InvalidValue):
        result.start().apply(result.check({"n": 2}))


def test_a_graph_has_the_fields_that_its_extras_call_growing_and_its_digest_has_not():
    plain = GraphSpec(id="g")
    spec = GraphSpec(id="g", extras={"growing": ("notes",), "lenient": True})
    whole = spec.whole_schema()
    assert (whole.of("notes").reducer, whole.closed, plain.whole_schema().fields) == (
        APPEND, False, {},
    )  # fmt: skip
    declared = Schema("s", {"notes": Field("notes", SUM)}, closed=True)
    assert replace(spec, schema=declared).whole_schema() is declared
    assert spec.digest() == plain.digest()
