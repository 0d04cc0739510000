"""The prompt of an agent, in MASFactory's order, by methods that a subclass may replace."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

import axil_agent
from masfactory.core.message.base import StatefulFormatter
from masfactory.core.node import Node

TITLES = {
    "message": "MESSAGE TO YOU",
    "format": "RESPONSE FORMAT REQUIREMENTS",
    "fields": "REQUIRED OUTPUT FIELDS AND THEIR DESCRIPTIONS",
    "context": "CONTEXT",
}
"""The titles of the parts of MASFactory's prompts."""

_PLACE = re.compile(r"(?<!\{)\{([^\W\d]\w*|\d+)\}(?!\})")


@dataclass(slots=True)
class _Prompt:
    """A prompt that is being made."""

    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    message: Any = ""
    system: str = ""
    used: set[str] = field(default_factory=set[str])


_made: ContextVar[dict[int, _Prompt]] = ContextVar("masfactory_prompts")
"""The prompts that are being made here, by the identity of their agents."""


class Prompting(Node):
    """A node that makes prompts."""

    _in_formatter: Any
    _out_formatter: Any
    _prompt_template: Any
    _hide_unused_fields: bool
    _last: tuple[str, str]

    @property
    def last_prompt(self) -> tuple[str, str]:
        """The system's and the user's prompt that were made last."""
        return self._last

    # -- the parts, by MASFactory's names for them

    def _user_prompt(self) -> dict[str, Any]:
        """Give the user's prompt, part by part."""
        message = self._input_prompt()
        unused = {} if self._hide_unused_fields else self._context_fileds_prompt()
        return {**message, **unused, **self._output_keys_prompt()}

    def _system_prompt(self) -> str:
        """Give the system's prompt."""
        return self._now().system

    def _input_prompt(self) -> dict[str, Any]:
        """Give the message."""
        return {TITLES["message"]: self._prompt_template_format(self._prompt_template)}

    def _context_fileds_prompt(self) -> dict[str, Any]:  # MASFactory's spelling
        """Give the fields without a place in the message, by name, the role last."""
        now = self._now()
        names = sorted(now.fields.keys() - now.used - {"role_name"})
        names += ["role_name"] if "role_name" in now.fields.keys() - now.used else []
        return {name: now.fields[name] for name in names}

    def _output_keys_prompt(self) -> dict[str, Any]:
        """Give what is said about the reply: its form, and its fields.

        Of two descriptions of a field, that of ``push_keys`` is taken.
        """
        formatter = self._out_formatter
        form = getattr(formatter, "agent_introducer", None) or getattr(
            formatter, "introduction", ""
        )
        asked = {**self.output_keys, **(self.push_keys or {})}
        shown = json.dumps(asked, ensure_ascii=False, indent=2, default=str)
        return {TITLES["format"]: form, TITLES["fields"]: shown}

    def _prompt_template_format(
        self, prompt_template: Any, *, format_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Fill a template with the fields; its places count as used."""
        now = self._now()
        fields = now.fields if format_context is None else format_context
        now.used |= _places(prompt_template)
        if prompt_template is self._prompt_template and not isinstance(prompt_template, Mapping):
            return now.message
        if isinstance(prompt_template, Mapping):
            parts = cast("Mapping[str, Any]", prompt_template)
            return {title: self._filled(_text(part), fields) for title, part in parts.items()}
        return self._filled(_text(prompt_template), fields)

    def _filled(self, text: str, fields: Mapping[str, Any]) -> str:
        return _PLACE.sub(lambda place: self._shown(fields.get(place[1], place[0])), text)

    def _shown(self, value: Any) -> str:
        render = getattr(self._in_formatter, "render_value", None)
        if isinstance(value, str) or render is None:
            return value if isinstance(value, str) else json.dumps(value, default=str)
        return str(render(value))

    @property
    def _context_knowledges(self) -> Mapping[str, Any]:
        return self._now().fields

    def _now(self) -> _Prompt:
        return _made.get({}).get(id(self)) or _Prompt()

    # -- for axil

    @contextmanager
    def making(self, fields: Mapping[str, Any]) -> Generator[_Prompt]:
        """Make a prompt of these fields within."""
        token = _made.set({**_made.get({}), id(self): _Prompt(fields)})
        try:
            yield self._now()
        finally:
            _made.reset(token)

    def dumped(self, payload: Mapping[str, Any]) -> str:
        """Give the user's prompt as a text; ``payload`` is what axil would say."""
        if isinstance(self._out_formatter, StatefulFormatter):
            self._out_formatter.set_field_keys({**(self.push_keys or {}), **self.output_keys})
        self._now().message = payload.get(TITLES["message"], "")
        parts = self._user_prompt()
        if TITLES["context"] in payload:
            parts[TITLES["context"]] = payload[TITLES["context"]]
        return str(self._in_formatter.dump(parts))

    def read(self, text: str) -> dict[str, Any]:
        """Read a text by the formatter of prompts."""
        return dict(self._in_formatter.format(text))

    def system(self) -> str:
        """Give the system's prompt of what is being made."""
        return str(self._system_prompt())

    @property
    def prompt_template(self) -> Any:
        """The template of its message."""
        return self._prompt_template

    def set_last(self, system: str, user: str) -> None:
        """Keep the prompt that was made."""
        self._last = system, user


class PromptFormatter:
    """The formatter of an agent's prompts as axil takes it."""

    introduction = ""

    def __init__(self, agent: Prompting) -> None:
        self.agent = agent

    def dump(self, fields: Mapping[str, Any], /) -> str:
        """Write a prompt."""
        return self.agent.dumped(fields)

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, Any]:
        """Read a text; nothing asks for it."""
        del fields
        return self.agent.read(text)


class _Observing(axil_agent.Agent):
    """An agent of axil whose prompts are made by one of MASFactory's."""

    prompting: Prompting

    async def observed(self, inputs: Mapping[str, Any], attributes: Any = None, **more: Any) -> Any:
        place = more.get("wiring") or self._wiring
        given, style = self._inputs_and_style(inputs, place)
        shown, _ = style.shown(style.fields(given, attributes or {}, place))
        with self.prompting.making(shown) as now:
            seen = await super().observed(inputs, attributes, **more)
            now.system = seen.system
            system = self.prompting.system()
        if system != seen.system:
            rest = [m for m in seen.messages if m.get("role") != "system"]
            messages: Any = [{"role": "system", "content": system}, *rest]
            seen = seen._replace(system=system, messages=messages)
        self.prompting.set_last(seen.system, seen.user)
        return seen


class ObservingAgent(_Observing):
    """``axil_agent.Agent``."""


class ObservingDynamicAgent(_Observing, axil_agent.DynamicAgent):
    """``axil_agent.DynamicAgent``."""


class ObservingSingleAgent(_Observing, axil_agent.SingleAgent[Any]):
    """``axil_agent.SingleAgent``."""


def _text(given: Any) -> str:
    if isinstance(given, (list, tuple)):
        return "\n".join(str(each) for each in cast("Sequence[Any]", given))
    return "" if given is None else str(given)


def _places(template: Any) -> set[str]:
    if isinstance(template, Mapping):
        parts = cast("Mapping[str, Any]", template).values()
        return set[str]().union(*(_PLACE.findall(_text(part)) for part in parts))
    return set(_PLACE.findall(_text(template)))
