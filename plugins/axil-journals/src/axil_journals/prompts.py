"""Prompts in a journal: an entry for each model call, which no later entry supersedes.

A request is kept as digests of its messages, and each message once for a run, in the first entry
that has it: a conversation sends its earlier messages again with each call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from axil.driver import StepDone
from axil_journals.journal import Entry


class PromptKeeper:
    """The texts of prompts that one run has kept; ``how``: see ``Options.prompts``."""

    def __init__(self, how: str, entries: Iterable[Entry] = ()) -> None:
        if how not in ("off", "digests", "whole"):
            raise ValueError(f'prompts is {how!r}; it is "off", "digests" or "whole".')
        self._is_whole = how == "whole"
        self._kept: set[str] = set()
        for entry in entries if self._is_whole else ():
            if entry.kind == "prompt":
                self._kept.update(entry.data.get("texts", ()))

    def encode(self, fact: StepDone) -> Entry:
        """Return the entry of a model call, without known forms of secrets."""
        from axil.plugin import redact_data

        request = cast("dict[str, Any]", redact_data(fact.prompt))
        reply = redact_data(fact.value)
        messages: list[dict[str, Any]] = []
        texts: dict[str, Any] = {}
        for message in cast("list[dict[str, Any]]", request.pop("messages", [])):
            text = json.dumps(message, sort_keys=True, ensure_ascii=False)
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            role, characters = message.get("role"), len(_text(message.get("content")))
            messages.append({"role": role, "characters": characters, "digest": digest})
            if self._is_whole and digest not in self._kept:
                self._kept.add(digest)
                texts[digest] = message
        data: dict[str, Any] = {"name": fact.name, "messages": messages}
        if texts:
            data["texts"] = texts
        if not self._is_whole:
            tools = cast("list[dict[str, Any]]", request.get("tools") or [])
            request = {"tools": [tool.get("name") for tool in tools]}
            answer = cast("dict[str, Any]", reply if isinstance(reply, dict) else {})
            reply = {name: answer[name] for name in ("usage", "model", "finish") if name in answer}
            reply["characters"] = len(_text(answer.get("text")))
        data |= {"request": request, "reply": reply}
        who = fact.activation
        return Entry("prompt", who.frame, who.node, who.ordinal, data)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "" if content is None else json.dumps(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The prompt of one model call, as a journal kept it, and the reply."""

    activation: str
    """The firing that asked."""
    step: str
    messages: tuple[Mapping[str, Any], ...]
    """The messages; with ``digests`` the ``role``, ``characters`` and ``digest`` of each."""
    request: Mapping[str, Any]
    """The tools, settings and form of the request; with ``digests`` the names of ``tools``."""
    reply: Mapping[str, Any]
    """The reply; with ``digests`` its ``usage``, ``model``, ``finish`` and ``characters``."""


def prompts_of(entries: Iterable[Entry]) -> list[Prompt]:
    """Return the prompts in the entries of a run, in the order of their replies."""
    found: list[Prompt] = []
    texts: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        if entry.kind != "prompt":
            continue
        data = entry.data
        texts.update(data.get("texts", {}))
        messages = cast("list[Mapping[str, Any]]", data["messages"])
        found.append(
            Prompt(
                activation=str(entry.activation),
                step=str(data["name"]),
                messages=tuple(texts.get(each["digest"], each) for each in messages),
                request=data["request"],
                reply=data["reply"],
            )
        )
    return found
