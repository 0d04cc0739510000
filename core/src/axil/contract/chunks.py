"""Chunks of replies without secrets, also of those that arrive in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from axil.kernel.tokens import Activation
from axil.secrecy import has_secrets, shown_and_held, without_secrets

_TEXT: Final = "text"


class ChunkCover:
    """A receiver of chunks before another one, which is given them without the secrets of this
    process.

    The end of a text that may be the beginning of a secret is held back until more of it comes: it
    is given at the head of the next text, or by itself before anything else.
    """

    __slots__ = ("_firings", "_receive")

    def __init__(self, receive: Callable[[Activation, object], None]) -> None:
        self._receive = receive
        self._firings: dict[object, _Shown] = {}

    def __call__(self, activation: Activation, chunk: object, /) -> None:
        shown = self._firings.get(activation)
        if shown is None:
            if not has_secrets():
                self._receive(activation, chunk)
                return
            shown = self._firings[activation] = _Shown()
        for each in shown.given(chunk):
            self._receive(activation, each)

    def before(self, call: Callable[..., None] | None) -> Callable[..., None]:
        """Return the receiver of a firing's end, which first gives what is held back of it."""

        def ended(activation: Activation, *values: object) -> None:
            if self._firings and (shown := self._firings.pop(activation, None)) is not None:
                for each in shown.rest():
                    self._receive(activation, each)
            if call is not None:
                call(activation, *values)

        return ended


class _Shown:
    """The text of one firing that is held back, and the count of its chunks."""

    __slots__ = ("_count", "_held", "_more", "_of")

    def __init__(self) -> None:
        self._held, self._of = "", None
        """The text that is held back, and the chunk that it is of."""
        self._count = 0
        """The chunks of the firing that count."""
        self._more: list[int] = []
        """The positions of further chunks, which gave what was held back: behind how many."""

    def given(self, chunk: Any) -> Iterator[object]:
        """Yield what is shown for a chunk."""
        whole, (text, kind) = chunk, _text_of(chunk)
        if kind == "reset":
            yield self._reset(chunk)
            return
        if text is None:
            yield from self.rest()
            yield without_secrets(whole) if isinstance(chunk, (Mapping, list, tuple)) else chunk
        else:
            if self._held and _text_of(self._of)[1] != kind:
                yield from self.rest()
            said, self._held = shown_and_held(self._held + text)
            self._of = chunk
            yield chunk if said == text else _with_text(chunk, said)
        self._count += kind != "retry"

    def rest(self) -> Iterator[object]:
        """Yield what is held back."""
        if self._held:
            held, self._held = self._held, ""
            self._more.append(self._count)
            yield _with_text(self._of, without_secrets(held))

    def _reset(self, chunk: Mapping[str, Any]) -> object:
        """Return a reset, which counts what was shown beside the firing's own chunks."""
        self._held, taken = "", int(chunk.get("chunks") or 0)
        self._count = max(0, self._count - taken)
        more = [at for at in self._more if at > self._count]
        self._more = self._more[: len(self._more) - len(more)]
        return {**chunk, "chunks": taken + len(more)} if more else chunk


def _text_of(chunk: object) -> tuple[str | None, str]:
    """Return the text that a chunk adds to, None: it is whole by itself; and its kind."""
    if isinstance(chunk, str):
        return chunk, ""
    if not isinstance(chunk, Mapping):
        return None, ""
    data = cast("Mapping[str, Any]", chunk)
    kind, text = str(data.get("kind", "")), data.get(_TEXT)
    return (text if isinstance(text, str) else None), kind


def _with_text(chunk: Any, text: str) -> object:
    return text if isinstance(chunk, str) else {**chunk, _TEXT: text}


__all__ = ["ChunkCover"]
