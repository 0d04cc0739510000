"""A model with scripted replies, tied to no framework: messages go in as dicts with ``role`` and
``content``, and a dict comes out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

_MATCHES = frozenset({"system_contains", "user_contains", "model"})
_REPLIES = ({"tool_calls", "text"}, {"delay", "text"}, {"status", "text"}, {"echo_user"})


class ScriptError(ValueError):
    """A rule of a script means nothing."""


class ScriptedFailure(RuntimeError):
    """The reply was ``{status: …}``, the status of an HTTP server that refuses."""

    def __init__(self, status: int, text: str = "") -> None:
        self.status = status
        super().__init__(f"{status} {text}".strip())


@dataclass
class ScriptedModel:
    """Answers by the first rule that matches: its replies in order, the last one repeated.

    A rule is ``{"match": {…}, "replies": […]}``. ``match`` may ask for ``system_contains``,
    ``user_contains`` (texts, or lists of texts all of which must occur) and ``model``; all that are
    given must hold, and none means: always. A reply is

    - a text;
    - ``{"tool_calls": [{"name": …, "arguments": {…}}], "text": …}``;
    - ``{"delay": seconds, "text": …}``: after a while, on ``clock`` if one is given;
    - ``{"status": 429}``: raises ``ScriptedFailure``;
    - ``{"echo_user": true}``: ``(`` the user's messages, joined by ``+`` ``)``.

    >>> model = ScriptedModel([{"match": {"user_contains": "ping"}, "replies": ["pong",
    ...     {"echo_user": True}]}])
    >>> import asyncio
    >>> [asyncio.run(model([{"role": "user", "content": text}]))["content"] for text in ("ping 1",
    ...     "ping 2", "what?")]
    ['pong', '(ping 2)', 'OK']
    """

    rules: Sequence[Mapping[str, Any]] = ()
    default: Any = "OK"
    """The reply where no rule matches."""
    name: str = "scripted"
    """The name that ``match.model`` is compared with, unless ``settings`` name a model."""
    clock: Any = None
    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The calls, in order: ``messages``, ``tools``, ``settings``, and the ``rule`` that
    answered (None: the default).
    """

    def __post_init__(self) -> None:
        for number, rule in enumerate(self.rules):
            _check(rule, f"rules[{number}]")
        _check_reply(self.default, "default")
        self._given = [0] * len(self.rules)

    async def __call__(
        self,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[object] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """See ``complete``."""
        return await self.complete(messages, tools, settings)

    async def complete(
        self,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[object] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Return the next reply: ``{"content", "tool_calls": [{"id", "name", …}], "usage": {…}}``.

        Raises: ScriptedFailure: the reply is a status.
        """
        data = {
            role: [_text(m.get("content")) for m in messages if m.get("role") == role]
            for role in ("system", "user")
        }
        model = str((settings or {}).get("model", self.name))
        matching = (
            number
            for number, each in enumerate(self.rules)
            if _matches(each.get("match") or {}, data, model)
        )
        rule = next(matching, None)
        call = {"tools": tools, "settings": settings, "rule": rule}
        self.calls.append({"messages": [dict(m) for m in messages], **call})
        return await self._reply(self._next(rule), data["user"], messages)

    def reset(self) -> None:
        """Forget all calls and begin every rule's replies again."""
        self.calls.clear()
        self._given = [0] * len(self.rules)

    def _next(self, rule: int | None) -> Any:
        if rule is None:
            return self.default
        replies = self.rules[rule]["replies"]
        position = min(self._given[rule], len(replies) - 1)
        self._given[rule] += 1
        return replies[position]

    async def _reply(
        self, reply: Any, user: list[str], messages: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        given: Mapping[str, Any] = {"text": reply} if isinstance(reply, str) else reply
        if "delay" in given:
            await (self.clock or asyncio).sleep(float(given["delay"]))
        if "status" in given:
            raise ScriptedFailure(int(given["status"]), str(given.get("text", "")))
        text = "(" + "+".join(user) + ")" if given.get("echo_user") else str(given.get("text", ""))
        wanted: Sequence[Mapping[str, Any]] = given.get("tool_calls") or ()
        calls: list[dict[str, Any]] = [
            {
                "id": f"call_{len(self.calls)}_{i}",
                "name": call["name"],
                "arguments": dict(call.get("arguments") or {}),
            }
            for i, call in enumerate(wanted)
        ]
        spent = sum(len(_text(m.get("content")).split()) for m in messages)
        return {
            "content": text,
            "tool_calls": calls,
            "usage": {"input_tokens": spent, "output_tokens": len(text.split())},
        }


def _matches(match: Mapping[str, Any], said: Mapping[str, list[str]], model: str) -> bool:
    if "model" in match and match["model"] != model:
        return False
    for key, role in (("system_contains", "system"), ("user_contains", "user")):
        wanted = match.get(key, ())
        text = "\n".join(said[role])
        if not all(part in text for part in ([wanted] if isinstance(wanted, str) else wanted)):
            return False
    return True


def _text(content: Any) -> str:
    """Return the text of a message, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "\n".join(
            str(cast("Mapping[str, Any]", part).get("text", ""))
            for part in cast("Sequence[Any]", content)
            if isinstance(part, Mapping)
        )
    return "" if content is None else str(content)


def _check(rule: Any, where: str) -> None:
    stated = cast("Mapping[str, Any]", rule if isinstance(rule, Mapping) else {})
    replies = stated.get("replies")
    if not isinstance(replies, (list, tuple)) or not replies:
        raise ScriptError(
            f'{where}: a rule is {{"match": {{…}}, "replies": [at least one]}}; found {rule!r}.'
        )
    match: Mapping[str, Any] = stated.get("match") or {}
    strange = set(stated) - {"match", "replies"} | set(match) - _MATCHES
    if strange:
        raise ScriptError(
            f"{where}: unknown {', '.join(sorted(strange))}; a match asks for "
            f"{', '.join(sorted(_MATCHES))}."
        )
    for number, reply in enumerate(cast("Sequence[Any]", replies)):
        _check_reply(reply, f"{where}.replies[{number}]")


def _check_reply(reply: Any, where: str) -> None:
    if isinstance(reply, str):
        return
    keys = frozenset(cast("Mapping[str, Any]", reply) if isinstance(reply, Mapping) else ())
    if not keys or not any(keys <= allowed for allowed in _REPLIES):
        raise ScriptError(
            f"{where}: a reply is a text or has the keys of one of "
            f"{', '.join(map(str, map(sorted, _REPLIES)))}; found {reply!r}."
        )
