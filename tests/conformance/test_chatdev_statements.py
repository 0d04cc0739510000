"""Statements of DevAll's study beyond its recorded runs, and what axil does where DevAll races,
stalls or guesses.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from axil import AxilError, NodeFailed, SpecError, Workflow, run_sync
from axil.plugin import CompileOptions
from axil_files import load_spec

from .test_chatdev import Reported, _environment, noted, registry, run  # noqa: F401  # a fixture

Notes = list[tuple[list[str], list[str]]]


def literal(text: str, role: str = "user") -> dict[str, Any]:
    return {"type": "literal", "config": {"content": text, "role": role}}


def agent(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "agent", "config": {"provider": "openai", "name": "stub", "role": name}, **more}


def counter(most: int, **more: Any) -> dict[str, Any]:
    return {"type": "loop_counter", "config": {"max_iterations": most, "message": "END", **more}}


PASS = {"type": "passthrough", "config": {}}
ALL = {"type": "passthrough", "config": {"only_last_message": False}}
HAS = {any_: {"type": "keyword", "config": {"any": [any_]}} for any_ in ("GO", "STOP")}
LACKS = {none: {"type": "keyword", "config": {"none": [none]}} for none in ("GO", "STOP")}


class Flow:
    """A workflow file being written, and its run."""

    def __init__(
        self,
        folder: Path,
        start: Any,
        end: Any,
        edges: list[Any],
        *,
        replies: Any = None,
        people: Any = (),
        **nodes: Any,
    ) -> None:
        graph: dict[str, Any] = {"id": "t", "start": start, "end": end, **nodes.pop("graph", {})}
        graph["nodes"] = [{"id": name, **node} for name, node in nodes.items()]
        graph["edges"] = [self.edge(edge) for edge in edges]
        rules = [
            {"match": {"system_contains": name}, "replies": said}
            for name, said in (replies or {}).items()
        ]
        self.case: dict[str, Any] = {
            "yaml": json.dumps({"version": "0.0.0", "vars": {}, "graph": graph}),
            "input": "TASK",
            "human_replies": list(people),
            "stub_replies": {"rules": rules, "default": "OK"},
        }
        self.folder = folder
        self.reported: Reported | None = None

    @staticmethod
    def edge(given: Any) -> dict[str, Any]:
        text, more = given if isinstance(given, tuple) else (given, {})
        source, target = text.split("->")
        return {"from": source, "to": target, **more}

    def run(self) -> Reported:
        self.reported = run(self.case, self.folder)
        if self.reported.error is not None:
            raise self.reported.error
        return self.reported

    @property
    def output(self) -> Any:
        assert self.reported is not None
        assert self.reported.result is not None
        return self.reported.result.output

    @property
    def fired(self) -> list[str]:
        assert self.reported is not None
        return [
            activation.node for activation, kind in self.reported.watch.started if kind != "cycle"
        ]

    def notes(self, name: str) -> Notes:
        assert self.reported is not None
        return [
            ([m["text"] for m in got], [m["text"] for m in gave])
            for got, gave in noted(self.reported.log).get(name, [])
        ]


def flow(folder: Path, *args: Any, **more: Any) -> Flow:
    made = Flow(folder, *args, **more)
    made.run()
    return made


# --------------------------------------------------------------------------------------------------


def test_a_node_without_in_edges_that_is_no_start_is_skipped_and_its_target_is_not(tmp_path):
    made = flow(tmp_path, "A", "J", ["A->J", "B->J"], A=literal("a"), B=literal("b"), J=ALL)
    assert (made.fired, made.output) == (["A", "J"], "a")


def test_data_edges_bring_their_payload_beside_the_trigger(tmp_path):
    edges = ["A->B", "B->Z", ("A->Z", {"trigger": False})]
    made = flow(tmp_path, "A", "Z", edges, A=literal("a"), B=literal("b"), Z=ALL)
    assert sorted(made.notes("Z")[0][0]) == ["a", "b"]


def test_two_edges_between_the_same_nodes_both_exist(tmp_path):
    edges = [("A->Z", {"condition": HAS["GO"]}), ("A->Z", {"condition": HAS["STOP"]})]
    assert flow(tmp_path, "A", "Z", edges, A=literal("STOP"), Z=PASS).output == "STOP"


def test_a_dropped_payload_neither_triggers_nor_carries(tmp_path):
    drop = {
        "process": {"type": "regex_extract", "config": {"pattern": "nope", "on_no_match": "drop"}}
    }
    made = flow(tmp_path, "A", ["B", "C"], [("A->B", drop), "A->C"], A=literal("a"), B=PASS, C=PASS)
    assert (made.fired, made.output) == (["A", "C"], "a")


@pytest.mark.parametrize(
    ("config", "gives"),
    [
        ({"pattern": "b(.)", "group": 1}, "1"),
        ({"pattern": "b.", "multiple": True}, "b1\nb2"),
        ({"pattern": "B1", "case_sensitive": False, "template": "<{match}>"}, "<b1>"),
        ({"pattern": "x", "on_no_match": "default", "default_value": "DEF"}, "DEF"),
    ],
    ids=["group", "multiple", "template", "default"],
)
def test_a_pattern_takes_from_a_message_what_it_names(tmp_path, config, gives):
    process = {"process": {"type": "regex_extract", "config": config}}
    assert (
        flow(tmp_path, "A", "Z", [("A->Z", process)], A=literal("a b1 b2"), Z=PASS).output == gives
    )


def test_messages_become_a_users_words_but_those_of_a_literal(tmp_path):
    made = flow(
        tmp_path,
        "A",
        "Z",
        ["A->G", "G->Z"],
        A=literal("hi", "assistant"),
        G=agent("AGENT-G"),
        Z=ALL,
    )
    assert made.reported is not None
    roles = {name: [m["role"] for m in got] for name, got, _ in made.reported.log}
    assert roles == {"A": ["user"], "G": ["assistant"], "Z": ["user"]}


# --------------------------------------------------------------------------------------------------


def test_a_window_keeps_the_newest_messages_and_the_nodes_own_words(tmp_path):
    edges = ["W->R", ("R->W", {"condition": LACKS["GO"]}), ("R->Z", {"condition": HAS["GO"]})]
    replies = {"AGENT-W": ["d1", "d2", "d3"], "AGENT-R": ["no", "no2", "GO"]}
    made = flow(
        tmp_path,
        "W",
        "Z",
        edges,
        W=agent("AGENT-W", context_window=2),
        R=agent("AGENT-R"),
        Z=PASS,
        replies=replies,
    )
    assert [got for got, _ in made.notes("W")] == [
        ["TASK"],
        ["TASK", "d1", "no"],
        ["d1", "no", "d2", "no2"],
    ]


def test_a_kept_message_stays_for_all_later_firings(tmp_path):
    edges = [
        ("S->W", {"keep_message": True}),
        "W->R",
        ("R->W", {"condition": LACKS["GO"]}),
        ("R->Z", {"condition": HAS["GO"]}),
    ]
    replies = {"AGENT-W": ["d1", "d2", "d3"], "AGENT-R": ["no", "no2", "GO"]}
    made = flow(
        tmp_path,
        "S",
        "Z",
        edges,
        S=literal("keep"),
        W=agent("AGENT-W"),
        R=agent("AGENT-R"),
        Z=PASS,
        replies=replies,
    )
    assert [got for got, _ in made.notes("W")] == [["keep"], ["keep", "no"], ["keep", "no2"]]


def test_clearing_kept_context_drops_what_was_kept(tmp_path):
    edges = [
        ("S->W", {"keep_message": True}),
        "W->R",
        ("R->W", {"condition": LACKS["GO"], "clear_context": True, "clear_kept_context": True}),
        ("R->Z", {"condition": HAS["GO"]}),
    ]
    made = flow(
        tmp_path,
        "S",
        "Z",
        edges,
        S=literal("keep"),
        W=agent("W"),
        R=agent("R"),
        Z=PASS,
        replies={"R": ["no", "GO"]},
    )
    assert [got for got, _ in made.notes("W")] == [["keep"], ["no"]]


# --------------------------------------------------------------------------------------------------


def test_a_cycle_without_a_live_entry_starts_at_its_start_node(tmp_path):
    edges = ["A->B", ("B->A", {"condition": LACKS["GO"]}), ("B->Z", {"condition": HAS["GO"]})]
    made = flow(
        tmp_path,
        "A",
        "Z",
        edges,
        A=agent("AGENT-A"),
        B=agent("AGENT-B"),
        Z=PASS,
        replies={"AGENT-B": ["no", "GO"]},
    )
    assert made.fired == ["A", "B", "A", "B", "Z"]


def test_a_cycle_may_be_left_before_its_body_is_reached(tmp_path):
    edges = [("A->X", {"condition": HAS["GO"]}), ("A->B", {"condition": LACKS["GO"]}), "B->A"]
    made = flow(
        tmp_path,
        "A",
        "X",
        edges,
        A=agent("AGENT-A"),
        B=literal("b"),
        X=PASS,
        replies={"AGENT-A": ["GO"]},
    )
    assert made.fired == ["A", "X"]


def test_an_inner_cycle_may_leave_the_outer_one_as_well(tmp_path):
    edges = [
        "W->G",
        "G->V",
        ("V->G", {"condition": LACKS["GO"]}),
        ("V->Z", {"condition": HAS["GO"]}),
        ("V->W", {"condition": HAS["STOP"]}),
    ]
    replies = {"AGENT-V": ["no", "GO"]}
    made = flow(
        tmp_path,
        "W",
        "Z",
        edges,
        W=agent("AGENT-W"),
        G=agent("AGENT-G"),
        V=agent("AGENT-V"),
        Z=PASS,
        replies=replies,
    )
    assert made.fired == ["W", "G", "V", "G", "V", "Z"]


def test_a_self_loop_inside_a_larger_cycle_turns(tmp_path):
    edges = [
        "A->B",
        ("B->B", {"condition": LACKS["GO"]}),
        ("B->C", {"condition": HAS["GO"]}),
        ("C->A", {"condition": LACKS["STOP"]}),
        ("C->Z", {"condition": HAS["STOP"]}),
    ]
    replies = {"AGENT-B": ["no", "GO", "no", "no", "GO"], "AGENT-C": ["again", "STOP"]}
    made = flow(
        tmp_path,
        "A",
        "Z",
        edges,
        A=literal("a"),
        B=agent("AGENT-B"),
        C=agent("AGENT-C"),
        Z=PASS,
        replies=replies,
    )
    assert made.fired == ["A", "B", "B", "C", "A", "B", "B", "B", "C", "Z"]


def test_a_cycle_that_nothing_ends_meets_its_limit_and_the_run_says_so(tmp_path):
    edges = ["A->B", "B->A", ("B->Z", {"condition": HAS["GO"]})]
    made = flow(tmp_path, "A", "Z", edges, A=literal("a"), B=literal("b"), Z=PASS)
    assert made.reported is not None
    assert made.reported.result is not None
    assert made.reported.result.status == "limited"
    assert Counter(made.fired) == {"A": 100, "B": 100}


def test_two_start_nodes_in_one_cycle_are_an_error(tmp_path):
    with pytest.raises(AxilError, match="A, B"):
        flow(
            tmp_path,
            ["A", "B"],
            "Z",
            ["A->B", "B->A", "B->Z"],
            A=literal("a"),
            B=literal("b"),
            Z=PASS,
        )


def test_queued_data_of_a_cycle_that_was_left_waits_for_its_next_entry(tmp_path):
    """Payloads that reach no node in a round wait for the next; so they do when the cycle is
    entered again.
    """
    edges = [
        "O->A",
        "A->B",
        "B->Q",
        "Q->O",
        ("B->A", {"trigger": False}),
        ("Q->Z", {"condition": HAS["GO"]}),
    ]
    made = flow(
        tmp_path,
        "O",
        "Z",
        edges,
        O=literal("o"),
        A=ALL,
        B=literal("b"),
        Q=agent("AGENT-Q"),
        Z=PASS,
        replies={"AGENT-Q": ["no", "GO"]},
    )
    assert [sorted(got) for got, _ in made.notes("A")] == [["o"], ["b", "o"]]


# --------------------------------------------------------------------------------------------------


def test_a_counter_that_resets_counts_again_and_one_that_does_not_sends_at_every_firing(tmp_path):
    def sent(folder: Path, reset: bool) -> list[bool]:
        folder.mkdir()
        edges = ["A->K", "A->M", ("K->A", {"trigger": False}), "M->A", "M->Z", "A->A2", "A2->A"]
        made = flow(
            folder,
            "A",
            "Z",
            edges,
            A=literal("a"),
            K=counter(2, reset_on_emit=reset),
            M=counter(6),
            A2=PASS,
            Z=PASS,
        )
        return [bool(gave) for _, gave in made.notes("K")]

    assert sent(tmp_path / "reset", True) == [False, True, False, True, False, True]
    assert sent(tmp_path / "keep", False) == [False, True, True, True, True, True]


def test_a_timer_that_resets_sends_each_time_its_time_is_up(tmp_path):
    timer = {"type": "loop_timer", "config": {"max_duration": 2.5, "message": "TIME"}}
    edges = ["W->T", "W->C", "C->W", "C->Z", ("T->W", {"trigger": False})]
    replies = {"AGENT-W": [{"delay": 1, "text": "x"}]}
    made = flow(
        tmp_path,
        "W",
        "Z",
        [*edges, "W->W2", "W2->W"],
        W=agent("AGENT-W"),
        T=timer,
        C=counter(9),
        W2=PASS,
        Z=PASS,
        replies=replies,
    )
    assert [bool(gave) for _, gave in made.notes("T")] == [
        False,
        False,
        False,
        True,
        False,
        False,
        True,
        False,
        False,
    ]


# --------------------------------------------------------------------------------------------------

ECHO = {"AGENT-Z": [{"echo_user": True}]}
INNER = {
    "id": "sub",
    "start": ["I"],
    "end": ["J"],
    "nodes": [{"id": "I", **ALL}, {"id": "J", **ALL}],
    "edges": [{"from": "I", "to": "J"}],
}


def test_all_messages_enter_a_subgraph_and_all_of_its_last_nodes_messages_come_out(tmp_path):
    sub = {"type": "subgraph", "config": {"type": "config", "config": INNER}}
    made = flow(
        tmp_path,
        "A",
        "Z",
        ["A->B", "A->S", "B->S", "S->Z"],
        A=literal("a"),
        B=literal("b"),
        S=sub,
        Z=ALL,
    )
    assert made.notes("Z") == [(["a", "b"], ["a", "b"])]


def test_a_subgraph_starts_afresh_at_each_firing(tmp_path):
    inner = {**INNER, "nodes": [{"id": "I", **counter(2)}, {"id": "J", **ALL}]}
    sub = {"type": "subgraph", "config": {"type": "config", "config": inner}}
    made = flow(
        tmp_path,
        "A",
        "Z",
        ["A->S", "A->M", ("S->A", {"trigger": False}), "M->A", "M->Z", "A->B", "B->A"],
        A=literal("a"),
        S=sub,
        M=counter(3),
        B=PASS,
        Z=PASS,
    )
    assert "J" not in made.fired


def test_a_person_is_asked_from_inside_a_subgraph_as_from_anywhere(tmp_path):
    inner = {**INNER, "nodes": [{"id": "I", **ALL}, {"id": "J", "type": "human", "config": {}}]}
    sub = {"type": "subgraph", "config": {"type": "config", "config": inner}}
    assert flow(tmp_path, "S", "S", [], S=sub, people=["answer"]).output == "answer"


def test_a_file_that_includes_itself_is_an_error_that_names_the_circle(tmp_path):
    made = Flow(
        tmp_path,
        "S",
        "S",
        [],
        S={"type": "subgraph", "config": {"type": "file", "config": {"path": "flow.yaml"}}},
    )
    with pytest.raises(SpecError, match="includes itself"):
        made.run()


def test_of_equal_votes_the_first_declared_wins(tmp_path):
    made = flow(
        tmp_path,
        "A",
        "A",
        [],
        A=literal("x"),
        B=literal("y"),
        C=literal("y"),
        D=literal("x"),
        graph={"is_majority_voting": True},
    )
    assert made.output == "x"


# --------------------------------------------------------------------------------------------------


def dynamic(kind: str, split: dict[str, Any], **config: Any) -> dict[str, Any]:
    return {"dynamic": {"type": kind, "split": split, "config": config}}


def mapped(
    folder: Path, text: str, split: dict[str, Any], *more: Any, kind: str = "map", **config: Any
) -> list[str]:
    made = flow(
        folder,
        "A",
        "O",
        [("A->Z", dynamic(kind, split, **config)), "Z->O", *more],
        A=literal(text),
        Z=agent("AGENT-Z"),
        O=ALL,
        replies=ECHO,
    )
    return made.notes("O")[0][0]


def test_a_map_over_a_json_path_fires_once_for_each_item(tmp_path):
    split = {"type": "json_path", "config": {"json_path": "items"}}
    assert mapped(tmp_path, '{"items": ["a", {"b": 1}]}', split) == ["(a)", '({"b": 1})']


def test_a_json_path_may_be_written_with_its_wildcards(tmp_path):
    assert mapped(
        tmp_path,
        '{"items": [{"n": 1}, {"n": 2}]}',
        {"type": "json_path", "config": {"json_path": "$.items[*].n"}},
    ) == [
        "(1)",
        "(2)",
    ]


def test_a_json_path_that_is_not_understood_is_an_error(tmp_path):
    with pytest.raises(AxilError, match="json_path"):
        mapped(
            tmp_path,
            '{"items": [1]}',
            {"type": "json_path", "config": {"json_path": "$.items[?(@.n)]"}},
        )


def test_five_items_in_groups_of_two_take_six_firings(tmp_path):
    split = {"type": "regex", "config": {"pattern": "i\\d"}}
    assert mapped(tmp_path, "i1 i2 i3 i4 i5", split, kind="tree", group_size=2) == [
        "(((i1+i2)+(i3+i4))+((i5)))"
    ]


def test_a_map_without_items_fires_once_for_what_is_the_same_for_all(tmp_path):
    edges = [
        ("A->Z", dynamic("map", {"type": "json_path", "config": {"json_path": "items"}})),
        "A->S",
        "S->Z",
        "Z->O",
    ]
    made = flow(
        tmp_path,
        "A",
        "O",
        edges,
        A=literal('{"items": []}'),
        S=literal("same"),
        Z=agent("AGENT-Z"),
        O=ALL,
        replies=ECHO,
    )
    assert made.notes("Z") == [(['{"items": []}', "same"], ["(same)"])]


def test_what_is_split_is_what_comes_along_a_dynamic_edge_itself(tmp_path):
    """Not what came along another one before, and then along a plain edge."""
    parts = dynamic("map", {"type": "regex", "config": {"pattern": "[a-z]\\d"}})
    made = flow(
        tmp_path,
        ["A", "B"],
        "O",
        [("A->P", parts), "P->Z", ("B->Z", parts), "Z->O"],
        A=literal("a1 a2"),
        B=literal("b1 b2"),
        P=ALL,
        Z=agent("AGENT-Z"),
        O=ALL,
        replies=ECHO,
    )
    assert made.notes("O")[0][0] == ["(a1+a2+b1)", "(a1+a2+b2)"]


def test_a_document_with_nothing_at_the_json_path_is_one_item(tmp_path):
    edges = [
        ("A->Z", dynamic("map", {"type": "json_path", "config": {"json_path": "items"}})),
        "A->S",
        "S->Z",
        "Z->O",
    ]
    made = flow(
        tmp_path,
        "A",
        "O",
        edges,
        A=literal("{}"),
        S=literal("same"),
        Z=agent("AGENT-Z"),
        O=ALL,
        replies=ECHO,
    )
    assert made.output == "(same+{})"


# --------------------------------------------------------------------------------------------------


def test_a_failing_node_fails_the_run_and_is_named(tmp_path):
    with pytest.raises(NodeFailed, match='node "A"'):
        flow(
            tmp_path,
            "A",
            "Z",
            ["A->Z"],
            A=agent("AGENT-A"),
            Z=PASS,
            replies={"AGENT-A": [{"status": 400}]},
        )


def test_everything_that_is_wrong_with_a_file_is_said_at_once(tmp_path):
    made = Flow(tmp_path, "A", "Q", ["A->Y", "X->A"], A=literal("a"), B=counter(0))
    with pytest.raises(SpecError) as caught:
        made.run()
    said = str(caught.value)
    assert all(word in said for word in ("Y", "X", "Q"))


def test_an_unknown_key_is_an_error_and_in_files_of_version_0_a_warning(tmp_path):
    made = Flow(tmp_path, "A", "A", [], A={**literal("a"), "colour": "red"})
    (tmp_path / "flow.json").write_text(made.case["yaml"], "utf-8")
    spec = load_spec(tmp_path / "flow.json")
    assert ["colour" in str(problem) for problem in spec.extras["warnings"]] == [True]
    (tmp_path / "flow.json").write_text(made.case["yaml"].replace('"0.0.0"', '"1"'), "utf-8")
    with pytest.raises(SpecError, match=r"AX141.*colour"):
        load_spec(tmp_path / "flow.json")


def test_a_node_of_an_unknown_type_is_an_error_before_anything_runs(tmp_path):
    made = Flow(tmp_path, "A", "A", [], A={"type": "pasthrough", "config": {}})
    with pytest.raises(AxilError, match="passthrough"):
        made.run()


def test_a_missing_processor_is_an_error_before_anything_runs_and_a_failing_one_fails_its_source(
    tmp_path,
):
    made = Flow(
        tmp_path,
        "A",
        "Z",
        [("A->Z", {"process": {"type": "function", "config": {"name": "nobody_has_it"}}})],
        A=literal("a"),
        Z=PASS,
    )
    with pytest.raises(AxilError, match="nobody_has_it"):
        made.run()
    assert made.fired == []


def test_any_name_may_stand_in_a_cycle(tmp_path):
    nodes = {"node_1": literal("s"), "out_node_": literal("a"), "cycle_0": PASS}
    made = flow(
        tmp_path,
        "node_1",
        "cycle_0",
        ["node_1->out_node_", "out_node_->node_1", "out_node_->cycle_0"],
        **nodes,
    )
    assert (made.fired, made.output) == (["node_1", "out_node_", "cycle_0"], "a")


def test_an_empty_answer_stays_empty(tmp_path):
    assert flow(tmp_path, "H", "H", [], H={"type": "human", "config": {}}, people=[""]).output == ""


def test_a_tree_over_one_item_runs_it(tmp_path):
    assert mapped(tmp_path, "only", {"type": "message"}, kind="tree") == ["(only)"]


def test_a_counter_counts_within_one_run(tmp_path):
    made = Flow(tmp_path, "A", "K", ["A->K"], A=literal("a"), K=counter(2))
    (tmp_path / "flow.yaml").write_text(made.case["yaml"], "utf-8")
    using = registry([])
    workflow = Workflow(
        load_spec(tmp_path / "flow.yaml", registry=using), CompileOptions(registry=using)
    )
    assert [run_sync(workflow.run("TASK")).messages for _ in range(4)] == [()] * 4


def test_an_edited_subgraph_file_is_read_again_for_the_next_plan(tmp_path):
    (tmp_path / "flow.yaml").write_text(
        Flow(
            tmp_path,
            "S",
            "S",
            [],
            S={"type": "subgraph", "config": {"type": "file", "config": {"path": "sub.yaml"}}},
        ).case["yaml"],
        "utf-8",
    )
    said = []
    for text in ("first", "second"):
        (tmp_path / "sub.yaml").write_text(
            Flow(tmp_path, "A", "A", [], A=literal(text)).case["yaml"], "utf-8"
        )
        using = registry([])
        said.append(
            run_sync(
                Workflow(
                    load_spec(tmp_path / "flow.yaml", registry=using),
                    CompileOptions(registry=using),
                ).run("TASK")
            ).output
        )
    assert said == ["first", "second"]


# --------------------------------------------------------------------------------------------------


# --------------------------------------------------------------------------------------------------


def test_a_kept_message_stays_kept_behind_a_node_that_passes_it_on(tmp_path):
    edges = [
        ("S->P", {"keep_message": True}),
        "P->W",
        "W->R",
        ("R->W", {"condition": LACKS["GO"]}),
        ("R->Z", {"condition": HAS["GO"]}),
    ]
    replies = {"AGENT-W": ["d1", "d2"], "AGENT-R": ["no", "GO"]}
    made = flow(
        tmp_path,
        "S",
        "Z",
        edges,
        S=literal("keep"),
        P=PASS,
        W=agent("AGENT-W"),
        R=agent("AGENT-R"),
        Z=PASS,
        replies=replies,
    )
    assert [got for got, _ in made.notes("W")] == [["keep"], ["keep", "no"]]


def nested(*nodes: dict[str, Any], edges: Any = ()) -> dict[str, Any]:
    names = [node["id"] for node in nodes]
    inner = {"id": "sub", "start": names[:1], "end": names[-1:], "nodes": list(nodes)}
    return {"type": "subgraph", "config": {"type": "config", "config": {**inner, "edges": edges}}}


def test_a_subgraph_whose_end_says_nothing_gives_an_empty_message(tmp_path):
    silent = nested({"id": "I", **counter(9)})
    made = flow(tmp_path, "A", "Z", ["A->S", "S->Z"], A=literal("a"), S=silent, Z=ALL)
    assert made.notes("Z") == [([""], [""])]


def test_a_subgraph_that_is_only_triggered_begins_with_an_empty_message(tmp_path):
    edges = [("A->S", {"carry_data": False}), "S->Z"]
    inner = nested({"id": "I", **literal("inner")})
    made = flow(tmp_path, "A", "Z", edges, A=literal("a"), S=inner, Z=ALL)
    assert made.notes("Z") == [(["inner"], ["inner"])]


def test_a_subgraph_in_a_loop_counts_anew_each_time(tmp_path):
    edges = [
        "A->S",
        "S->Q",
        ("Q->A", {"condition": LACKS["GO"]}),
        ("Q->Z", {"condition": HAS["GO"]}),
    ]
    made = flow(
        tmp_path,
        "A",
        "Z",
        edges,
        A=literal("a"),
        S=nested({"id": "I", **PASS}, {"id": "J", **counter(2)}, edges=[{"from": "I", "to": "J"}]),
        Q=agent("AGENT-Q"),
        Z=PASS,
        replies={"AGENT-Q": ["no", "no", "GO"]},
    )
    assert [name for name in made.fired if name in "ASQZ"] == ["A", "S", "Q"] * 3 + ["Z"]


def test_a_counter_may_count_as_far_as_the_limit_of_its_cycle(tmp_path):
    edges = ["A->L", "L->A", "L->Z", "A->B", "B->A"]
    made = flow(tmp_path, "A", "Z", edges, A=literal("a"), L=counter(100), B=PASS, Z=PASS)
    assert made.notes("Z") == [(["END"], ["END"])]
    assert Counter(made.fired)["A"] == 100


def test_a_message_that_goes_back_into_an_inner_cycle_that_is_left_waits_for_its_next_entry(
    tmp_path,
):
    edges = [
        "P->W",
        "W->V",
        ("V->P", {"condition": HAS["STOP"]}),
        ("V->W", {"condition": HAS["STOP"]}),
        ("V->Z", {"condition": HAS["GO"]}),
    ]
    made = flow(
        tmp_path,
        "P",
        "Z",
        edges,
        P=literal("plan"),
        W=ALL,
        V=agent("AGENT-V"),
        Z=PASS,
        replies={"AGENT-V": ["STOP", "GO"]},
    )
    assert [got for got, _ in made.notes("W")] == [["plan"], ["STOP", "plan"]]


def test_an_edge_whose_processor_drops_the_message_clears_nothing(tmp_path):
    drop = {"type": "regex_extract", "config": {"pattern": "absent", "on_no_match": "drop"}}
    edges = ["A->Z", "A->B", ("B->Z", {"process": drop, "clear_context": True})]
    made = flow(tmp_path, "A", "Z", edges, A=literal("a"), B=literal("b"), Z=ALL)
    assert made.notes("Z") == [(["a"], ["a"])]


def test_a_counter_counts_for_each_part_of_what_is_split_by_itself(tmp_path):
    parts = dynamic("map", {"type": "regex", "config": {"pattern": "[a-z]\\d"}})
    edges = [("A->C", parts), "C->Z"]
    for most, gave in ((1, ["END", "END", "END"]), (2, [])):
        folder = tmp_path / str(most)
        folder.mkdir()
        made = flow(folder, "A", ["Z", "A"], edges, A=literal("a1 a2 a3"), C=counter(most), Z=ALL)
        assert made.notes("C") == [(["a1 a2 a3"], gave)]
