"""Faults planted into workflows, each with the finding that is expected, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from pydantic import BaseModel

from axil import ComponentRef, Graph, Limits, RootGraph
from axil_agent import Agent, Scripted
from axil_control import LogicSwitch, Loop
from axil_wrappers import Write


@dataclass(frozen=True, slots=True)
class Planted:
    """A workflow with one fault: what is expected of the check."""

    id: str
    where: str
    """A part of the place."""
    says: str
    """A part of the message."""
    file: str = ""
    graph: Callable[[], RootGraph] | None = None


def _of_file(file: Path) -> Planted:
    """Return the fault of a file, whose first line says what is expected."""
    text = file.read_text("utf-8")
    id, where, says = text.partition("\n")[0].removeprefix("# ").split(" | ", 2)
    return Planted(id, where, says, text)


FOLDER = Path(__file__).parent / "planted"
FILES = {file.stem: _of_file(file) for file in sorted(FOLDER.glob("*.yaml"))}


class Desk(TypedDict):
    kind: str
    draft: NotRequired[str]
    done: bool


class Notes(BaseModel):
    items: list[str] = []
    count: int = 0
    done: bool = False


class Answer(TypedDict):
    text: str
    score: int


def _agent() -> Agent:
    return Agent(Scripted(["x"]), "Answer.")


def up(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"text": inputs["text"].upper()}


def count(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"n": len(inputs["text"])}


def both(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"text": inputs["text"], "log": "seen"}


def typed(inputs: dict[str, Any]) -> Answer:
    answer: Answer = {"text": inputs["text"], "score": 3}
    return answer


def carried() -> RootGraph:
    graph = RootGraph("carried")
    graph.create_node(count, name="a")
    graph.create_node(up, name="b")
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "b", ["text"])
    graph.edge_to_exit("b", ["text"])
    return graph


def carried_behind_a_switch() -> RootGraph:
    graph = RootGraph("switched")
    switch = graph.create_node(LogicSwitch, name="s")
    graph.create_node(up, name="b")
    graph.edge_from_entry(switch, ["topic"])
    switch.condition_binding(lambda message: True, graph.create_edge(switch, "b", ["text"]))
    graph.edge_to_exit("b", ["text"])
    return graph


def carried_of_a_type() -> RootGraph:
    graph = RootGraph("typed")
    graph.create_node(typed, name="a")
    graph.create_node(up, name="b")
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "b", {"txt": "the text"})
    graph.edge_to_exit("b", ["text"])
    return graph


def needed() -> RootGraph:
    graph = RootGraph("needed")
    graph.create_node(up, name="a")
    graph.edge_from_entry("a", ["topic"])
    graph.edge_to_exit("a", ["text"])
    return graph


def needed_by_a_prompt() -> RootGraph:
    graph = RootGraph("prompt")
    graph.create_node(
        Agent(Scripted(["x"]), "Be brief.", prompt_template="About {topic}."), name="a"
    )
    graph.edge_from_entry("a", ["text"])
    graph.edge_to_exit("a", ["text"])
    return graph


def needed_inside() -> RootGraph:
    graph = RootGraph("outer")
    inner = graph.create_node(Graph, name="inner")
    inner.create_node(up, name="a")
    inner.edge_from_entry("a", ["topic"])
    inner.edge_to_exit("a", ["text"])
    graph.edge_from_entry(inner, ["topic"])
    graph.edge_to_exit(inner, ["text"])
    return graph


def needed_in_a_loop() -> RootGraph:
    graph = RootGraph("looped")
    loop = graph.create_node(Loop, name="loop", max_iterations=2)
    loop.create_node(up, name="a")
    loop.edge_from_controller("a", ["topic"])
    loop.edge_to_controller("a", ["text"])
    graph.edge_from_entry(loop, ["topic"])
    graph.edge_to_exit(loop, ["text"])
    return graph


def short_or_long(message: dict[str, Any]) -> bool:
    return len(message["text"]) > 9


def missing_on_one_way() -> RootGraph:
    graph = RootGraph("ways")
    graph.create_node("switch", name="s", routes={"a": "len(message.text) > 9"}, otherwise="b")
    graph.create_node(up, name="a")
    graph.create_node(count, name="b")
    graph.create_node(up, name="c")
    graph.edge_from_entry("s", ["text"])
    graph.create_edge("s", "a", ["text"])
    graph.create_edge("s", "b", ["text"])
    graph.create_edge("a", "c", ["text"])
    graph.create_edge("b", "c", ["n"])
    graph.edge_to_exit("c", ["text"])
    return graph


def write_draft(state: Desk) -> dict[str, Any]:
    return {"draft": f"A {state['kind']}."}


def leave_draft(state: Desk) -> dict[str, Any]:
    return {"kind": "none"}


def read_draft(state: Desk) -> dict[str, Any]:
    return {"draft": state["draft"].strip()}


def unwritten_on_one_way() -> RootGraph:
    graph = RootGraph("desk", state=Desk)
    graph.create_node("switch", name="s", routes={"a": 'state.kind == "bug"'}, otherwise="b")
    graph.create_node(write_draft, name="a")
    graph.create_node(leave_draft, name="b")
    graph.create_node(read_draft, name="c")
    for source, target in (("entry", "s"), ("s", "a"), ("s", "b"), ("a", "c"), ("b", "c")):
        graph.create_edge(source, target)
    graph.edge_to_exit("c")
    return graph


def routed(state: Desk) -> Literal["a", "b"]:
    return "a" if state["kind"] == "bug" else "b"


def unwritten_behind_a_router() -> RootGraph:
    graph = RootGraph("desk", state=Desk)
    graph.create_node(leave_draft, name="s")
    graph.create_node(write_draft, name="a")
    graph.create_node(leave_draft, name="b")
    graph.create_node(read_draft, name="c")
    graph.edge_from_entry("s")
    graph.create_router("s", routed, ["a", "b"])
    for source, target in (("a", "c"), ("b", "c")):
        graph.create_edge(source, target)
    graph.edge_to_exit("c")
    return graph


def a_name_of_no_router() -> RootGraph:
    graph = RootGraph("desk", state=Desk)
    for name in "sabc":
        graph.create_node(leave_draft if name == "s" else write_draft, name=name)
    graph.edge_from_entry("s")
    graph.create_router("s", routed, ["a", "b", "c"])
    for name in "abc":
        graph.edge_to_exit(name)
    return graph


def a_join_behind_a_router() -> RootGraph:
    graph = RootGraph("desk", state=Desk)
    for name in "sab":
        graph.create_node(leave_draft if name == "s" else write_draft, name=name)
    graph.create_node(leave_draft, name="c", join="all")
    graph.edge_from_entry("s")
    graph.create_router("s", routed, ["a", "b"])
    graph.create_edge("a", "c")
    graph.create_edge("b", "c")
    graph.edge_to_exit("c")
    return graph


def unpulled_on_one_way() -> RootGraph:
    graph = RootGraph("tone")
    graph.create_node("switch", name="s", routes={"a": "len(message.text) > 9"}, otherwise="b")
    graph.create_node(tone, name="a", push_keys=["tone"], pull_keys=[])
    graph.create_node(up, name="b", push_keys=[], pull_keys=[])
    agent = Agent(Scripted(["x"]), "Be {tone}.", prompt_template="About {text}.")
    graph.create_node(agent, name="c", pull_keys=["tone"])
    graph.edge_from_entry("s", ["text"])
    graph.create_edge("s", "a", ["text"])
    graph.create_edge("s", "b", ["text"])
    graph.create_edge("a", "c", ["text"])
    graph.create_edge("b", "c", ["text"])
    graph.edge_to_exit("c", ["text"])
    return graph


def tone(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"text": inputs["text"], "tone": "dry"}


def unread_key() -> RootGraph:
    graph = RootGraph("unread")
    graph.create_node(both, name="a")
    graph.create_node(up, name="b")
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "b", ["text", "log"])
    graph.edge_to_exit("b", ["text"])
    return graph


def unread_output() -> RootGraph:
    graph = RootGraph("unread")
    graph.create_node(both, name="a")
    graph.create_node(up, name="b")
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "b", ["text"])
    graph.edge_to_exit("b", ["text"])
    return graph


def unread_attribute() -> RootGraph:
    graph = RootGraph("unread", attributes={"tone": "dry"})
    graph.create_node(_agent(), name="a")
    graph.edge_from_entry("a", ["topic"])
    graph.edge_to_exit("a", ["text"])
    return graph


def unread_in_a_prompt() -> RootGraph:
    graph = RootGraph("unread")
    agent = Agent(
        Scripted(["x"]), "Brief.", prompt_template="About {topic}.", hide_unused_fields=True
    )
    graph.create_node(agent, name="a")
    graph.edge_from_entry("a", ["topic", "tone"])
    graph.edge_to_exit("a", ["text"])
    return graph


def asks(text: str) -> ComponentRef:
    return ComponentRef(type="expression", config={"expression": text})


def note(state: Notes) -> dict[str, Any]:
    return {"count": 1}


def no_progress() -> RootGraph:
    graph = RootGraph("loop", state=Notes, cycles="allow")
    graph.create_node(note, name="a")
    graph.create_node(note, name="b")
    graph.create_node(note, name="c")
    graph.edge_from_entry("a")
    graph.create_edge("a", "b")
    graph.create_edge("b", "a", when=asks("not state.done"))
    graph.create_edge("b", "c", when=asks("state.done"))
    graph.edge_to_exit("c")
    return graph


def no_progress_beside_a_write() -> RootGraph:
    graph = RootGraph("loop", state=Notes, cycles="allow")
    graph.create_node(note, name="a", wrappers=[Write(fields={"count": 2})])
    graph.create_node(note, name="c")
    graph.edge_from_entry("a")
    graph.create_edge("a", "a", when=asks("not state.done"))
    graph.create_edge("a", "c", when=asks("state.done == true"))
    graph.edge_to_exit("c")
    return graph


def another_type_of_state() -> RootGraph:
    graph = RootGraph("loop", state=Notes)
    graph.create_node(note, name="a")
    graph.create_node(note, name="b")
    graph.edge_from_entry("a")
    graph.create_edge("a", "b", when=asks('state.count == "two"'))
    graph.edge_to_exit("b")
    return graph


def an_object_for_a_list() -> RootGraph:
    class Given(TypedDict):
        items: int

    def give(state: Notes) -> Given:
        given: Given = {"items": 3}
        return given

    give.__annotations__["return"] = Given
    graph = RootGraph("loop", state=Notes)
    graph.create_node(give, name="a")
    graph.edge_from_entry("a")
    graph.edge_to_exit("a")
    return graph


def items_of_no_list() -> RootGraph:
    graph = RootGraph("map")
    graph.create_node(typed, name="a")
    graph.create_node(up, name="b", wrappers=[{"type": "map", "over": "score", "item": "text"}])
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "b", ["score", "text"])
    graph.edge_to_exit("b", ["text"])
    return graph


def too_few_firings() -> RootGraph:
    graph = RootGraph("few", limits=Limits(firings=1))
    graph.create_node(up, name="a")
    graph.create_node(up, name="b")
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "b", ["text"])
    graph.edge_to_exit("b", ["text"])
    return graph


def an_unbound_edge() -> RootGraph:
    graph = RootGraph("switch")
    switch = graph.create_node(LogicSwitch, name="s")
    graph.create_node(up, name="a")
    graph.create_node(up, name="b")
    graph.edge_from_entry(switch, ["text"])
    switch.condition_binding(short_or_long, graph.create_edge(switch, "a", ["text"]))
    graph.create_edge(switch, "b", ["text"])
    graph.edge_to_exit("a", ["text"])
    graph.edge_to_exit("b", ["text"])
    return graph


def misspelt(state: Desk) -> dict[str, Any]:
    return {"draught": state["kind"]}


def misread(state: Desk) -> dict[str, Any]:
    return {"draft": state["knd"]}


def misread_in_a_branch(state):
    return {"count": state.cuont + 1} if state.done else {"count": 0}


def assign_by_a_wrong_name(state):
    state.itmes = []


def of_one(body: Any, state: type = Desk, **options: Any) -> RootGraph:
    graph = RootGraph("desk", state=state)
    graph.create_node(body, name="a", **options)
    graph.edge_from_entry("a")
    graph.edge_to_exit("a")
    return graph


def an_undeclared_write() -> RootGraph:
    return of_one(misspelt)


def an_undeclared_read() -> RootGraph:
    return of_one(misread)


def an_undeclared_read_in_a_branch() -> RootGraph:
    return of_one(misread_in_a_branch, Notes)


def an_undeclared_assignment() -> RootGraph:
    return of_one(assign_by_a_wrong_name, Notes)


def an_undeclared_push() -> RootGraph:
    return of_one(_agent(), push_keys=["draught"])


def keys_of_a_typed_edge() -> RootGraph:
    graph = RootGraph("desk", state=Desk)
    graph.create_node(write_draft, name="a")
    graph.create_node(leave_draft, name="b")
    graph.edge_from_entry("a")
    graph.create_edge("a", "b", ["draft"])
    graph.edge_to_exit("b")
    return graph


def triage(state: Desk) -> dict[str, Any]:
    if "crash" in state["kind"]:
        return {"kind": "bug"}
    return {"kind": "question"}


def label(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"label": "long" if len(inputs["text"]) > 9 else "short", "text": inputs["text"]}


def first_draft(state: Desk) -> dict[str, Any]:
    return {"draft": "A draft."}


def leave(state: Desk) -> dict[str, Any]:
    return {}


def on_the_desk(bodies: dict[str, Any], *edges: str, join: str = "") -> RootGraph:
    """Return a typed graph; ``join``: the node that waits for all its edges."""
    graph = RootGraph("desk", state=Desk)
    for name, body in bodies.items():
        graph.create_node(body, name=name, **({"join": "all"} if name == join else {}))
    for edge in edges:
        source, target, *condition = edge.split(" ", 2)
        graph.create_edge(source, target, when=asks(condition[0]) if condition else None)
    return graph


def a_kind_that_nothing_writes() -> RootGraph:
    return on_the_desk(
        {"a": triage, "b": leave, "c": leave},
        "entry a",
        'a b state.kind == "feature"',
        "a c",
        "b c",
        "c exit",
    )


def a_kind_far_behind() -> RootGraph:
    return on_the_desk(
        {"a": triage, "p": leave, "b": leave, "c": leave},
        "entry a",
        "a p",
        'p b state.kind == "feature"',
        "p c",
        "b c",
        "c exit",
    )


def a_join_of_two_kinds() -> RootGraph:
    return on_the_desk(
        {"a": leave, "b": leave, "p": leave, "c": leave, "d": leave},
        "entry a",
        'a b state.kind == "bug"',
        "a p",
        'p c state.kind == "question"',
        "b d",
        "c d",
        "d exit",
        join="d",
    )


def unwritten_behind_a_condition() -> RootGraph:
    return on_the_desk(
        {"a": leave, "b": first_draft, "c": leave, "d": read_draft},
        "entry a",
        'a b state.kind == "bug"',
        'a c not (state.kind == "bug")',
        "b d",
        "c d",
        "d exit",
    )


def unwritten_on_a_longer_way() -> RootGraph:
    return on_the_desk(
        {"a": leave, "b": first_draft, "c": leave, "e": leave, "f": leave, "d": read_draft},
        "entry a",
        'a b state.kind == "bug"',
        'a c not (state.kind == "bug")',
        "b e",
        "e d",
        "c f",
        "f d",
        "d exit",
    )


def a_label_that_nothing_gives() -> RootGraph:
    graph = RootGraph("labels")
    for name, body in {"a": label, "b": up, "c": up}.items():
        graph.create_node(body, name=name)
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "b", ["text"], when=asks('message.label == "medium"'))
    graph.create_edge("a", "c", ["text"], when=asks('message.label == "long"'))
    for name in "bc":
        graph.edge_to_exit(name, ["text"])
    return graph


def a_label_behind_a_passthrough() -> RootGraph:
    graph = RootGraph("labels")
    for name, body in {"a": label, "p": "passthrough", "b": up, "c": up}.items():
        graph.create_node(body, name=name)
    graph.edge_from_entry("a", ["text"])
    long, short = (asks(f'message.label == "{text}"') for text in ("long", "short"))
    graph.create_edge("a", "p", ["text", "label"], when=long)
    graph.create_edge("p", "b", ["text"], when=short)
    graph.create_edge("p", "c", ["text"])
    for name in "bc":
        graph.edge_to_exit(name, ["text"])
    return graph


def two_switches_of_a_number() -> RootGraph:
    graph = RootGraph("numbers")
    graph.create_node("switch", name="s", routes={"t": "message.n > 5"}, otherwise="b")
    graph.create_node("switch", name="t", routes={"c": "message.n < 2"}, otherwise="b")
    for name in "bc":
        graph.create_node("passthrough", name=name)
        graph.edge_to_exit(name, ["n"])
    for edge in ("entry s", "s t", "s b", "t c", "t b"):
        graph.create_edge(*edge.split(), ["n"])
    return graph


def of_an_inner_graph(taken: list[str], given: list[str]) -> RootGraph:
    graph = RootGraph("outer")
    inner = graph.create_node(Graph, name="inner")
    inner.create_node(up, name="a")
    inner.edge_from_entry("a", ["text"])
    inner.edge_to_exit("a", ["text"])
    graph.edge_from_entry(inner, taken)
    graph.edge_to_exit(inner, given)
    return graph


def never_given_by_an_inner_graph() -> RootGraph:
    return of_an_inner_graph(["text"], ["summary"])


def needed_by_an_inner_graph() -> RootGraph:
    return of_an_inner_graph(["topic"], ["text"])


def unread_by_an_inner_graph() -> RootGraph:
    return of_an_inner_graph(["text", "tone"], ["text"])


def carried_behind_a_passthrough() -> RootGraph:
    graph = RootGraph("carried")
    for name, body in {"a": up, "p": "passthrough", "b": up}.items():
        graph.create_node(body, name=name)
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "p", ["text"])
    graph.create_edge("p", "b", ["txt"])
    graph.edge_to_exit("b", ["text"])
    return graph


def no_progress_of_attributes() -> RootGraph:
    graph = RootGraph("loop", attributes={"done": False, "n": 0}, cycles="allow")
    graph.create_node(up, name="a", push_keys=["n"], pull_keys=[])
    graph.create_node(up, name="b", push_keys=[], pull_keys=[])
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "b", ["text"])
    graph.create_edge("b", "a", ["text"], when=asks("not state.done"))
    graph.create_edge("b", "exit", ["text"], when=asks("state.done"))
    return graph


def behind_a_condition_in_a_loop() -> RootGraph:
    graph = RootGraph("looped")
    loop = graph.create_node(Loop, name="loop", max_iterations=2)
    for name, body in {"a": label, "p": "passthrough", "b": up, "c": up}.items():
        loop.create_node(body, name=name)
    loop.edge_from_controller("a", ["text"])
    loop.create_edge("a", "p", ["text", "label"], when=asks('message.label == "long"'))
    loop.create_edge("p", "b", ["text"], when=asks('message.label == "short"'))
    loop.create_edge("p", "c", ["text"])
    for name in "bc":
        loop.edge_to_controller(name, ["text"])
    graph.edge_from_entry(loop, ["text"])
    graph.edge_to_exit(loop, ["text"])
    return graph


GRAPHS: dict[str, Planted] = {
    each.graph.__name__: each
    for each in (
        Planted(
            "AX183", "edge a->b", "carries text, which a never gives: it gives n", graph=carried
        ),
        Planted(
            "AX183", "edge s->b", "carries text, which s never gives", graph=carried_behind_a_switch
        ),
        Planted("AX183", "edge a->b", "carries txt, which a never gives", graph=carried_of_a_type),
        Planted("AX185", 'node "a"', 'it reads "text", which no edge brings', graph=needed),
        Planted(
            "AX185", 'node "a"', 'it reads "topic", which no edge brings', graph=needed_by_a_prompt
        ),
        Planted("AX185", 'graph "inner", node "a"', 'it reads "text"', graph=needed_inside),
        Planted("AX185", 'graph "loop", node "a"', 'it reads "text"', graph=needed_in_a_loop),
        Planted(
            "AX181",
            'node "c"',
            "does not come on the way @entry -> s -> b -> c",
            graph=missing_on_one_way,
        ),
        Planted(
            "AX181",
            'node "c"',
            "on the way @entry -> s -> b -> c nothing",
            graph=unwritten_on_one_way,
        ),
        Planted(
            "AX181",
            'node "c"',
            "on the way @entry -> s -> b -> c nothing",
            graph=unwritten_behind_a_router,
        ),
        Planted("AX181", 'node "c"', 'it reads "tone" of the state', graph=unpulled_on_one_way),
        Planted("AX179", "edge s->c", "s -> c can never be taken", graph=a_name_of_no_router),
        Planted(
            "AX180",
            'node "c"',
            "s -> a and s -> b exclude each other",
            graph=a_join_behind_a_router,
        ),
        Planted("AX182", "edge a->b", "carries log, which b does not read", graph=unread_key),
        Planted("AX182", 'node "a"', "it gives log, which no edge carries", graph=unread_output),
        Planted("AX182", 'graph "unread"', "reads its attribute tone", graph=unread_attribute),
        Planted(
            "AX182",
            "edge @entry->a",
            "carries tone, which a does not read",
            graph=unread_in_a_prompt,
        ),
        Planted("AX187", 'node "a"', "ask for state.done only", graph=no_progress),
        Planted("AX187", 'node "a"', "ask for state.done only", graph=no_progress_beside_a_write),
        Planted("AX184", "edge a->b", "state.count is a whole number", graph=another_type_of_state),
        Planted(
            "AX184",
            'node "a"',
            "a whole number, and the field of the state is a list",
            graph=an_object_for_a_list,
        ),
        Planted(
            "AX184",
            'node "b"',
            'it runs over "score", which is a whole number',
            graph=items_of_no_list,
        ),
        Planted(
            "AX190",
            'node "a"',
            "it writes draught, which Desk does not declare",
            graph=an_undeclared_write,
        ),
        Planted("AX190", 'node "a"', "it reads knd, which Desk", graph=an_undeclared_read),
        Planted(
            "AX190",
            'node "a"',
            "reads or assigns cuont, which Notes",
            graph=an_undeclared_read_in_a_branch,
        ),
        Planted(
            "AX190",
            'node "a"',
            "reads or assigns itmes, which Notes",
            graph=an_undeclared_assignment,
        ),
        Planted("AX190", 'node "a"', "it pushes draught, which Desk", graph=an_undeclared_push),
        Planted("AX183", "edge a->b", "it gives no fields", graph=keys_of_a_typed_edge),
        Planted("AX189", 'graph "few"', "limits.firings is 1", graph=too_few_firings),
        Planted("AX179", "edge s->b", "s sends to a only", graph=an_unbound_edge),
        Planted(
            "AX179",
            "edge a->b",
            "state.kind is one of 'bug', 'question'",
            graph=a_kind_that_nothing_writes,
        ),
        Planted(
            "AX179", "edge p->b", "state.kind is one of 'bug', 'question'", graph=a_kind_far_behind
        ),
        Planted(
            "AX180", 'node "d"', "a -> b and p -> c exclude each other", graph=a_join_of_two_kinds
        ),
        Planted(
            "AX181",
            'node "d"',
            "on the way @entry -> a -> c -> d nothing",
            graph=unwritten_behind_a_condition,
        ),
        Planted(
            "AX181",
            'node "d"',
            "on the way @entry -> a -> c -> f -> d nothing",
            graph=unwritten_on_a_longer_way,
        ),
        Planted(
            "AX179",
            "edge a->b",
            "message.label is one of 'long', 'short'",
            graph=a_label_that_nothing_gives,
        ),
        Planted(
            "AX179",
            "edge p->b",
            "contradicts that of a -> p",
            graph=a_label_behind_a_passthrough,
        ),
        Planted("AX179", "edge t->c", "contradicts that of s -> t", graph=two_switches_of_a_number),
        Planted(
            "AX183",
            "edge inner->@exit",
            "carries summary, which inner never gives: it gives text",
            graph=never_given_by_an_inner_graph,
        ),
        Planted("AX185", 'node "inner"', 'it reads "text"', graph=needed_by_an_inner_graph),
        Planted(
            "AX182",
            "edge @entry->inner",
            "carries tone, which inner does not read",
            graph=unread_by_an_inner_graph,
        ),
        Planted(
            "AX183",
            "edge p->b",
            "carries txt, which p never gives: it gives text",
            graph=carried_behind_a_passthrough,
        ),
        Planted("AX187", 'node "a"', "ask for state.done only", graph=no_progress_of_attributes),
        Planted(
            "AX179",
            "edge p->b",
            "contradicts that of a -> p",
            graph=behind_a_condition_in_a_loop,
        ),
    )
    if each.graph is not None
}
PLANTED: Mapping[str, Planted] = {**FILES, **GRAPHS}
