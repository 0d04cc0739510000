"""Edits of the text of a workflow file: an edit writes the places that it names, and no others.

YAML (and JSON, which is YAML) is parsed into nodes with positions, an edit replaces text between
positions, and the result is parsed again: it must hold the data that the edit asked for, and all
other data as it was. So comments, order, quotes and indentation of the rest stay. A parser that
writes the whole file again (round trip) was rejected: it changes lines outside the edit.

A place is a list of keys and positions: ``["graph", "nodes", 2, "config", "model"]``.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import yaml

from axil import ComponentRef
from axil_files import YamlWriter
from axil_journals import use_label
from axil_serve.errors import BadRequest

Keys = Sequence[str | int]
_yaml: Any = yaml  # its stubs leave most types open
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BASE_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_WIDTH: Final = 100
_LONG: Final = 80
_DEEPEST: Final = 8
_ALIASES: Final = "it has aliases (*), and an edit of one place would change others"
_INNER_GRAPHS: Final = (("config",), ("config", "config"), ("config", "body"), ("config", "graph"))


class _Text(str):
    """A text with the style that it is written in: one of ``"``, ``'``, ``|``, ``>``."""

    style: str | None = None


class _Dumper(YamlWriter):
    """Writes long texts folded, and those that replace others in their style."""

    def text_style(self, text: str) -> str | None:
        if (style := getattr(text, "style", None)) is not None:
            return style
        is_long = "\n" not in text and len(text) > _LONG and " " in text
        return ">" if is_long else super().text_style(text)


def edited(text: str, edit: Mapping[str, Any]) -> str:
    """Return the text after an edit.

    ``do`` is ``set`` (``path``, ``value``), ``remove`` (``path``), ``append`` (``path``,
    ``value``), ``rename`` (``graph``, ``node``, ``name``), ``drop`` (``graph``, ``node``),
    ``group`` (``graph``, ``nodes``, ``name``), or ``ungroup`` (``graph``, ``node``).

    Raises: BadRequest (AX966): the edit is not one, or has to be made in the text.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    act = _ACTS.get(str(edit.get("do")))
    if act is None:
        raise _not_an_edit(f"there is no edit {edit.get('do')!r:.50}")
    try:
        return mark + act(text.removeprefix(mark), edit)
    except (KeyError, IndexError, TypeError) as error:
        raise _not_an_edit("it names a place that the file does not have") from error
    except yaml.YAMLError as error:
        raise _in_text("the text is not valid YAML or JSON") from error
    except RecursionError as error:
        raise _in_text("the file is nested too deeply") from error


def why_fixed(text: str, suffix: str) -> str:
    """Return why a file can only be edited as text; empty: its drawing can be edited, too.

    >>> why_fixed("a: 1", ".yaml"), why_fixed("a = 1", ".toml")
    ('', 'it is written in TOML')
    """
    if suffix == ".toml":
        return "it is written in TOML"
    try:
        return _ALIASES if _has_aliases(text) else ""
    except (yaml.YAMLError, RecursionError):
        return ""


def _has_aliases(text: str) -> bool:
    events = _yaml.parse(text, Loader=_LOADER)
    return any(isinstance(event, yaml.AliasEvent) for event in events)


def _not_an_edit(reason: str) -> BadRequest:
    return BadRequest("AX966", f"the edit cannot be made: {reason}.", "Read the file again.")


def _in_text(reason: str) -> BadRequest:
    return BadRequest("AX966", f"the edit cannot be made here: {reason}.", "Edit the text instead.")


# ---------------------------------------------------------------------------------- positions


class _Tree:
    """The nodes of a text, with their positions."""

    def __init__(self, text: str) -> None:
        if _has_aliases(text):
            raise _in_text(_ALIASES)
        self.text = text
        self.root: Any = _yaml.compose(text, Loader=_LOADER)
        self.is_json = text.lstrip()[:1] == "{"

    def at(self, path: Keys) -> Any:
        """Return a node; None: the file does not have it."""
        node = self.root
        for key in path:
            node = self.child(node, key)
            if node is None:
                return None
        return node

    def child(self, node: Any, key: str | int) -> Any:
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            items = cast("list[Any]", node.value)
            return items[key] if 0 <= key < len(items) else None
        pair = self.pair(node, key)
        return pair[1] if pair else None

    def pair(self, node: Any, key: str | int) -> tuple[Any, Any] | None:
        if not isinstance(node, yaml.MappingNode):
            return None
        pairs = cast("list[tuple[Any, Any]]", node.value)
        return next((each for each in pairs if each[0].value == str(key)), None)

    def is_flow(self, path: Keys) -> bool:
        """Return whether a place, or one around it, is written in brackets."""
        node = self.root
        for key in (*path, None):
            if not isinstance(node, yaml.ScalarNode) and node is not None and node.flow_style:
                return True
            if key is not None:
                node = self.child(node, key)
        return self.is_json

    def end(self, node: Any) -> int:
        """Return where a node ends; its comments and the empty lines after it are not part."""
        if isinstance(node, yaml.ScalarNode):
            start, end = node.start_mark.index, node.end_mark.index
            return start + len(self.text[start:end].rstrip())
        if node.flow_style or not node.value:
            return node.end_mark.index
        last: Any = node.value[-1]
        return self.end(last[1] if isinstance(node, yaml.MappingNode) else last)

    def line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def line_end(self, at: int) -> int:
        found = self.text.find("\n", at)
        return len(self.text) if found < 0 else found

    def value_range(self, path: Keys) -> tuple[int, int]:
        """Return the text of a value, from behind the colon or the dash before it."""
        node = self.at(path)
        if isinstance(path[-1], int):
            return node.start_mark.index, self.end(node)
        pair = self.pair(self.at(path[:-1]), path[-1])
        if pair is None:
            raise KeyError(path[-1])
        colon = self.text.index(":", pair[0].end_mark.index) + 1
        end = max(colon, self.end(node))
        if "#" in self.text[colon : node.start_mark.index]:
            raise _in_text("a comment stands between a key and its value")
        return colon, end


# ------------------------------------------------------------------------------------ writing


def _dump(value: Any, *, flow: bool | None = None, width: int = _WIDTH, depth: int = 1) -> str:
    """Return a value as YAML; with ``flow=None`` only small collections are in brackets, and none
    of the outermost ``depth`` levels.
    """
    stream = io.StringIO()
    dumper: Any = _Dumper(
        stream, default_flow_style=flow, sort_keys=False, allow_unicode=True, width=width
    )
    dumper.open()
    node = dumper.represent_data(value)
    if flow is None:
        _opened(node, depth)
    dumper.serialize(node)
    dumper.close()
    dumper.dispose()
    return stream.getvalue()


def _opened(node: Any, depth: int) -> int:
    """Write a node, and what is large in it, on lines of their own; return its length."""
    if isinstance(node, yaml.ScalarNode):
        return len(cast("str", node.value)) + 2
    is_mapping = isinstance(node, yaml.MappingNode)
    parts: list[Any] = [part for pair in node.value for part in pair] if is_mapping else node.value
    length = sum(_opened(part, depth - 1) for part in parts)
    if node.value and (depth > 0 or length > _LONG):
        node.flow_style = False
    return length


def _flow(value: Any, *, as_json: bool) -> str:
    """Return a value on one line."""
    if as_json:
        return json.dumps(value, ensure_ascii=False)
    return _dump([_plain(value)], flow=True, width=10**9).strip()[1:-1]


def _plain(value: Any) -> Any:
    """Return a value whose texts have no style."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    return [_plain(v) for v in cast("list[Any]", value)] if isinstance(value, list) else value


def _indented(text: str, column: int) -> str:
    """Return lines of which all but the first are indented."""
    first, *rest = text.rstrip("\n").split("\n")
    return "\n".join([first, *(" " * column + line if line else "" for line in rest)])


def _pair(key: str, value: Any, column: int, width: int = _WIDTH) -> str:
    return _indented(_dump({key: value}, width=max(20, width - column)), column)


def _item(value: Any, column: int) -> str:
    """Return ``- value``."""
    return _indented(_dump([value], width=_WIDTH - column, depth=2), column)


# ------------------------------------------------------------------------------- primitive edits


def _base(value: Any) -> Any:
    """Return a value with its scalars as texts, as ``_data`` has them."""
    return yaml.load(_dump(_plain(value), flow=True), _BASE_LOADER)  # noqa: S506  # texts alone


def _data(text: str) -> Any:
    return yaml.load(text, _BASE_LOADER)  # noqa: S506  # it makes texts alone


def _same(text: str, expected: Any) -> bool:
    try:
        return _empty(_data(text)) == _empty(expected)
    except (yaml.YAMLError, ValueError):
        return False


def _empty(value: Any) -> Any:
    """Return data without the difference of an empty list, an empty object and nothing."""
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {key: _empty(each) for key, each in named.items()} or ""
    if isinstance(value, list):
        return [_empty(each) for each in cast("list[Any]", value)] or ""
    return value


def _first_good(candidates: Iterator[str], expected: Any) -> str:
    """Return the first text that holds the data. Raises: BadRequest: none does."""
    for text in candidates:
        if _same(text, expected):
            return text
    raise _in_text("the place is written in a way that this edit would break")


def _path_of(edit: Mapping[str, Any], name: str = "path") -> list[str | int]:
    found = edit.get(name)
    if not isinstance(found, list) or not all(
        isinstance(each, (str, int)) and not isinstance(each, bool)
        for each in cast("list[Any]", found)
    ):
        raise _not_an_edit(f"{name} is not a list of keys")
    return list(cast("list[str | int]", found))


def _set(text: str, edit: Mapping[str, Any]) -> str:
    return set_value(text, _path_of(edit), edit["value"])


def set_value(text: str, path: Keys, value: Any) -> str:
    """Return the text with a value at a place; what is missing around it is added."""
    if not path:
        raise _not_an_edit("its path is empty")
    tree, expected = _Tree(text), _data(text)
    if tree.at(path[:-1]) is None or (
        isinstance(path[-1], str) and not isinstance(tree.at(path[:-1]), yaml.MappingNode)
    ):
        return set_value(text, path[:-1], {str(path[-1]): value})
    _data_at(expected, path[:-1])[path[-1]] = _base(value)
    old = tree.at(path)
    texts = _replaced(tree, path, value) if old is not None else _added(tree, path, value)
    return _first_good(texts, expected)


def _styled(tree: _Tree, old: Any, value: Any) -> tuple[Any, int]:
    """Return a text with the style of the one that it replaces, and the width of its lines."""
    if not isinstance(value, str) or not isinstance(old, yaml.ScalarNode) or not old.style:
        return value, _WIDTH
    made = _Text(value)
    made.style = "|" if "\n" in value and old.style in "'\"" else old.style
    lines = tree.text[tree.line_start(old.start_mark.index) : tree.end(old)].split("\n")
    return made, max(map(len, lines)) + 1


def _replaced(tree: _Tree, path: Keys, value: Any) -> Iterator[str]:
    text, old = tree.text, tree.at(path)
    start, end = tree.value_range(path)
    space = "" if isinstance(path[-1], int) else " "
    if not tree.is_flow(path[:-1]):
        column = old.start_mark.column if isinstance(path[-1], int) else 0
        styled, width = _styled(tree, old, value)
        if isinstance(path[-1], int):
            yield text[:start] + _item(styled, column - 2)[2:] + text[end:]
        else:
            pair = tree.pair(tree.at(path[:-1]), path[-1])
            column = pair[0].start_mark.column if pair else 0
            key = _dump({str(path[-1]): None}).partition(": ")[0]
            whole = _pair(str(path[-1]), styled, column, width)
            yield text[:start] + whole[len(key) + 1 :] + text[end:]
    yield text[:start] + space + _flow(value, as_json=tree.is_json) + text[end:]


def _added(tree: _Tree, path: Keys, value: Any) -> Iterator[str]:
    text, parent, key = tree.text, tree.at(path[:-1]), str(path[-1])
    as_json = tree.is_json
    if tree.is_flow(path[:-1]):
        name = json.dumps(key) if as_json else _dump({key: None}).partition(": ")[0]
        made = f"{name}: {_flow(value, as_json=as_json)}"
        if not parent.value:
            yield f"{text[: parent.start_mark.index]}{{{made}}}{text[parent.end_mark.index :]}"
            return
        last = parent.value[-1]
        gap = _gap(tree, last[0], parent)
        at = tree.end(last[1])
        yield f"{text[:at]},{gap}{made}{text[at:]}"
        return
    column = parent.value[0][0].start_mark.column
    at = tree.line_end(tree.end(parent))
    yield f"{text[:at]}\n{' ' * column}{_pair(key, value, column)}{text[at:]}"


def _gap(tree: _Tree, last: Any, parent: Any) -> str:
    """Return what is before an item in brackets: a space, or a new line as before the last one."""
    before = tree.text[parent.start_mark.index : last.start_mark.index]
    line = before.rpartition("\n")[2]
    return f"\n{line}" if "\n" in before and not line.strip() else " "


def _append(text: str, edit: Mapping[str, Any]) -> str:
    return append_value(text, _path_of(edit), edit["value"])


def append_value(text: str, path: Keys, value: Any) -> str:
    """Return the text with an item at the end of a list, which is made if there is none."""
    tree, expected = _Tree(text), _data(text)
    node = tree.at(path)
    if not isinstance(node, yaml.SequenceNode) or (not node.value and not tree.is_flow(path[:-1])):
        if node is not None and _empty(_data_at(expected, path)) != "":
            raise _in_text("the place holds no list")
        return set_value(text, path, [value])
    _data_at(expected, path).append(_base(value))
    return _first_good(_appended(tree, node, path, value), expected)


def _data_at(data: Any, path: Keys) -> Any:
    for key in path:
        data = data[key]
    return data


def _appended(tree: _Tree, node: Any, path: Keys, value: Any) -> Iterator[str]:
    text, as_json = tree.text, tree.is_json
    if tree.is_flow(path):
        made = _flow(value, as_json=as_json)
        if not node.value:
            yield f"{text[: node.start_mark.index]}[{made}]{text[node.end_mark.index :]}"
            return
        last = node.value[-1]
        at = tree.end(last)
        yield f"{text[:at]},{_gap(tree, last, node)}{made}{text[at:]}"
        return
    column, last = node.start_mark.column, node.value[-1]
    end = tree.end(last)
    at = tree.line_end(end)
    is_flow = not isinstance(last, yaml.ScalarNode) and last.flow_style
    blank = ""
    if len(node.value) > 1:
        between = text[tree.end(node.value[-2]) : last.start_mark.index]
        blank = "\n" if re.search(r"\n[ \t]*\n", between) else ""
    made = f"- {_flow(value, as_json=False)}" if is_flow else _item(value, column)
    yield f"{text[:at]}\n{blank}{' ' * column}{made}{text[at:]}"


def _remove(text: str, edit: Mapping[str, Any]) -> str:
    return remove_value(text, _path_of(edit))


def remove_value(text: str, path: Keys) -> str:
    """Return the text without a key or an item; comments on lines of their own stay."""
    if not path:
        raise _not_an_edit("its path is empty")
    tree, expected = _Tree(text), _data(text)
    parent, node = tree.at(path[:-1]), tree.at(path)
    if node is None:
        raise KeyError(path[-1])
    del _data_at(expected, path[:-1])[path[-1]]
    if len(parent.value) == 1 and not tree.is_flow(path[:-1]):
        if not path[:-1]:
            raise _in_text("nothing would be left")
        return set_value(text, path[:-1], [] if isinstance(path[-1], int) else {})
    start, end = _extent(tree, path)
    return _first_good(iter([text[:start] + text[end:]]), expected)


def _extent(tree: _Tree, path: Keys) -> tuple[int, int]:
    """Return the text that is removed with a key or an item."""
    text, parent, node = tree.text, tree.at(path[:-1]), tree.at(path)
    pair = tree.pair(parent, path[-1]) if isinstance(path[-1], str) else None
    first = pair[0] if pair else node
    all_: list[Any] = [each[0] if pair else each for each in parent.value]
    number = next(at for at, each in enumerate(all_) if each is first)
    start, end = first.start_mark.index, tree.end(node)
    if pair:
        end = max(end, first.end_mark.index)  # a key without a value
    if tree.is_flow(path[:-1]):
        if number + 1 < len(all_):
            return start, all_[number + 1].start_mark.index
        if number:
            before = parent.value[number - 1]
            return tree.end(before[1] if pair else before), end
        return start, end
    line = tree.line_start(start)
    before = text[line:start].strip()
    if pair and before:  # the first key of an item, behind its dash
        following = all_[number + 1].start_mark.index
        if "#" in text[end:following]:
            raise _in_text("a comment follows")
        return start, following
    if not pair and before != "-":
        raise _in_text("the item shares its line")
    stop = min(len(text), tree.line_end(end) + 1)
    is_last = number + 1 == len(all_)
    if text[:line].endswith("\n\n") and (is_last or not text[stop : tree.line_end(stop)].strip()):
        line -= 1  # one empty line is enough, and none behind the last item
    return line, stop


# ------------------------------------------------------------------------------- edits of graphs


def _graph_of(text: str, edit: Mapping[str, Any]) -> tuple[list[str | int], dict[str, Any]]:
    path = _path_of(edit, "graph")
    found = _data_at(_data(text), path)
    if not isinstance(found, dict):
        raise TypeError(path)
    return path, cast("dict[str, Any]", found)


def _rename(text: str, edit: Mapping[str, Any]) -> str:
    path, graph = _graph_of(text, edit)
    old, new = str(edit["node"]), str(edit["name"])
    names = [each.get("id") for each in _items(graph, "nodes")]
    if not new or new in names:
        raise _not_an_edit(f'the name "{new:.50}" is taken or empty')
    for place in _mentions(graph, old):
        text = set_value(text, [*path, *place], new)
    for place in _named_keys(graph, old):
        text = _renamed_key(text, [*path, *place], new)
    return text


def _mentions(graph: Mapping[str, Any], name: str) -> Iterator[list[str | int]]:
    """Yield the places whose value is the name of a node."""
    for at, node in enumerate(_items(graph, "nodes")):
        if node.get("id") == name:
            yield ["nodes", at, "id"]
    for at, edge in enumerate(_items(graph, "edges")):
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
    sources = {edge.get("from") for edge in _items(graph, "edges") if edge.get("to") == name}
    for at, node in enumerate(_items(graph, "nodes")):
        config = node.get("config")
        routes: Any = (
            cast("dict[str, Any]", config).get("routes") if isinstance(config, dict) else None
        )
        if node.get("id") in sources and isinstance(routes, dict) and name in routes:
            yield ["nodes", at, "config", "routes", name]


def _renamed_key(text: str, path: Keys, new: str) -> str:
    tree, expected = _Tree(text), _data(text)
    pair = tree.pair(tree.at(path[:-1]), path[-1])
    if pair is None:
        raise KeyError(path[-1])
    above = _data_at(expected, path[:-1])
    whole = {new if key == path[-1] else key: each for key, each in above.items()}
    above.clear()
    above.update(whole)
    key = pair[0]
    quoted = json.dumps(new) if tree.is_json else _flow(new, as_json=False)
    made = text[: key.start_mark.index] + quoted + text[key.end_mark.index :]
    return _first_good(iter([made]), expected)


def _drop(text: str, edit: Mapping[str, Any]) -> str:
    path, graph = _graph_of(text, edit)
    name = str(edit["node"])
    edges = _items(graph, "edges")
    for at in reversed(range(len(edges))):
        if name in (edges[at].get("from"), edges[at].get("to")):
            text = remove_value(text, [*path, "edges", at])
    for place in reversed([each for each in _mentions(graph, name) if each[0] in ("start", "end")]):
        text = remove_value(text, [*path, *place])
    if name in (graph.get("cycle_limits") or {}):
        text = remove_value(text, [*path, "cycle_limits", name])
    for at, node in enumerate(_items(graph, "nodes")):
        if node.get("id") == name:
            return remove_value(text, [*path, "nodes", at])
    raise KeyError(name)


def _group(text: str, edit: Mapping[str, Any]) -> str:
    """Return the text with nodes moved, as they are written, into a subgraph of their own."""
    path, graph = _graph_of(text, edit)
    names, name = {str(each) for each in edit["nodes"]}, str(edit["name"])
    nodes, edges = _items(graph, "nodes"), _items(graph, "edges")
    inner = [at for at, node in enumerate(nodes) if node.get("id") in names]
    known = {node.get("id") for node in nodes}
    if len(inner) != len(names) or not name or name in known - names:
        raise _not_an_edit("its nodes are not in the graph, or the name is taken")
    starts, ends = (_listed(graph.get(key)) for key in ("start", "end"))
    own = [at for at, e in enumerate(edges) if e.get("from") in names and e.get("to") in names]
    entering = {e["to"] for e in edges if e["to"] in names and e["from"] not in names}
    leaving = {e["from"] for e in edges if e["from"] in names and e["to"] not in names}
    entering |= names & set(starts)
    leaving |= names & set(ends)
    if len(entering) != 1 or len(leaving) != 1:
        raise _in_text("a group is entered at one node and left at one node")
    tree = _Tree(text)
    if tree.is_flow([*path, "nodes"]) or (edges and tree.is_flow([*path, "edges"])):
        raise _in_text("nodes or edges are written in brackets")
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
    tree: _Tree,
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
        start, end = _extent(tree, [*path, key, at])
        first = tree.at([*path, key, at]).start_mark.column - 2
        lines = text[start:end].strip("\n").split("\n")
        shift = column + 8 - first
        return "\n".join(" " * shift + line if line.strip() else "" for line in lines)

    margin = " " * column
    lines = [f"{margin}- id: {_flow(name, as_json=False)}", f"{margin}  type: subgraph"]
    lines += [f"{margin}  config:", f"{margin}    type: config", f"{margin}    config:"]
    if "payload" in graph:
        lines.append(f"{margin}      payload: {_flow(graph['payload'], as_json=False)}")
    for key, value in (("start", entry), ("end", leave)):
        lines.append(f"{margin}      {key}: [{_flow(value, as_json=False)}]")
    lines += [f"{margin}      nodes:", *(cut("nodes", at) for at in inner)]
    if own:
        lines += [f"{margin}      edges:", *(cut("edges", at) for at in own)]
    block = "\n".join(lines) + "\n"
    pieces: list[tuple[int, int, str]] = []
    for number, at in enumerate(inner):
        pieces.append((*_extent(tree, [*path, "nodes", at]), "" if number else block))
    pieces += [(*_extent(tree, [*path, "edges", at]), "") for at in own]
    made = text
    for start, end, new in sorted(pieces, reverse=True):
        made = made[:start] + new + made[end:]
    expected = _data(text)
    outer = _data_at(expected, path)
    config: dict[str, Any] = {"start": [entry], "end": [leave]}
    config |= {"nodes": [outer["nodes"][at] for at in inner]}
    config |= {"edges": [outer["edges"][at] for at in own]} if own else {}
    config |= {"payload": graph["payload"]} if "payload" in graph else {}
    node = {"id": name, "type": "subgraph", "config": {"type": "config", "config": config}}
    kept = [node if at == inner[0] else each for at, each in enumerate(outer["nodes"])]
    outer["nodes"] = [each for at, each in enumerate(kept) if at not in inner[1:]]
    if own:
        outer["edges"] = [each for at, each in enumerate(outer["edges"]) if at not in own]
    return _first_good(iter([made]), expected)


def _ungroup(text: str, edit: Mapping[str, Any]) -> str:
    """Return the text with what is in a subgraph, as it is written, in the place of its node."""
    path, graph = _graph_of(text, edit)
    name, nodes = str(edit["node"]), _items(graph, "nodes")
    at = next((at for at, node in enumerate(nodes) if node.get("id") == name), -1)
    if at < 0:
        raise KeyError(name)
    keys = ["config", "config"]
    inner: Any = _data_at(nodes[at], keys) if nodes[at].get("type") == "subgraph" else None
    if not isinstance(inner, dict):
        raise _in_text("the node is no subgraph that is written in it")
    group = cast("dict[str, Any]", inner)
    more = {*nodes[at]} - {"id", "type", "config", "description"}
    more |= {*nodes[at]["config"]} - {"type", "config"}
    more |= {*group} - {"start", "end", "nodes", "edges", "payload", "id", "description"}
    if more or group.get("payload") != graph.get("payload"):
        raise _in_text(f"the group has settings of its own: {', '.join(sorted(more)) or 'payload'}")
    starts, ends = _listed(group.get("start")), _listed(group.get("end"))
    if len(starts) != 1 or len(ends) != 1:
        raise _in_text("a group is entered at one node and left at one node")
    taken = {node.get("id") for node in nodes} - {name}
    if name in (graph.get("cycle_limits") or {}) or taken & {
        node.get("id") for node in _items(group, "nodes")
    }:
        raise _in_text("a limit names the group, or a name in it is taken")
    place = [*path, "nodes", at]
    made = _opened_group(_Tree(text), path, [*place, *keys], at, group)
    for number, edge in enumerate(_items(graph, "edges")):
        for end, own in (("from", ends[0]), ("to", starts[0])):
            if edge.get(end) == name:
                made = set_value(made, [*path, "edges", number, end], own)
    for key, own in (("start", starts[0]), ("end", ends[0])):
        given: Any = graph.get(key)
        value = [own if each == name else each for each in _listed(given)]
        if value != _listed(given):
            made = set_value(made, [*path, key], value if isinstance(given, list) else value[0])
    return made


def _opened_group(tree: _Tree, path: Keys, inside: Keys, at: int, group: Mapping[str, Any]) -> str:
    """Return the text with the nodes and edges of a group in the lists around it."""
    text, expected = tree.text, _data(tree.text)
    outer = _data_at(expected, path)
    nodes, edges = _items(group, "nodes"), _items(group, "edges")
    around = tree.at([*path, "edges"])
    has_edges = isinstance(around, yaml.SequenceNode) and bool(around.value)
    lists: list[Keys] = [[*path, "nodes"], [*inside, "nodes"]]
    lists += [[*path, "edges"]] if has_edges else []
    lists += [[*inside, "edges"]] if edges else []
    if any(tree.is_flow(each) for each in lists):
        raise _in_text("nodes or edges are written in brackets")

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
        (*_extent(tree, [*path, "nodes", at]), moved("nodes", tree.at(lists[0]).start_mark.column))
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
    made = _first_good(iter([made]), expected)
    typed = _data_at(_yaml.load(text, Loader=_LOADER), inside)
    for edge in typed["edges"] if edges and not has_edges else ():
        made = append_value(made, [*path, "edges"], edge)
    return made


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _listed(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(each) for each in cast("list[Any]", value)]
    return [value] if isinstance(value, str) and value else []


_ACTS: Final = {
    "set": _set,
    "append": _append,
    "remove": _remove,
    "rename": _rename,
    "drop": _drop,
    "group": _group,
    "ungroup": _ungroup,
}


# ------------------------------------------------------------------------------------ drawing


def drawing(data: Any, lines: Mapping[Any, int]) -> dict[str, Any] | None:
    """Return the graph of a file as far as it can be read, in the form of a plan's scopes.

    Each node, edge and scope has its ``path`` in the file. None: there is no graph.
    """
    graph: Any = cast("dict[str, Any]", data).get("graph") if isinstance(data, dict) else None
    if not isinstance(graph, dict):
        return None
    return _scope_of(cast("dict[str, Any]", graph), ["graph"], lines, 0)


def _scope_of(
    graph: Mapping[str, Any], path: list[str | int], lines: Mapping[Any, int], depth: int
) -> dict[str, Any]:
    nodes: dict[str, dict[str, Any]] = {}
    for at, given in enumerate(_items(graph, "nodes")):
        name = str(given.get("id", ""))
        if not name or name in nodes:
            continue
        place = [*path, "nodes", at]
        made = {
            "name": name,
            "type": str(given.get("type") or given.get("use") or ""),
            "description": str(given.get("description") or ""),
            "given": given,
            "path": place,
            "line": lines.get(tuple(place), 0),
        }
        for keys in _INNER_GRAPHS:
            inner: Any = given
            for key in keys:
                inner = cast("dict[str, Any]", inner).get(key) if isinstance(inner, dict) else None
            inside = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
            if isinstance(inside.get("nodes"), list) and depth < _DEEPEST:
                made["inside"] = _scope_of(inside, [*place, *keys], lines, depth + 1)
                break
        nodes[name] = made
    edges: list[dict[str, Any]] = []

    def add(source: str, target: str, place: list[str | int], given: Mapping[str, Any]) -> None:
        if (source in nodes or source == "@entry") and (target in nodes or target == "@exit"):
            edges.append(
                {
                    "name": f"#{len(edges)}",
                    "source": source,
                    "target": target,
                    "label": _label(given),
                    "trigger": given.get("trigger") is not False,
                    "path": place,
                    "line": lines.get(tuple(place), 0),
                    "given": given,
                }
            )

    for at, name in enumerate(_listed(graph.get("start"))):
        add("@entry", name, [*path, "start", at], {})
    for at, each in enumerate(_items(graph, "edges")):
        add(str(each.get("from", "")), str(each.get("to", "")), [*path, "edges", at], each)
    for at, name in enumerate(_listed(graph.get("end"))):
        add(name, "@exit", [*path, "end", at], {})
    for name, level in _levels(nodes, edges).items():
        nodes[name]["level"] = level
    limits: Any = graph.get("cycle_limits")
    return {
        "kind": "graph",
        "name": str(graph.get("id") or ""),
        "title": str(graph.get("id") or ""),
        "path": path,
        "nodes": list(nodes.values()),
        "edges": edges,
        "limits": limits if isinstance(limits, dict) else {},
    }


def _items(graph: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = graph.get(key)
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("dict[str, Any]", each) if isinstance(each, dict) else {} for each in listed]


def _label(given: Mapping[str, Any]) -> str:
    found = given.get("condition")
    if found in (None, True):
        return ""
    if isinstance(found, dict) and isinstance(cast("dict[str, Any]", found).get("type"), str):
        condition = cast("dict[str, Any]", found)
        settings: Any = condition.get("config")
        config = cast("dict[str, Any]", settings) if isinstance(settings, dict) else {}
        return use_label(ComponentRef(type=condition["type"], config=config))
    return found if isinstance(found, str) else json.dumps(found, default=str)


def _levels(names: Mapping[str, Any], edges: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return a row for each node: below those that lead to it, edges that close circles apart."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for edge in edges:
        if edge["trigger"] and edge["source"] in after and edge["target"] in after:
            after[edge["source"]].append(edge["target"])
    entered = [edge["target"] for edge in edges if edge["source"] == "@entry"]
    order: list[str] = []
    state: dict[str, int] = {}  # 1: it is being visited, 2: it was
    back: set[tuple[str, str]] = set()
    for root in (*entered, *names):
        if root in state or root not in after:
            continue
        state[root] = 1
        visits = [(root, iter(after[root]))]
        while visits:
            name, left = visits[-1]
            following = next(left, None)
            if following is None:
                state[name] = 2
                order.append(name)
                visits.pop()
            elif state.get(following) == 1:
                back.add((name, following))
            elif following not in state:
                state[following] = 1
                visits.append((following, iter(after[following])))
    levels = dict.fromkeys(names, 0)
    for name in reversed(order):
        for following in after[name]:
            if (name, following) not in back:
                levels[following] = max(levels[following], levels[name] + 1)
    return levels


__all__ = ["append_value", "drawing", "edited", "remove_value", "set_value", "why_fixed"]
