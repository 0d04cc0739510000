"""A provider's prompt cache: the tokens at the front of a request that were at the front of an
earlier one.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from os.path import commonprefix
from typing import Any, Final, NamedTuple, cast

CHARACTERS: Final = 4
"""Of a token."""


class Front(NamedTuple):
    """A request as a provider reads it: tools, the system's text, the conversation, each block of
    it on a line.
    """

    text: str
    marks: tuple[int, ...] = ()
    """The ends of the blocks with a ``cache_control``."""


class PromptCache:
    """The part of a provider that knows the fronts of earlier requests.

    >>> cache = PromptCache()
    >>> cache.asked(Front("You are brief. Why?")), cache.asked(Front("You are brief. How?"))
    ((4, 0), (4, 3))
    """

    def __init__(self, *, marked: bool = False) -> None:
        """``marked``: only what ends at a mark is remembered, as Anthropic does it."""
        self._marked = marked
        self._known: list[str] = []  # sorted: the nearest text has the longest common front

    def asked(self, front: Front) -> tuple[int, int]:
        """Return the tokens of a request, and how many of them it shares with an earlier one;
        remember it.
        """
        text = front.text
        if self._marked:
            read = text[: max(front.marks, default=0)]
            found = [known for known in self._known if read.startswith(known)]
            shared = max(map(len, found), default=0)
            self._known += [text[:mark] for mark in front.marks]
        else:
            at = bisect_left(self._known, text)
            near = self._known[max(at - 1, 0) : at + 1]
            shared = max((shared_front(text, known) for known in near), default=0)
            insort(self._known, text)
        return len(text) // CHARACTERS, shared // CHARACTERS


def shared_front(one: str, other: str) -> int:
    """Return the number of characters that two texts begin with alike.

    >>> shared_front("You are ann.", "You are bob.")
    8
    """
    return len(commonprefix([one, other]))  # noqa: RUF071  # of texts, which are no paths


def front(body: Mapping[str, Any]) -> Front:
    """Return a request of any API, or a plain one of axil, in the order of a provider's cache."""
    lines: list[str] = []
    marks: list[int] = []

    def add(value: Any) -> None:
        lines.append(json.dumps(_unmarked(value), ensure_ascii=False, sort_keys=True) + "\n")
        if isinstance(value, Mapping) and "cache_control" in value:
            marks.append(sum(map(len, lines)))

    for each in (*_several(body.get("tools")), *_several(body.get("system"))):
        add(each)
    for each in _several(body.get("instructions") or body.get("systemInstruction")):
        add(each)
    for each in _several(body.get("messages") or body.get("input") or body.get("contents")):
        if not isinstance(each, Mapping):
            add(each)
            continue
        message = cast("Mapping[str, Any]", each)
        add({name: message[name] for name in message if name not in ("content", "parts")})
        for block in _several(message.get("content") or message.get("parts")):
            add(block)
    return Front("".join(lines), tuple(marks))


def _several(given: Any) -> Sequence[Any]:
    if given is None or given == "":
        return ()
    return cast("Sequence[Any]", given) if isinstance(given, (list, tuple)) else (given,)


def _unmarked(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {name: _unmarked(each) for name, each in items if name != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(each) for each in cast("list[Any]", value)]
    return value
