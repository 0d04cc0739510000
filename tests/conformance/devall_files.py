"""Workflow files in DevAll's vocabulary.

``devall_files.json`` holds what the real executor gave to each firing of each node.
"""

from __future__ import annotations

from typing import Any

ALL = {"type": "passthrough", "config": {"only_last_message": False}}
LAST = {"type": "passthrough", "config": {"only_last_message": True}}


def said(text: str) -> dict[str, Any]:
    return {"type": "literal", "config": {"content": text, "role": "user"}}


def counts(most: int, **more: Any) -> dict[str, Any]:
    return {"type": "loop_counter", "config": {"max_iterations": most, "message": "END", **more}}


def has(*words: str, **more: Any) -> dict[str, Any]:
    return {"condition": {"type": "keyword", "config": {"any": list(words), **more}}}


def lacks(*words: str) -> dict[str, Any]:
    return {"condition": {"type": "keyword", "config": {"none": list(words)}}}


def extracts(pattern: str, **more: Any) -> dict[str, Any]:
    return {"process": {"type": "regex_extract", "config": {"pattern": pattern, **more}}}


def parts(kind: str, split: str, **more: Any) -> dict[str, Any]:
    config = {"type": "regex", "config": {"pattern": split}}
    return {"dynamic": {"type": kind, "split": config, "config": more}}


DATA = {"trigger": False}
BARE = {"carry_data": False}
KEPT = {"keep_message": True}


def file(start: Any, *edges: Any, **nodes: Any) -> dict[str, Any]:
    """Give a file; its end is ``Z``."""
    made: list[dict[str, Any]] = []
    for each in edges:
        text, more = each if isinstance(each, tuple) else (each, {})
        source, target = text.split(">")
        made.append({"from": source, "to": target, **more})
    given = {"Z": ALL, **nodes}
    graph = {
        "id": "files",
        "start": [start] if isinstance(start, str) else start,
        "end": ["Z"],
        "nodes": [{"id": name, **node} for name, node in given.items()],
        "edges": made,
    }
    return {"version": "0.4.0", "vars": {}, "graph": graph}


A, B, C, D = (said(letter) for letter in "abcd")
FILES = {
    "a chain": file("A", "A>B", "B>Z", A=A, B=B),
    "a diamond": file("A", "A>B", "A>C", "B>Z", "C>Z", A=A, B=B, C=C),
    "two starts": file(["A", "B"], "A>Z", "B>Z", A=A, B=ALL),
    "only the last message": file("A", "A>B", "A>C", "B>D", "C>D", "D>Z", A=A, B=B, C=C, D=LAST),
    "a keyword that is there": file(
        "A", ("A>B", has("yes")), ("A>C", lacks("yes")), "B>Z", "C>Z", A=said("yes"), B=B, C=C
    ),
    "a keyword in another case": file(
        "A", ("A>B", has("YES", case_sensitive=False)), "B>Z", A=said("yes"), B=B
    ),
    "a keyword by a pattern": file(
        "A",
        ("A>B", {"condition": {"type": "keyword", "config": {"regex": ["v\\d+"]}}}),
        ("A>C", lacks("none")),
        "B>Z",
        "C>Z",
        A=said("v12"),
        B=B,
        C=C,
    ),
    "a part of a text": file(
        "A", ("A>B", extracts("<(\\w+)>", group=1)), "B>Z", A=said("<x>"), B=ALL
    ),
    "all parts of a text": file(
        "A", ("A>B", extracts("\\d", multiple=True)), "B>Z", A=said("1 2 3"), B=ALL
    ),
    "a part that is not there": file(
        "A",
        ("A>B", extracts("\\d", on_no_match="drop")),
        ("A>C", extracts("\\d", on_no_match="default", default_value="none")),
        "B>Z",
        "C>Z",
        A=said("x"),
        B=B,
        C=ALL,
    ),
    "a trigger without data": file("A", ("A>B", BARE), "B>Z", A=A, B=ALL),
    "data without a trigger": file(
        "A", "A>B", ("A>D", DATA), "B>C", "C>D", "D>Z", A=A, B=B, C=C, D=ALL
    ),
    "a loop with a counter": file("A", "A>B", "B>C", "B>A", "C>Z", A=A, B=ALL, C=counts(3)),
    "a loop that keeps a message": file(
        "S", ("S>A", KEPT), "A>B", "B>A", "B>C", "C>Z", S=said("s"), A=ALL, B=B, C=counts(3)
    ),
    "a loop whose context is cleared": file(
        "S",
        ("S>A", KEPT),
        "A>B",
        ("B>A", {"clear_context": True}),
        "B>C",
        "C>Z",
        S=said("s"),
        A=ALL,
        B=B,
        C=counts(3),
    ),
    "a loop in a loop": file(
        "A",
        "A>B",
        "B>C",
        "B>D",
        "C>E",
        "D>B",
        "E>A",
        "E>F",
        "F>Z",
        A=A,
        B=B,
        C=counts(2),
        D=D,
        E=said("e"),
        F=counts(2),
    ),
    "a map over parts": file(
        "A", ("A>B", parts("map", "\\w\\d", max_parallel=2)), "B>Z", A=said("x1 x2 x3"), B=ALL
    ),
    "a map beside what is the same": file(
        "A",
        "A>S",
        ("A>B", parts("map", "\\w\\d")),
        "S>B",
        "B>Z",
        A=said("x1 x2"),
        S=said("s"),
        B=ALL,
    ),
    "a graph within": file(
        "A",
        "A>B",
        "B>Z",
        A=A,
        B={
            "type": "subgraph",
            "config": {
                "type": "config",
                "config": {
                    "id": "inner",
                    "start": ["I"],
                    "end": ["J"],
                    "nodes": [{"id": "I", **ALL}, {"id": "J", **said("j")}],
                    "edges": [{"from": "I", "to": "J"}],
                },
            },
        },
    ),
    "a context window": file(
        "A",
        "A>B",
        "B>A",
        "B>C",
        "C>Z",
        A={**ALL, "context_window": -1},
        B={**B, "context_window": 1},
        C=counts(3),
    ),
    "a counter that begins anew": file(
        "A", "A>B", "B>C", "B>A", "C>D", "D>Z", A=A, B=B, C=counts(2, reset_on_emit=True), D=ALL
    ),
    "an edge that nothing takes": file(
        "A", ("A>B", has("never")), ("A>Z", lacks("never")), "B>Z", A=A, B=B
    ),
    **{
        f"a loop that turns, {name}": file(
            "S",
            ("S>A", KEPT),
            "A>B",
            ("B>A", edge),
            "B>C",
            ("C>A", has("never")),
            "C>Z",
            S=said("s"),
            A={**ALL, "context_window": window},
            B=B,
            C=counts(3),
        )
        for name, window, edge in (
            ("plain", 0, {}),
            ("with all that was said", -1, {}),
            ("with the newest two", 2, {}),
            ("and clears the context", -1, {"clear_context": True}),
            ("and clears what is kept", -1, {"clear_kept_context": True}),
            ("and clears both", 2, {"clear_context": True, "clear_kept_context": True}),
        )
    },
    "a loop into itself that extracts": file(
        "A",
        "A>B",
        ("B>B", extracts("\\w")),
        "B>C",
        ("C>B", has("never")),
        "C>Z",
        A=said("xyz"),
        B={**ALL, "context_window": 3},
        C=counts(3),
    ),
    "a document with nothing at the path": file(
        "A",
        (
            "A>B",
            {
                "dynamic": {
                    "type": "map",
                    "split": {"type": "json_path", "config": {"json_path": "no"}},
                }
            },
        ),
        "B>Z",
        A=said('{"a": 1}'),
        B=ALL,
    ),
    "parts of a kept message": file(
        "A",
        ("A>B", {**parts("map", "\\w\\d"), **KEPT}),
        "B>D",
        "D>E",
        ("E>D", lacks("never")),
        "E>C",
        ("C>D", has("never")),
        "C>Z",
        A=said("x1 x2"),
        B=ALL,
        D=ALL,
        E=said("e"),
        C=counts(3),
    ),
}
