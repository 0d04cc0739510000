"""Thoughts of models that reason: apart from their replies, and kept for who wants them back.

A reply has its thoughts as parts ``{"type": "reasoning", "text": …}``. What a service wants back
with the reply, and in which form, is the adapter's: it keeps that in ``Reply.extra`` with the
origin, and sends it to no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from axil.plugin import Message

_TAGS: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "[think]": "[/think]",
}
_LONGEST: Final = max(map(len, _TAGS))
_TAG: Final = re.compile("|".join(map(re.escape, _TAGS)), re.IGNORECASE)
_OPENS: Final = re.compile(rf"\s*({_TAG.pattern})", re.IGNORECASE)
_CLOSES: Final = {
    tag: re.compile(re.escape(closing), re.IGNORECASE) for tag, closing in _TAGS.items()
}
_REST: Final = re.compile(
    rf"\A(.*?)(?:{'|'.join(map(re.escape, _TAGS.values()))})", re.DOTALL | re.IGNORECASE
)


def split_thoughts(text: str) -> tuple[str, str]:
    """Return the thoughts that a text begins with, in tags, and the text behind them; also where
    only the end of the thoughts was sent.

    >>> split_thoughts("<think>hm</think>{}"), split_thoughts("hm</think> yes")
    (('hm', '{}'), ('hm', 'yes'))
    """
    thoughts, at = list[str](), 0
    while (opened := _OPENS.match(text, at)) is not None:
        closed = _CLOSES[opened[1].lower()].search(text, opened.end())
        thoughts.append(text[opened.end() : closed and closed.start()].strip())
        at = len(text) if closed is None else closed.end()
    text = text[at:].strip()
    if _TAG.search(text) is None and (rest := _REST.match(text)) is not None:
        thoughts.append(rest[1].strip())
        text = text[rest.end() :].lstrip()
    return "\n".join(filter(None, thoughts)), text


def without_thoughts(text: str) -> str:
    """Return a text without the thoughts that it begins with.

    >>> without_thoughts("<think>hm {}</think>{}")
    '{}'
    """
    return split_thoughts(text)[1]


class ShownThoughts:
    """``emit`` for one reply: thoughts in tags at the beginning of its text are chunks
    ``reasoning``, as those of services that send them apart.
    """

    def __init__(self, emit: Callable[[Any], None]) -> None:
        self._emit = emit
        self._held = ""
        self._opening = ""
        self._is_text = False
        self._count = 0
        """The chunks that were shown, and count."""

    def __call__(self, chunk: object, /) -> None:
        """Show a chunk; the beginning of a text when it is clear what it is."""
        given = cast("Mapping[str, Any]", chunk if isinstance(chunk, Mapping) else {})
        kind = given.get("kind")
        if kind == "text" and not self._is_text:
            self._held += str(given.get("text") or "")
            self._look()
            return
        if kind in ("reset", "retry"):
            self._held, self._opening, self._is_text = "", "", False
        elif kind != "reasoning":
            self.end()
        if kind == "reset":  # what is shown has other chunks than what came
            chunk, self._count = {**given, "chunks": self._count}, 0
        elif kind != "retry":
            self._count += 1
        self._emit(chunk)

    def _show(self, kind: str, text: str) -> None:
        self._count += 1
        self._emit({"kind": kind, "text": text})

    def end(self) -> None:
        """Show what was held back: nothing more comes."""
        held, self._held = self._held, ""
        if held:
            self._show("reasoning" if self._opening else "text", held)

    def _look(self) -> None:
        while self._held:
            if self._opening:
                closed = _CLOSES[self._opening].search(self._held)
                least = len(self._held) - len(_TAGS[self._opening]) + 1
                end = max(0, least) if closed is None else closed.start()
                if end:
                    self._show("reasoning", self._held[:end])
                if closed is None:
                    self._held = self._held[end:]
                    return
                self._held, self._opening = self._held[closed.end() :].lstrip(), ""
                continue
            begun = self._held.lstrip()[:_LONGEST].lower()
            tag = next((tag for tag in _TAGS if begun.startswith(tag)), "")
            if tag:
                self._held, self._opening = self._held.lstrip()[len(tag) :], tag
            elif any(tag.startswith(begun) for tag in _TAGS):
                return
            else:
                self._is_text = True
                self.end()


def reasoning_parts(texts: Iterable[str]) -> tuple[dict[str, Any], ...]:
    """Return thoughts, which came in pieces, as the parts of a reply.

    >>> reasoning_parts(["Hm, ", "leaves."]), reasoning_parts([])
    (({'type': 'reasoning', 'text': 'Hm, leaves.'},), ())
    """
    text = "".join(texts)
    return ({"type": "reasoning", "text": text},) if text else ()


def kept_for(message: Message, key: str, origin: str) -> Mapping[str, Any] | None:
    """Return what an adapter kept under ``key`` in a reply's ``extra``; None: nothing, or it is
    another service's or model's, which alone can read it.
    """
    extra: Any = message.get("extra")
    kept: Any = cast("Mapping[str, Any]", extra).get(key) if isinstance(extra, Mapping) else None
    if not isinstance(kept, Mapping):
        return None
    found = cast("Mapping[str, Any]", kept)
    return found if found.get("origin", origin) == origin else None
