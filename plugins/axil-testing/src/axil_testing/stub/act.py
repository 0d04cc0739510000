"""The reaction of a scripted service to one request, in any dialect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call."""

    name: str
    arguments: Any = field(default_factory=dict[str, Any])
    """A text is sent as it is, even where it is no JSON."""
    id: str = ""
    sent: Literal["text", "object", "pieces"] = "text"
    """The form of its arguments where it is not the API's own: an object in ``chat``, and whole at
    its beginning in ``messages``; pieces with paths (``partialArgs``) in ``generate``.
    """

    @property
    def text(self) -> str:
        """The arguments as they are sent."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One answer.

    What is given as a share (``break_at``, …) is of its pieces: 0.0 before the first one, 1.0
    behind the last.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thought: str = ""
    """The part of its reasoning that a reasoning model shows."""
    sealed: str = ""
    """The data that it wants back with the reply: encrypted reasoning, a signature."""
    refusal: str = ""
    cited: str = ""
    """The URL of a page that the text is from."""
    image: str = ""
    """An image that it makes: a PNG in base64. ``messages`` has none."""
    audio: str = ""
    """A recording that it makes, in base64; the text is what is said. ``chat`` and ``generate``."""
    own: tuple[Mapping[str, Any], ...] = ()
    """Items, blocks or parts of the provider's own tools, as the API has them, before the text;
    ``chat`` has none.
    """
    finish: str = ""
    """``length`` or ``filter``; ``pause`` in ``messages``; ``expired`` or ``cancelled`` in batches;
    empty: it is complete.
    """
    usage: Mapping[str, float] = field(
        default_factory=lambda: {"input": 11, "output": 7, "cached": 3, "reasoning": 2}
    )
    status: int = 200
    """Anything else: an error."""
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay_seconds: float = 0.0
    """Before it answers."""
    together: int = 1
    """It answers when there have been so many connections at the same time, or after half a minute
    without.
    """
    pause_seconds: float = 0.0
    """Between two pieces."""
    is_strange: bool = False
    """It has numbers where the API has objects and lists of them."""
    is_whole: bool = False
    """It is sent in one piece, as JSON, though a stream was asked for."""
    wait: str = ""
    """The wait that an error asks for in its body, as Google says it: ``17s``."""
    body: Any = None
    """The body of its error, where a service has another one than the API; None: the API's."""
    break_at: float | None = None
    """The connection is dropped."""
    fail_at: float | None = None
    """An event says that it failed, and is the last one."""
    end_at: float | None = None
    """The reply ends properly, but is not whole."""
    garble_at: float | None = None
    """A piece is no JSON."""
    stall_at: float | None = None
    """Nothing more comes until the other side goes."""

    @staticmethod
    def of(given: Act | str | Mapping[str, Any]) -> Act:
        """Return an act from what a test wrote."""
        if isinstance(given, Act):
            return given
        return Act(text=given) if isinstance(given, str) else Act(**given)

    @property
    def words(self) -> list[str]:
        """The text in pieces that together are the text."""
        return pieces(self.text, 8)


def pieces(text: str, most: int) -> list[str]:
    """``text`` in at most ``most`` pieces.

    >>> pieces("abcdef", 3), pieces("", 3)
    (['ab', 'cd', 'ef'], [])
    """
    size = max(1, -(-len(text) // most))
    return [text[at : at + size] for at in range(0, len(text), size)]


def strange(piece: bytes) -> bytes:
    """Return a piece of a stream with numbers in place of the objects and lists in its event.

    >>> strange(event({"type": "a", "items": [{}], "item": {}}))
    b'data: {"type": "a", "items": [7], "item": 7}\\n\\n'
    """
    head, mark, text = piece.decode().partition("data: ")
    if not text.startswith("{"):
        return piece
    data = {
        name: 7 if isinstance(value, dict) else [7] if isinstance(value, list) else value
        for name, value in json.loads(text).items()
    }
    return f"{head}{mark}{json.dumps(data)}\n\n".encode()


def event(data: Any, name: str = "") -> bytes:
    """Return a server-sent event."""
    head = f"event: {name}\n" if name else ""
    words = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{head}data: {words}\n\n".encode()
