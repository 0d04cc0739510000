"""Edits of workflow files by what they do: to values at places, and to the nodes of a graph.

A file is as it is written, and may be one that cannot be loaded: a graph is data here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import yaml

from axil_files.text_edits import (
    Keys,
    YamlText,
    append_value,
    data_at,
    data_of,
    extent,
    first_good,
    in_text,
    not_an_edit,
    on_one_line,
    remove_value,
    set_value,
)
from axil_files.yaml_loader import parse_yaml


def edit_text(text: str, edit: Mapping[str, Any]) -> str:
    """Return the text of a workflow file after an edit; all that it does not name stays as it is
    written.

    ``do`` is ``set`` (``path``, ``value``), ``remove`` (``path``), ``append`` (``path``,
    ``value``), ``rename`` (``graph``, ``node``, ``name``), ``drop`` (``graph``, ``node``),
    ``group`` (``graph``, ``nodes``, ``name``), or ``ungroup`` (``graph``, ``node``).

    Raises: EditError (AX191): the edit is not one, or has to be made in the text; SpecError:
    aliases of the text cannot be followed.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    act = _ACTS.get(str(edit.get("do")))
    if act is None:
        raise not_an_edit(f"there is no edit {edit.get('do')!r:.50}")
    try:
        return mark + act(text.removeprefix(mark), edit)
    except (KeyError, IndexError, TypeError) as error:
        raise not_an_edit("it names a place that the file does not have") from error
    except yaml.YAMLError as error:
        raise in_text("the text is not valid YAML or JSON") from error
    except RecursionError as error:
        raise in_text("the file is nested too deeply") from error


def graph_items(graph: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the nodes or edges of a graph as a file has it; what is none is empty."""
    found = graph.get(key)
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("dict[str, Any]", each) if isinstance(each, dict) else {} for each in listed]


def written_names(value: object) -> list[str]:
    """Return names that are written as a list, or as one."""
    if isinstance(value, list):
        return [str(each) for each in cast("list[object]", value)]
    return [value] if isinstance(value, str) and value else []


def _path_of(edit: Mapping[str, Any], name: str = "path") -> list[str | int]:
    found = edit.get(name)
    if not isinstance(found, list) or not all(
        isinstance(each, (str, int)) and not isinstance(each, bool)
        for each in cast("list[Any]", found)
    ):
        raise not_an_edit(f"{name} is not a list of keys")
    return list(cast("list[str | int]", found))


def _set(text: str, edit: Mapping[str, Any]) -> str:
    return set_value(text, _path_of(edit), edit["value"])


def _append(text: str, edit: Mapping[str, Any]) -> str:
    return append_value(text, _path_of(edit), edit["value"])


def _remove(text: str, edit: Mapping[str, Any]) -> str:
    return remove_value(text, _path_of(edit))


def _graph_of(text: str, edit: Mapping[str, Any]) -> tuple[list[str | int], dict[str, Any]]:
    path = _path_of(edit, "graph")
    found = data_at(data_of(text), path)
    if not isinstance(found, dict):
        raise TypeError(path)
    return path, cast("dict[str, Any]", found)


def _rename(text: str, edit: Mapping[str, Any]) -> str:
    path, graph = _graph_of(text, edit)
    old, new = str(edit["node"]), str(edit["name"])
    names = [each.get("id") for each in graph_items(graph, "nodes")]
    if not new or new in names:
        raise not_an_edit(f'the name "{new:.50}" is taken or empty')
    for place in _mentions(graph, old):
        text = set_value(text, [*path, *place], new)
    for place in _named_keys(graph, old):
        text = _renamed_key(text, [*path, *place], new)
    return text


def _mentions(graph: Mapping[str, Any], name: str) -> Iterator[list[str | int]]:
    """Yield the places whose value is the name of a node."""
    for at, node in enumerate(graph_items(graph, "nodes")):
        if node.get("id") == name:
            yield ["nodes", at, "id"]
    for at, edge in enumerate(graph_items(graph, "edges")):
        yield from (["edges", at, end] for end in ("from", "to") if edge.get(end) == name)
    for key in ("start", "end", "loop"):
        found = graph.get(key)
        if found == name:
            yield [key]
        elif isinstance(found, list):
            items = cast("list[Any]", found)
            yield from ([key, at] for at, each in enumerate(items) if each == name)


def _named_keys(graph: Mapping[str, Any], name: str) -> Iterator[list[str | int]]:
    """Yield the places whose key is the name of a node: limits of cycles, routes of a switch."""
    if name in (graph.get("cycle_limits") or {}):
        yield ["cycle_limits", name]
    sources = {edge.get("from") for edge in graph_items(graph, "edges") if edge.get("to") == name}
    for at, node in enumerate(graph_items(graph, "nodes")):
        config = node.get("config")
        routes: Any = (
            cast("dict[str, Any]", config).get("routes") if isinstance(config, dict) else None
        )
        if node.get("id") in sources and isinstance(routes, dict) and name in routes:
            yield ["nodes", at, "config", "routes", name]


def _renamed_key(text: str, path: Keys, new: str) -> str:
    tree, expected = YamlText(text), data_of(text)
    pair = tree.pair(tree.at(path[:-1]), path[-1])
    if pair is None:
        raise KeyError(path[-1])
    above = data_at(expected, path[:-1])
    whole = {new if key == path[-1] else key: each for key, each in above.items()}
    above.clear()
    above.update(whole)
    key = pair[0]
    quoted = json.dumps(new) if tree.is_json else on_one_line(new, as_json=False)
    made = text[: key.start_mark.index] + quoted + text[key.end_mark.index :]
    return first_good(iter([made]), expected)


def _drop(text: str, edit: Mapping[str, Any]) -> str:
    path, graph = _graph_of(text, edit)
    name = str(edit["node"])
    edges = graph_items(graph, "edges")
    for at in reversed(range(len(edges))):
        if name in (edges[at].get("from"), edges[at].get("to")):
            text = remove_value(text, [*path, "edges", at])
    for place in reversed([each for each in _mentions(graph, name) if each[0] in ("start", "end")]):
        text = remove_value(text, [*path, *place])
    if name in (graph.get("cycle_limits") or {}):
        text = remove_value(text, [*path, "cycle_limits", name])
    for at, node in enumerate(graph_items(graph, "nodes")):
        if node.get("id") == name:
            return remove_value(text, [*path, "nodes", at])
    raise KeyError(name)


def _group(text: str, edit: Mapping[str, Any]) -> str:
    """Return the text with nodes moved, as they are written, into a subgraph of their own."""
    path, graph = _graph_of(text, edit)
    names, name = {str(each) for each in edit["nodes"]}, str(edit["name"])
    nodes, edges = graph_items(graph, "nodes"), graph_items(graph, "edges")
    inner = [at for at, node in enumerate(nodes) if node.get("id") in names]
    known = {node.get("id") for node in nodes}
    if len(inner) != len(names) or not name or name in known - names:
        raise not_an_edit("its nodes are not in the graph, or the name is taken")
    starts, ends = (written_names(graph.get(key)) for key in ("start", "end"))
    own = [at for at, e in enumerate(edges) if e.get("from") in names and e.get("to") in names]
    entering = {e["to"] for e in edges if e["to"] in names and e["from"] not in names}
    leaving = {e["from"] for e in edges if e["from"] in names and e["to"] not in names}
    entering |= names & set(starts)
    leaving |= names & set(ends)
    if len(entering) != 1 or len(leaving) != 1:
        raise in_text("a group is entered at one node and left at one node")
    tree = YamlText(text)
    if tree.is_flow([*path, "nodes"]) or (edges and tree.is_flow([*path, "edges"])):
        raise in_text("nodes or edges are written in brackets")
    made = _grouped(tree, path, (inner, own), (name, *entering, *leaving), graph)
    change: dict[str, Any] = {"from": leaving, "to": entering}
    for at, each in enumerate([each for at, each in enumerate(edges) if at not in own]):
        for end, of in change.items():
            if each[end] in of:
                made = set_value(made, [*path, "edges", at, end], name)
    for key, listed, of in (("start", starts, entering), ("end", ends, leaving)):
        if of & set(listed):
            value = [name if each in of else each for each in listed]
            given: Any = graph.get(key)
            made = set_value(made, [*path, key], value if isinstance(given, list) else value[0])
    return made


def _grouped(
    tree: YamlText,
    path: list[str | int],
    places: tuple[list[int], list[int]],
    words: tuple[str, str, str],
    graph: Mapping[str, Any],
) -> str:
    """Return the text with nodes and edges cut out, and put into a new node."""
    inner, own = places
    name, entry, leave = words
    text = tree.text
    column = tree.at([*path, "nodes"]).start_mark.column

    def cut(key: str, at: int) -> str:
        start, end = extent(tree, [*path, key, at])
        first = tree.at([*path, key, at]).start_mark.column - 2
        lines = text[start:end].strip("\n").split("\n")
        shift = column + 8 - first
        return "\n".join(" " * shift + line if line.strip() else "" for line in lines)

    margin = " " * column
    lines = [f"{margin}- id: {on_one_line(name, as_json=False)}", f"{margin}  type: subgraph"]
    lines += [f"{margin}  config:", f"{margin}    type: config", f"{margin}    config:"]
    if "payload" in graph:
        lines.append(f"{margin}      payload: {on_one_line(graph['payload'], as_json=False)}")
    for key, value in (("start", entry), ("end", leave)):
        lines.append(f"{margin}      {key}: [{on_one_line(value, as_json=False)}]")
    lines += [f"{margin}      nodes:", *(cut("nodes", at) for at in inner)]
    if own:
        lines += [f"{margin}      edges:", *(cut("edges", at) for at in own)]
    block = "\n".join(lines) + "\n"
    pieces: list[tuple[int, int, str]] = []
    for number, at in enumerate(inner):
        pieces.append((*extent(tree, [*path, "nodes", at]), "" if number else block))
    pieces += [(*extent(tree, [*path, "edges", at]), "") for at in own]
    made = text
    for start, end, new in sorted(pieces, reverse=True):
        made = made[:start] + new + made[end:]
    expected = data_of(text)
    outer = data_at(expected, path)
    config: dict[str, Any] = {"start": [entry], "end": [leave]}
    config |= {"nodes": [outer["nodes"][at] for at in inner]}
    config |= {"edges": [outer["edges"][at] for at in own]} if own else {}
    config |= {"payload": graph["payload"]} if "payload" in graph else {}
    node = {"id": name, "type": "subgraph", "config": {"type": "config", "config": config}}
    kept = [node if at == inner[0] else each for at, each in enumerate(outer["nodes"])]
    outer["nodes"] = [each for at, each in enumerate(kept) if at not in inner[1:]]
    if own:
        outer["edges"] = [each for at, each in enumerate(outer["edges"]) if at not in own]
    return first_good(iter([made]), expected)


def _ungroup(text: str, edit: Mapping[str, Any]) -> str:
    """Return the text with what is in a subgraph, as it is written, in the place of its node."""
    path, graph = _graph_of(text, edit)
    name, nodes = str(edit["node"]), graph_items(graph, "nodes")
    at = next((at for at, node in enumerate(nodes) if node.get("id") == name), -1)
    if at < 0:
        raise KeyError(name)
    keys = ["config", "config"]
    inner: Any = data_at(nodes[at], keys) if nodes[at].get("type") == "subgraph" else None
    if not isinstance(inner, dict):
        raise in_text("the node is no subgraph that is written in it")
    group = cast("dict[str, Any]", inner)
    more = {*nodes[at]} - {"id", "type", "config", "description"}
    more |= {*nodes[at]["config"]} - {"type", "config"}
    more |= {*group} - {"start", "end", "nodes", "edges", "payload", "id", "description"}
    if more or group.get("payload") != graph.get("payload"):
        raise in_text(f"the group has settings of its own: {', '.join(sorted(more)) or 'payload'}")
    starts, ends = written_names(group.get("start")), written_names(group.get("end"))
    if len(starts) != 1 or len(ends) != 1:
        raise in_text("a group is entered at one node and left at one node")
    taken = {node.get("id") for node in nodes} - {name}
    if name in (graph.get("cycle_limits") or {}) or taken & {
        node.get("id") for node in graph_items(group, "nodes")
    }:
        raise in_text("a limit names the group, or a name in it is taken")
    place = [*path, "nodes", at]
    made = _opened_group(YamlText(text), path, [*place, *keys], at, group)
    for number, edge in enumerate(graph_items(graph, "edges")):
        for end, own in (("from", ends[0]), ("to", starts[0])):
            if edge.get(end) == name:
                made = set_value(made, [*path, "edges", number, end], own)
    for key, own in (("start", starts[0]), ("end", ends[0])):
        given: Any = graph.get(key)
        value = [own if each == name else each for each in written_names(given)]
        if value != written_names(given):
            made = set_value(made, [*path, key], value if isinstance(given, list) else value[0])
    return made


def _opened_group(
    tree: YamlText, path: Keys, inside: Keys, at: int, group: Mapping[str, Any]
) -> str:
    """Return the text with the nodes and edges of a group in the lists around it."""
    text, expected = tree.text, data_of(tree.text)
    outer = data_at(expected, path)
    nodes, edges = graph_items(group, "nodes"), graph_items(group, "edges")
    around = tree.at([*path, "edges"])
    has_edges = isinstance(around, yaml.SequenceNode) and bool(around.value)
    lists: list[Keys] = [[*path, "nodes"], [*inside, "nodes"]]
    lists += [[*path, "edges"]] if has_edges else []
    lists += [[*inside, "edges"]] if edges else []
    if any(tree.is_flow(each) for each in lists):
        raise in_text("nodes or edges are written in brackets")

    def moved(key: str, column: int) -> str:
        node = tree.at([*inside, key])
        pairs = cast("list[tuple[Any, Any]]", tree.at(inside).value)
        [head] = [pair[0] for pair in pairs if pair[0].value == key]
        start = tree.line_end(head.end_mark.index) + 1
        lines = text[start : tree.line_end(tree.end(node))].split("\n")
        shift = " " * (column - node.start_mark.column)
        less = max(0, node.start_mark.column - column)
        return "".join(
            f"{shift}{line[min(less, _margin(line)) :]}".rstrip(" ") + "\n" for line in lines
        )

    pieces = [
        (*extent(tree, [*path, "nodes", at]), moved("nodes", tree.at(lists[0]).start_mark.column))
    ]
    if edges and has_edges:
        end = tree.line_end(tree.end(around)) + 1
        before = "" if text[end - 1 : end] == "\n" else "\n"
        pieces.append((end, end, before + moved("edges", around.start_mark.column)))
    made = text
    for start, end, new in sorted(pieces, reverse=True):
        made = made[:start] + new + made[end:]
    outer["nodes"] = [*outer["nodes"][:at], *nodes, *outer["nodes"][at + 1 :]]
    if edges and has_edges:
        outer["edges"] = [*outer["edges"], *edges]
    made = first_good(iter([made]), expected)
    typed = data_at(parse_yaml(text, "").data, inside)
    for edge in typed["edges"] if edges and not has_edges else ():
        made = append_value(made, [*path, "edges"], edge)
    return made


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


_ACTS: Final = {
    "set": _set,
    "append": _append,
    "remove": _remove,
    "rename": _rename,
    "drop": _drop,
    "group": _group,
    "ungroup": _ungroup,
}
