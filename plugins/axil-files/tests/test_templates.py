"""Laws of templates: nodes are written out, and each part keeps the line where it was written."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from axil import SpecError
from axil.plugin import default_registry
from axil_files.documents import parse_json
from axil_files.loading import include_spec, load_spec, spec_from_document
from axil_files.templates import match_path

pytestmark = pytest.mark.usefixtures("every_component")

TEMPLATES: dict[str, Any] = {
    "critic": {"type": "agent", "config": {"role": "critic", "tools": ["a"]}, "lane": "small"},
    "strict": {"use": "critic", "config": {"role": "strict"}},
    "review": {
        "type": "subgraph",
        "config": {
            "type": "config",
            "config": {
                "nodes": [{"id": "look", "use": "strict"}, {"id": "say", "type": "literal"}],
                "start": "look",
            },
        },
    },
}


def read(*nodes: Any, templates: Any = TEMPLATES, **more: Any) -> Any:
    graph = {"nodes": list(nodes), "start": nodes[0]["id"], "end": nodes[0]["id"]}
    text = json.dumps({"templates": templates, **more, "graph": graph}, indent=1)
    return spec_from_document(parse_json(text, "flow.json"))


def config(spec: Any, *path: str) -> Any:
    """Return the settings of a node, by the names of the nodes around it and its own."""
    found = next(dict(node.use.config) for node in spec.nodes if node.id == path[0])
    for name in path[1:]:
        found = next(n.get("config", {}) for n in found["config"]["nodes"] if n["id"] == name)
    return found


def refused(*nodes: Any, **more: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read(*nodes, **more)
    return [str(problem) for problem in caught.value.problems]


def test_a_node_has_what_its_template_has_and_its_own():
    spec = read({"id": "a", "use": "strict", "config": {"tools": []}, "wrappers": ["retry"]})
    (node,) = spec.nodes
    assert (node.use.type, node.lane, node.wrappers[0].type) == ("agent", "small", "retry")
    assert config(spec, "a") == {"role": "strict", "tools": []}


def test_rules_are_weaker_or_stronger_than_what_nodes_say():
    spec = read(
        {"id": "a", "use": "critic"},
        {"id": "b", "use": "critic", "config": {"mood": "own"}},
        {"id": "plain", "type": "agent"},
        defaults=[{"type": "agent", "config": {"mood": "chosen"}}, {"config": {"mood": "any"}}],
        overrides=[{"path": "b", "config": {"role": "b"}}, {"config": {"role": "all"}}],
    )
    assert config(spec, "a") == {"mood": "chosen", "role": "all", "tools": ["a"]}
    assert config(spec, "b") == {"mood": "own", "role": "b", "tools": ["a"]}
    assert config(spec, "plain") == {}


def test_nodes_inside_are_chosen_by_path_and_the_nearest_rule_wins():
    spec = read(
        {"id": "one", "use": "review"},
        {"id": "two", "use": "review", "overrides": [{"path": "look", "config": {"role": "two"}}]},
        overrides=[
            {"template": "critic", "config": {"tools": []}},
            {"path": "*>look", "config": {"role": "every"}},
            {"path": "two>say", "config": {"content": "two"}},
        ],
    )
    assert config(spec, "one", "look") == {"role": "every", "tools": []}
    assert config(spec, "two", "look") == {"role": "two", "tools": []}
    assert (config(spec, "one", "say"), config(spec, "two", "say")) == ({}, {"content": "two"})


def test_a_member_in_settings_uses_a_template():
    members = {"a": {"use": "critic"}, "b": {"type": "agent"}, "c": {"use": "x", "other": 1}}
    spec = read({"id": "t", "type": "debate", "config": {"members": members}})
    assert config(spec, "t")["members"] == {
        "a": {"type": "agent", "config": {"role": "critic", "tools": ["a"]}, "lane": "small"},
        "b": members["b"],
        "c": members["c"],  # the component's own key
    }


@pytest.mark.parametrize(
    ("templates", "node", "found"),
    [
        (TEMPLATES, {"use": "critik"}, 'no template "critik". Did you mean "critic"?'),
        ({}, {"use": "critic"}, 'no template "critic". Write templates at the top of this file;'),
        (TEMPLATES, {"use": "critic", "type": "agent"}, "type and use are both given"),
        (
            {"a": {"use": "b"}, "b": {"use": "a"}},
            {"use": "a"},
            "the template a uses itself: a → b → a.",
        ),
        (
            {"a": {"type": "subgraph", "config": {"config": {"nodes": [{"id": "b", "use": "a"}]}}}},
            {"use": "a"},
            "the template a uses itself: a → a.",
        ),
    ],
)
def test_a_template_that_cannot_be_used_is_reported_once(templates, node, found):
    (problem,) = refused({"id": "n", **node}, templates=templates)
    assert problem.startswith("AX171 flow.json:")
    assert found in problem


def test_what_is_wrong_has_the_line_where_it_is_written():
    templates = {"a": {"type": "literal", "config": {"n": 1}, "effects": "loud"}}
    problems = refused({"id": "n", "use": "a"}, {"id": "m", "use": "a"}, templates=templates)
    lines = json.dumps({"templates": templates}, indent=1).splitlines()
    wrong = 1 + next(at for at, line in enumerate(lines) if "loud" in line)
    where = ["templates.a.effects", "nodes[0].effects", "nodes[1].effects"]
    assert [problem.split(": ")[0] for problem in problems] == [
        f"AX103 flow.json:{wrong} {path}" for path in where
    ]


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"path": "b", "config": {}}, "overrides[0]: this fits no node"),
        ({"type": "literal"}, "overrides[0]: this fits no node"),
        ({"path": "a>>b"}, 'overrides[0].path: the path "a>>b" has an empty part'),
    ],
)
def test_a_rule_that_fits_nothing_is_found(rule, found):
    (problem,) = refused({"id": "a", "use": "critic"}, overrides=[rule])
    assert found in problem


def test_templates_inside_each_other_are_bounded(monkeypatch):
    monkeypatch.setattr("axil_files.templates.MAX_VALUES", 50_000)
    doubled: dict[str, Any] = {"t0": {"type": "literal"}}
    for n in range(1, 20):
        nodes = [{"id": "a", "use": f"t{n - 1}"}, {"id": "b", "use": f"t{n - 1}"}]
        doubled[f"t{n}"] = {"type": "subgraph", "config": {"g": {"nodes": nodes}}}
    (problem,) = refused({"id": "n", "use": "t19"}, templates=doubled)
    assert problem.startswith(("AX110", "AX144"))
    (problem,) = refused({"id": "n", "use": "t13"}, templates=doubled)
    assert problem.startswith("AX144 flow.json")


def test_an_included_file_has_its_own_templates_and_not_those_of_the_file_around(tmp_path):
    def write(name: str, template: str, node: dict[str, Any]) -> None:
        said = {"type": "literal", "config": {"content": "Hello."}}
        graph = {"nodes": [node], "start": node["id"]}
        text = json.dumps({"templates": {template: said}, "graph": graph}, indent=1)
        (tmp_path / name).write_text(text, "utf-8")

    default_registry().register("loaders", "json", parse_json)
    write("flow.json", "outer", {"id": "a", "use": "outer"})
    around = load_spec(tmp_path / "flow.json").extras
    write("inner.json", "own", {"id": "x", "use": "own"})
    assert config(include_spec("inner.json", around), "x") == {"content": "Hello."}
    around["texts"].clear()
    write("inner.json", "own", {"id": "x", "use": "outer"})
    with pytest.raises(SpecError, match=r'inner.json:\d+ .*no template "outer". Available: own.'):
        include_spec("inner.json", around)


def test_a_path_of_many_stars_is_compared_in_one_pass():
    deep = [f"n{number}" for number in range(30)]
    assert not match_path(">".join(["**"] * 300 + ["other"]), deep)
    assert not match_path(">".join(["n", "**"] * 15 + ["other"]), ["n"] * 30)
    assert match_path(">".join(["**"] * 300 + ["n29", "**"]), deep)


@pytest.mark.parametrize("seed", range(20))
def test_a_path_fits_as_its_parts_say(seed):
    draw = random.Random(seed)

    def fits(parts: list[str], names: list[str]) -> bool:
        if not parts:
            return True  # what is behind it may be anything
        if parts[0] == "**":
            return any(fits(parts[1:], names[at:]) for at in range(len(names) + 1))
        return bool(names) and parts[0] in ("*", names[0]) and fits(parts[1:], names[1:])

    for _ in range(200):
        parts = draw.choices(["a", "b", "*", "**"], k=draw.randint(1, 5))
        names = draw.choices(["a", "b"], k=draw.randint(0, 6))
        assert match_path(">".join(parts), names) is fits(["**", *parts], names), (parts, names)
