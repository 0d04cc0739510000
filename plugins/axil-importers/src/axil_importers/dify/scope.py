"""The things that the parts of one Dify import share: names, references to variables, findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from axil_importers.draft import Draft, Step, literal, prompt_literal

PLACE: Final = re.compile(r"\{\{#\s*([^#{}]+?)\s*#\}\}")
JINJA: Final = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)((?:\.\w+|\[\d+\])*)\s*-?\}\}")
_SPECIAL: Final = ("sys", "conversation", "env")
Node = Mapping[str, Any]


class Whole:
    """One Dify app being imported."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.kinds = {str(node["id"]): str(node["data"].get("type")) for node in nodes}
        self.grouped = {str(n["id"]) for n in nodes if _has_groups(n["data"])}
        self.titles = {str(n["id"]): title_of(n) for n in nodes}
        self.written: set[str] = set()
        self._read: dict[str, list[tuple[Step, str]]] = {}

    def read(self, field: str, step: Step, path: str) -> None:
        """Note that a node reads a field."""
        self._read.setdefault(field, []).append((step, path))

    def close(self) -> list[str]:
        """Say of what was read and is never written; return those fields."""
        missing = [field for field in self._read if field not in self.written]
        for field in missing:
            for step, path in self._read[field]:
                step.approximate(
                    f"it reads {path}, which nothing writes here",
                    f"The field {field} is empty; write it, or take the place out.",
                )
        return missing


class Scope:
    """The nodes of one graph: the app's, or those inside an iteration."""

    def __init__(self, whole: Whole, draft: Draft) -> None:
        self.whole, self.draft = whole, draft
        self.heads: dict[str, str] = {}
        self.tails: dict[str, str] = {}
        self.reads: set[str] = set()

    def field(self, selector: Sequence[Any]) -> tuple[str, str]:
        """Return the field of a variable, and the rest of the path inside it."""
        owner, *rest = [str(each) for each in selector] or [""]
        name, *inside = rest or [""]
        if owner in self.whole.grouped and inside[:1] == ["output"]:
            name, inside = f"{name}_output", inside[1:]
        title = owner if owner in _SPECIAL else self.whole.titles.get(owner, owner)
        wanted = name if owner in _SPECIAL else f"{title}_{name}"
        if self.whole.kinds.get(owner) == "start":
            wanted = name
        return self.draft.field(owner, name, wanted=wanted), ".".join(inside)

    def path(self, selector: Sequence[Any], step: Step) -> str:
        """Return a variable as the path that ``assign`` understands."""
        field, rest = self.field(selector)
        self.reads.add(field)
        self.whole.read(field, step, ".".join(map(str, selector)))
        return f"{field}.{rest}" if rest else field

    def writes(self, node: Node, *names: str) -> list[str]:
        """Return the fields of variables that a node writes."""
        fields = [self.field([node["id"], name])[0] for name in names]
        self.whole.written.update(fields)
        return fields

    def template(self, text: Any, step: Step) -> str:
        """Return a text of Dify as a text with places of axil."""
        return self._places(str(text or ""), lambda path: "{" + path + "}", step)

    def flat(
        self, text: Any, step: Step, ahead: dict[str, Any], context: Sequence[Any] = ()
    ) -> str:
        """Return the same for a prompt, whose places are whole fields: what is deeper is made a
        field in ``ahead``.
        """

        def place(path: str) -> str:
            if "." not in path:
                return "{" + path + "}"
            name = self.draft.field("@inside", path, wanted=path)
            ahead[name] = {"path": path}
            return "{" + name + "}"

        given = str(text or "")
        if context:
            given = given.replace("{{#context#}}", "{{#" + ".".join(map(str, context)) + "#}}")
        return self._places(given, place, step, prompt_literal)

    def _places(
        self,
        text: str,
        place: Callable[[str], str],
        step: Step,
        plain: Callable[[str], str] = literal,
    ) -> str:
        parts: list[str] = []
        end = 0
        for found in PLACE.finditer(text):
            parts.append(plain(text[end : found.start()]))
            parts.append(place(self.path(_selector(found[1]), step)))
            end = found.end()
        return "".join(parts) + plain(text[end:])

    def value(self, given: Any, step: Step) -> Any:
        """Return a setting of Dify, ``{type, value}`` or a text, as a value of ``assign``."""
        if isinstance(given, Mapping):
            said = cast("Mapping[str, Any]", given)
            inner = said.get("value")
            if said.get("type") in ("variable", "selector") and isinstance(inner, list):
                return {"path": self.path(cast("list[Any]", inner), step)}
            if "value" in said:
                return self.value(inner, step)
        if isinstance(given, str):
            return self.template(given, step)
        return {"value": cast("Any", given)}


def title_of(node: Node) -> str:
    """Return what people call a node."""
    return str(node["data"].get("title") or node["data"].get("type") or node["id"])


def _selector(text: str) -> list[str]:
    return [each for each in text.split(".") if each]


def _has_groups(data: Mapping[str, Any]) -> bool:
    advanced: Any = data.get("advanced_settings") or {}
    return bool(advanced.get("group_enabled"))
