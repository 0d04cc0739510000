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

from axil.plugin import ProblemError
from axil_files.yaml_loader import LOADER, parse_yaml
from axil_files.yaml_writer import YamlWriter

Keys = Sequence[str | int]
_BASE_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_WIDTH: Final = 100
_LONG: Final = 80


class EditError(ProblemError, ValueError):
    """An edit of a file's text that cannot be made."""


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


class _Composer(yaml.SafeLoader):
    """Makes nodes, aliases too: each is a scalar at its place, and what it stands for is known."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.shared: list[Any] = []
        """Aliases, and the nodes that they stand for."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> Any:
        events: Any = self
        if not events.check_event(yaml.AliasEvent):
            return super().compose_node(parent, index)
        event = events.get_event()
        alias = yaml.ScalarNode("", "", event.start_mark, event.end_mark)
        self.shared += [alias, self.anchors[event.anchor]]
        return alias


def _has_aliases(text: str) -> bool:
    """Return whether one value stands at several places."""
    loader: Any = LOADER(_spaced(text))
    try:
        while loader.check_event():
            if isinstance(loader.get_event(), yaml.AliasEvent):
                return True
        return False
    finally:
        loader.dispose()


def is_json(text: str) -> bool:
    """Return whether a text is written as JSON is."""
    return text.lstrip()[:1] == "{"


def _spaced(text: str) -> str:
    """Return a text as YAML takes it: JSON may be indented by tabs."""
    return text.replace("\t", " ") if is_json(text) else text


def not_an_edit(reason: str) -> EditError:
    """Return the error: the edit does not fit the file."""
    return EditError("AX191", f"the edit cannot be made: {reason}.", "Read the file again.")


def in_text(reason: str) -> EditError:
    """Return the error: a person has to make the edit."""
    return EditError("AX191", f"the edit cannot be made here: {reason}.", "Edit the text instead.")


class YamlText:
    """The nodes of a text, with their positions."""

    def __init__(self, text: str) -> None:
        self.text, self.is_json = text, is_json(text)
        aliased = _has_aliases(text)
        if aliased:
            parse_yaml(text, "")  # which counts what aliases stand for
        loader: Any = (_Composer if aliased else LOADER)(_spaced(text))
        try:
            self.root: Any = loader.get_single_node()
        finally:
            loader.dispose()
        self._shared: list[Any] = loader.shared if aliased else []

    def at(self, path: Keys) -> Any:
        """Return a node; None: the file does not have it. Raises: as ``own``, for those around."""
        node = self.root
        for key in path:
            node = self.child(self.own(node), key)
            if node is None:
                return None
        return node

    def own(self, node: Any) -> Any:
        """Return a node to be edited inside. Raises: EditError: it stands at several places."""
        if any(node is each for each in self._shared):
            raise in_text("an alias (*) makes the place stand elsewhere, too")
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
            raise in_text("a comment stands between a key and its value")
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


def on_one_line(value: Any, *, as_json: bool) -> str:
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
    """Return a value with its scalars as texts, as ``data_of`` has them."""
    return yaml.load(_dump(_plain(value), flow=True), _BASE_LOADER)  # noqa: S506  # texts alone


def data_of(text: str) -> Any:
    """Return the data of a file, whose scalars are texts."""
    return yaml.load(_spaced(text), _BASE_LOADER)  # noqa: S506  # it makes texts alone


def _same(text: str, expected: Any) -> bool:
    try:
        return _empty(data_of(text)) == _empty(expected)
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


def first_good(candidates: Iterator[str], expected: Any) -> str:
    """Return the first text that holds the data. Raises: EditError: none does."""
    for text in candidates:
        if _same(text, expected):
            return text
    raise in_text("the place is written in a way that this edit would break")


def set_value(text: str, path: Keys, value: Any) -> str:
    """Return the text with a value at a place; what is missing around it is added."""
    if not path:
        raise not_an_edit("its path is empty")
    tree, expected = YamlText(text), data_of(text)
    parent = tree.own(tree.at(path[:-1]))
    if parent is None or (isinstance(path[-1], str) and not isinstance(parent, yaml.MappingNode)):
        return set_value(text, path[:-1], {str(path[-1]): value})
    data_at(expected, path[:-1])[path[-1]] = _base(value)
    old = tree.at(path)
    texts = _replaced(tree, path, value) if old is not None else _added(tree, path, value)
    return first_good(texts, expected)


def _styled(tree: YamlText, old: Any, value: Any) -> tuple[Any, int]:
    """Return a text with the style of the one that it replaces, and the width of its lines."""
    if not isinstance(value, str) or not isinstance(old, yaml.ScalarNode) or not old.style:
        return value, _WIDTH
    made = _Text(value)
    made.style = "|" if "\n" in value and old.style in "'\"" else old.style
    lines = tree.text[tree.line_start(old.start_mark.index) : tree.end(old)].split("\n")
    return made, max(map(len, lines)) + 1


def _replaced(tree: YamlText, path: Keys, value: Any) -> Iterator[str]:
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
    yield text[:start] + space + on_one_line(value, as_json=tree.is_json) + text[end:]


def _added(tree: YamlText, path: Keys, value: Any) -> Iterator[str]:
    text, parent, key = tree.text, tree.at(path[:-1]), str(path[-1])
    as_json = tree.is_json
    if tree.is_flow(path[:-1]):
        name = json.dumps(key) if as_json else _dump({key: None}).partition(": ")[0]
        made = f"{name}: {on_one_line(value, as_json=as_json)}"
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


def _gap(tree: YamlText, last: Any, parent: Any) -> str:
    """Return what is before an item in brackets: a space, or a new line as before the last one."""
    before = tree.text[parent.start_mark.index : last.start_mark.index]
    line = before.rpartition("\n")[2]
    return f"\n{line}" if "\n" in before and not line.strip() else " "


def append_value(text: str, path: Keys, value: Any) -> str:
    """Return the text with an item at the end of a list, which is made if there is none."""
    tree, expected = YamlText(text), data_of(text)
    node = tree.own(tree.at(path))
    if not isinstance(node, yaml.SequenceNode) or (not node.value and not tree.is_flow(path[:-1])):
        if node is not None and _empty(data_at(expected, path)) != "":
            raise in_text("the place holds no list")
        return set_value(text, path, [value])
    data_at(expected, path).append(_base(value))
    return first_good(_appended(tree, node, path, value), expected)


def data_at(data: Any, path: Keys) -> Any:
    """Return what is at a place."""
    for key in path:
        data = data[key]
    return data


def _appended(tree: YamlText, node: Any, path: Keys, value: Any) -> Iterator[str]:
    text, as_json = tree.text, tree.is_json
    if tree.is_flow(path):
        made = on_one_line(value, as_json=as_json)
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
    made = f"- {on_one_line(value, as_json=False)}" if is_flow else _item(value, column)
    yield f"{text[:at]}\n{blank}{' ' * column}{made}{text[at:]}"


def remove_value(text: str, path: Keys) -> str:
    """Return the text without a key or an item; comments on lines of their own stay."""
    if not path:
        raise not_an_edit("its path is empty")
    tree, expected = YamlText(text), data_of(text)
    parent, node = tree.at(path[:-1]), tree.at(path)
    if node is None:
        raise KeyError(path[-1])
    del data_at(expected, path[:-1])[path[-1]]
    if len(parent.value) == 1 and not tree.is_flow(path[:-1]):
        if not path[:-1]:
            raise in_text("nothing would be left")
        return set_value(text, path[:-1], [] if isinstance(path[-1], int) else {})
    start, end = extent(tree, path)
    return first_good(iter([text[:start] + text[end:]]), expected)


def extent(tree: YamlText, path: Keys) -> tuple[int, int]:
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
            raise in_text("a comment follows")
        return start, following
    if not pair and before != "-":
        raise in_text("the item shares its line")
    stop = min(len(text), tree.line_end(end) + 1)
    is_last = number + 1 == len(all_)
    if text[:line].endswith("\n\n") and (is_last or not text[stop : tree.line_end(stop)].strip()):
        line -= 1  # one empty line is enough, and none behind the last item
    return line, stop
