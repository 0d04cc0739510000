"""Observe: from the input to the model's prompt. The same inputs give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from axil.plugin import Message
from axil_agent.errors import WiringError
from axil_agent.template import Verbatim, joined, places, rendered
from axil_models import Formatter, Part, PartNumbers, as_text, with_labels

_ABOUT = "About the fields"

TITLES: Mapping[str, str | None] = {
    "message": "Message",
    "format": "Response format",
    "fields": "Response fields",
    "context": "Context",
}
"""The parts of a user prompt and their titles.

A title that is ``""`` is not written; a part whose title is None is left out.
"""


class Observed(NamedTuple):
    """The prompt of a model: ``system_prompt, user_prompt, messages = agent.observe(inputs)``."""

    system: str
    user: str
    messages: list[Message]


def description(given: object) -> str:
    """Return the description of a key: a text, or a mapping with one."""
    if isinstance(given, Mapping):
        return str(cast("Mapping[str, object]", given).get("description", ""))
    return str(given or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """The facts about an agent's place in a graph."""

    node: str = ""
    needed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Fields that its out-edges carry, with descriptions: a reply has to have them."""
    pushed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Attributes that it writes: a reply is asked for them."""
    pulled: Mapping[str, str] = field(default_factory=dict[str, str])
    """Attributes that it reads; the model is sent their descriptions."""
    is_typed: bool = False
    """True if a state says of which types the fields are."""

    @staticmethod
    def carried(out_edges: Sequence[object]) -> dict[str, str]:
        """Return the fields that edges carry, with descriptions; of several for one field the
        first.
        """
        needed: dict[str, str] = {}
        for edge in out_edges:
            keys = cast("Mapping[str, object]", getattr(edge, "keys", None) or {})
            for name, text in keys.items():
                needed[name] = needed.get(name) or description(text)
        return needed

    @property
    def asked(self) -> dict[str, str]:
        """All fields that a reply is asked for."""
        return {**self.needed, **{k: v for k, v in self.pushed.items() if k not in self.needed}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The templates of an agent's prompts, and how they are used."""

    instructions: str = ""
    template: object = None
    """Text, or a mapping of titles to texts."""
    role_name: str = ""
    hide_unused_fields: bool = False
    titles: Mapping[str, str | None] = field(default_factory=lambda: TITLES)

    def fields(
        self, inputs: Mapping[str, object], attributes: Mapping[str, object], wiring: Wiring
    ) -> dict[str, object]:
        """Return the fields that prompts may use: attributes, inputs over them, the role."""
        return {**attributes, **inputs, "role_name": self.role_name or wiring.node}

    def message(self, fields: Mapping[str, object], where: str) -> str:
        """Return the rendered template. Raises: PromptError (AX650)."""
        given: object = self.template
        if isinstance(given, Mapping):
            parts = cast("Mapping[str, object]", given)
            return "\n".join(
                f"{title}: {rendered(joined(text), fields, where)}" for title, text in parts.items()
            )
        return rendered(joined(given), fields, where)

    def shown(self, fields: Mapping[str, object]) -> tuple[dict[str, object], PartNumbers]:
        """Return the fields with labels for their parts, and the numbers that prompts name."""
        numbering = PartNumbers()
        used = self._places() | places(joined(self.instructions))
        named: dict[str, object] = {}
        for name, value in fields.items():
            is_used = name in used or not self.hide_unused_fields
            named[name] = numbering.named(value) if is_used else with_labels(value)
        return named, numbering

    def named(self) -> set[str]:
        """Return the fields without which the prompts cannot be made."""
        is_text = isinstance(self.instructions, Verbatim)
        return self._places() | (set[str]() if is_text else places(joined(self.instructions)))

    def _places(self) -> set[str]:
        given: object = self.template
        is_titled = isinstance(given, Mapping)
        texts = cast("Mapping[str, object]", given).values() if is_titled else [given]
        return set[str]().union(*(places(joined(text)) for text in texts))

    def unused(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Return fields that the template has no place for, by name, the role last."""
        if self.hide_unused_fields:
            return {}
        used = self._places()
        names = sorted(fields.keys() - used - {"role_name"})
        if "role_name" not in used:
            names.append("role_name")
        return {name: fields[name] for name in names}


def titled(titles: Mapping[str, str | None] | None, where: str = "") -> Mapping[str, str | None]:
    """Return the titles of all parts. Raises: WiringError (AX664): a part is unknown."""
    strangers = sorted(set(titles or ()) - set(TITLES))
    if strangers:
        message = f"titles has {', '.join(strangers)}; the parts are {', '.join(TITLES)}."
        raise WiringError("AX664", message, where=where)
    return {**TITLES, **(titles or {})}


def described_fields(asked: Mapping[str, object], schema: Mapping[str, object] | None) -> str:
    """Write the fields a reply has to have as indented JSON; of a typed output, their schemas.

    >>> described_fields({"answer": "the answer"}, None)
    '{\\n  "answer": "the answer"\\n}'
    """
    if schema is None:
        shown = {name: as_text(text) for name, text in asked.items()}
    else:
        shown = {key: schema[key] for key in ("properties", "required", "$defs") if key in schema}
    return json.dumps(shown, ensure_ascii=False, indent=2)


def user_prompt(
    style: Style,
    fields: Mapping[str, object],
    message: str,
    formatters: tuple[Formatter, Formatter],
    asked: str,
    context: str,
    about: Mapping[str, str] | None = None,
) -> str:
    """Return the user's message: template, unused fields, descriptions, how to answer, context."""
    payload: dict[str, object] = {}
    titles = style.titles
    incoming, outgoing = formatters

    def put(title: str | None, text: object) -> None:
        if title in payload:
            payload[title] = f"{as_text(payload[title])}\n{as_text(text)}"
        elif title is not None:
            payload[title] = text

    put(titles["message"], message)
    for name, value in style.unused(fields).items():
        put(name, value)
    if about:
        put(_ABOUT, "\n".join(f"{name}: {text}" for name, text in about.items()))
    if outgoing.introduction:
        put(titles["format"], outgoing.introduction)
    if asked:
        put(titles["fields"], asked)
    if context:
        put(titles["context"], context)
    return incoming.dump(payload)


def conversation(system: str, history: Sequence[Message], user: str | list[Part]) -> list[Message]:
    """Return the messages: the system's, if it says anything, history, the user's."""
    first: list[Message] = [{"role": "system", "content": system}] if system else []
    return [*first, *history, {"role": "user", "content": user}]
