"""Templates of a file: nodes that ``use`` one are written out before the file is checked.

A template is a node without a name; ``templates`` holds them, and a template may use another one. A
node that uses one has its keys; ``config`` and ``attributes`` are merged key by key, other keys
replaced. *Rules* under ``defaults`` and ``overrides`` are settings for several nodes, chosen by
path, type or template. From weak to strong: defaults, defaults that choose, the template, the node
itself, overrides, overrides that choose, the ``overrides`` of a node around it, outer ones first;
of equals the later one.

Rules hold for nodes that use a template and for all nodes inside them. What is copied keeps its
lines: each part of the document that comes out has the line where it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

from axil import Problem
from axil.plugin import did_you_mean, format_names
from axil_files.documents import MAX_DEPTH, MAX_VALUES, Document, KeyPath, document_error

KEYS: Final = ("templates", "defaults", "overrides")
"""Keys at the top of a file that say something about templates."""
_MERGED: Final = frozenset({"config", "attributes"})
_CHOOSING: Final = ("path", "type", "template")
_OWN: Final = frozenset({"id", "use", "overrides"})

Traced = tuple[Any, KeyPath]
"""A value, and where in the document it was written."""


@lru_cache(maxsize=256)
def _pattern(path: str) -> re.Pattern[str]:
    """Return a pattern for names that end with ``>``.

    Raises: ValueError: a part of the path is empty.
    """
    runs = [""]  # of names and *, between **
    for part in (part.strip() for part in path.split(">")):
        if not part:
            raise ValueError(
                f'AX171 the path "{path}" has an empty part. Write names, * or ** with > between.'
            )
        if part == "**":
            runs.append("")
        else:
            runs[-1] += "[^>]+>" if part == "*" else f"{re.escape(part)}>"
    # the first place where a run fits leaves the most for those behind it: no other is tried
    found = "".join(f"(?>(?:[^>]+>)*?{run})" for run in runs if run)
    return re.compile(rf"{found}(?:[^>]+>)*")


def match_path(path: str, names: Sequence[str]) -> bool:
    """Tell whether a path filter fits a part of the names of the graphs around a node and its own.

    >>> match_path("team>writer", ["a", "team", "writer"]), match_path("a>writer", ["a", "writer"])
    (True, True)
    >>> match_path("a>*>writer", ["a", "b", "writer"]), match_path("a>**>writer", ["a", "writer"])
    (True, True)
    >>> match_path("writer>a", ["a", "writer"])
    False

    Raises: ValueError: a part of the path is empty.
    """
    return _pattern(path).fullmatch("".join(f"{name}>" for name in names)) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """Settings for nodes that are chosen."""

    data: Mapping[str, Any]
    keys: KeyPath
    depth: int = 0
    """The number of names around the node that has it: they are no part of its paths."""

    @property
    def chooses(self) -> bool:
        """Tell whether it is for some nodes only."""
        return any(self.data.get(key) for key in _CHOOSING)

    def fits(self, path: Sequence[str], type: Any, names: Sequence[str]) -> bool:
        """Tell whether it is for a node that uses templates of these names."""
        inside, data = path[self.depth :], self.data
        return (
            bool(inside)
            and (not data.get("path") or match_path(str(data["path"]), inside))
            and data.get("type") in (None, type)
            and data.get("template") in (None, *names)
        )

    def settings(self, known: Collection[str]) -> dict[str, Traced]:
        """Return what it sets of the keys of nodes."""
        return {
            key: (value, (*self.keys, key))
            for key, value in self.data.items()
            if key in known and key not in {*_CHOOSING, *_OWN} and value is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """The rules and names that hold at one place of the document."""

    path: tuple[str, ...] = ()
    overrides: tuple[_Rule, ...] = ()
    """The templates of nodes around it."""
    using: tuple[str, ...] = ()
    """The templates that this is inside of."""


def expand(document: Document, report: Callable[[Problem], None]) -> Document:
    """Return the document with all nodes written out; itself, if none uses a template.

    Raises: SpecError (AX110, AX144): what comes out is too deep or too large.
    """
    data = _mapping(document.data)
    nodes: Any = _mapping(data.get("graph")).get("nodes")
    items = cast("list[Any]", nodes) if isinstance(nodes, list) else []
    if not any(data.get(key) for key in KEYS) and not any("use" in _mapping(n) for n in items):
        return document
    return _Expansion(document, data, report).whole()


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class _Expansion:
    """The expansion of one document."""

    def __init__(
        self, document: Document, data: dict[str, Any], report: Callable[[Problem], None]
    ) -> None:
        from axil_files.models import Node, names_of

        self._document, self._data, self._report = document, data, report
        self._is_broken = False
        """True if a node names no template that can be used."""
        self._keys = frozenset(names_of(Node))
        self._templates = _mapping(data.get("templates"))
        self._defaults = self._rules(data.get("defaults"), ("defaults",))
        self._overrides = self._rules(data.get("overrides"), ("overrides",))
        self._seen: dict[KeyPath, _Rule] = {}
        """Rules inside nodes, by where they are written."""
        self._fitting: set[KeyPath] = set()
        self._lines = dict(document.lines)
        self._count = 0

    def whole(self) -> Document:
        """Return the document that comes out."""
        graph = self._walk(self._data.get("graph"), ("graph",), ("graph",), _Around())
        for rule in (*self._defaults, *self._overrides, *self._seen.values()):
            if rule.keys not in self._fitting and not self._is_broken:
                self._problem(
                    "AX172",
                    rule.keys,
                    "this fits no node that uses a template.",
                    "Correct its path, type or template; paths are names of nodes, from the "
                    "outermost one, with > between them.",
                )
        return Document(
            data={**self._data, "graph": graph}, lines=self._lines, name=self._document.name
        )

    def _problem(self, id: str, keys: KeyPath, message: str, hint: str) -> None:
        self._is_broken = self._is_broken or id == "AX171"
        self._report(Problem(id, str(self._document.place(*keys)), message, hint))

    def _rules(self, given: Any, keys: KeyPath, depth: int = 0) -> tuple[_Rule, ...]:
        """Return rules in the order of their strength; one with a path that is none is reported."""
        found: list[_Rule] = []
        for i, data in enumerate(cast("list[Any]", given if isinstance(given, list) else [])):
            if not isinstance(data, dict):
                continue
            rule = _Rule(data=cast("dict[str, Any]", data), keys=(*keys, i), depth=depth)
            try:
                _pattern(str(rule.data.get("path") or "*"))
            except ValueError as error:
                id, _, message = str(error).partition(" ")
                self._problem(id, (*rule.keys, "path"), message, "")
            else:
                found.append(rule)
        return tuple(sorted(found, key=lambda rule: rule.chooses))

    # -- the document

    def _walk(self, value: Any, origin: KeyPath, at: KeyPath, around: _Around) -> Any:
        """Return a value, with what is inside written out; ``at`` is where it comes to stand."""
        self._note(origin, at)
        if isinstance(value, list):
            return [
                self._walk(item, (*origin, i), (*at, i), around)
                for i, item in enumerate(cast("list[Any]", value))
            ]
        if not isinstance(value, dict):
            return value
        data = cast("dict[str, Any]", value)
        if self._is_use(data):
            name = next(key for key in reversed(at) if isinstance(key, str))
            return self._node(data, origin, at, self._inside(around, name))
        return {
            key: self._nodes(cast("list[Any]", item), (*origin, key), (*at, key), around)
            if key == "nodes" and isinstance(item, list)
            else self._walk(item, (*origin, key), (*at, key), around)
            for key, item in data.items()
        }

    def _nodes(self, items: list[Any], origin: KeyPath, at: KeyPath, around: _Around) -> list[Any]:
        """Return the nodes of a graph."""
        self._note(origin, at)
        found: list[Any] = []
        for i, item in enumerate(items):
            here, there = (*origin, i), (*at, i)
            if not isinstance(item, dict):
                found.append(item)
                continue
            data = cast("dict[str, Any]", item)
            inside = self._inside(around, str(data.get("id") or ""))
            if "use" in data or around.using:
                found.append(self._node(data, here, there, inside))
            else:
                self._note(here, there)
                found.append(
                    {
                        key: self._walk(value, (*here, key), (*there, key), inside)
                        for key, value in data.items()
                    }
                )
        return found

    def _note(self, origin: KeyPath, at: KeyPath) -> None:
        """Note where a value was written. Raises: SpecError: there are too many, or too deep."""
        self._count += 1
        id = "AX110" if len(at) > MAX_DEPTH else "AX144" if self._count > MAX_VALUES else ""
        if id:
            message = (
                f"templates make it nest deeper than {MAX_DEPTH} levels."
                if id == "AX110"
                else f"templates make more than {MAX_VALUES} values of it."
            )
            name, line = self._document.name, self._document.place(*origin).line
            hint = "Use fewer templates inside each other."
            raise document_error(id, name, line, message, hint)
        if origin != at and (line := self._document.lines.get(origin)) is not None:
            self._lines[at] = line

    def _is_use(self, data: Mapping[str, Any]) -> bool:
        """Tell whether a part of a node's settings is a node that uses a template."""
        return isinstance(data.get("use"), str) and "type" not in data and data.keys() <= self._keys

    @staticmethod
    def _inside(around: _Around, name: str) -> _Around:
        return _Around(path=(*around.path, name), overrides=around.overrides, using=around.using)

    # -- a node

    def _node(self, data: Mapping[str, Any], origin: KeyPath, at: KeyPath, around: _Around) -> Any:
        """Return a node with all its settings."""
        self._note(origin, at)
        layers = list(self._layers(data, origin, around.using))
        names = [name for name, _, _ in layers if name]
        own = [
            {
                key: (value, (*keys, key))
                for key, value in layer.items()
                if value is not None and (not name or key in self._keys) and key not in _OWN
            }
            for name, layer, keys in layers
        ]
        kinds = [layer["type"][0] for layer in own if "type" in layer]
        kind = kinds[-1] if kinds else None
        weak = self._chosen(self._defaults, around.path, kind, names)
        strong = self._chosen((*self._overrides, *around.overrides), around.path, kind, names)
        merged: dict[str, Any] = {}
        for layer in (*weak, *own, *strong):
            for key, (value, keys) in layer.items():
                if key in _MERGED and isinstance(value, dict):
                    whole: dict[str, Traced] = (
                        merged[key] if isinstance(merged.get(key), dict) else {}
                    )
                    inner = cast("dict[str, Any]", value)
                    merged[key] = {
                        **whole,
                        **{name: (item, (*keys, name)) for name, item in inner.items()},
                    }
                    self._note(keys, (*at, key))
                else:
                    merged[key] = (value, keys)
        inside = _Around(
            path=around.path,
            overrides=(*around.overrides, *self._inner_rules(layers, len(around.path))),
            using=(*around.using, *names),
        )
        result = {"id": data["id"]} if "id" in data else {}
        for key, found in merged.items():
            result[key] = (
                {
                    name: self._walk(value, keys, (*at, key, name), inside)
                    for name, (value, keys) in cast("dict[str, Traced]", found).items()
                }
                if isinstance(found, dict)
                else self._walk(found[0], found[1], (*at, key), inside)
            )
        return result

    def _layers(
        self, data: Mapping[str, Any], origin: KeyPath, using: Sequence[str]
    ) -> Iterator[tuple[str, Mapping[str, Any], KeyPath]]:
        """Yield the templates of a node, the most general one first, and the node itself."""
        found: list[tuple[str, Mapping[str, Any], KeyPath]] = [("", data, origin)]
        while (wanted := found[-1][1].get("use")) is not None:
            keys = (*found[-1][2], "use")
            if found[-1][1].get("type") is not None:
                message = "type and use are both given, and a template has a type."
                self._problem("AX171", keys, message, "Remove one of them.")
            if not isinstance(wanted, str) or not isinstance(self._templates.get(wanted), dict):
                hint = did_you_mean(str(wanted), self._templates) or (
                    f"Available: {format_names(sorted(self._templates))}."
                    if self._templates
                    else "Write templates at the top of this file; they hold for their own file."
                )
                self._problem("AX171", keys, f'no template "{wanted}".', hint)
                break
            known = [*using, *(name for name, _, _ in found if name)]
            if wanted in known:
                circle = " → ".join([*known[known.index(wanted) :], wanted])
                message = f"the template {wanted} uses itself: {circle}."
                self._problem("AX171", keys, message, "Remove one of the uses.")
                break
            found.append((wanted, self._templates[wanted], ("templates", wanted)))
        return reversed(found)

    def _inner_rules(
        self, layers: Sequence[tuple[str, Mapping[str, Any], KeyPath]], depth: int
    ) -> list[_Rule]:
        """Return the overrides that a node, or its templates, have for what is inside."""
        found = [
            rule
            for _, layer, keys in layers
            for rule in self._rules(layer.get("overrides"), (*keys, "overrides"), depth)
        ]
        self._seen |= {rule.keys: rule for rule in found}
        return found

    def _chosen(
        self, rules: Sequence[_Rule], path: Sequence[str], kind: Any, names: Sequence[str]
    ) -> list[dict[str, Traced]]:
        chosen = [rule for rule in rules if rule.fits(path, kind, names)]
        self._fitting |= {rule.keys for rule in chosen}
        return [rule.settings(self._keys) for rule in chosen]
