"""Citations: from the blocks that a model was shown to the sources that its answer names.

Blocks are numbered in the prompt; ``[2]`` in an answer names the second. What is cited becomes a
part ``{"type": "citation", "number": 2, "url": …, "title": …, "text": …}`` of the node's output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, cast

from axil_models import ContextBlock, citation, plain_data

CITATIONS: Final = "citations"
"""The field that holds them."""
SOURCES: Final = "sources"
"""The entry of what ``retrieve_context`` gives that holds its blocks as sources."""
HEADING: Final = "[Context: cite what you use by its number, as [1]]"
_EXCERPT: Final = 300
"""Characters of a block's text that a citation repeats."""
_PLACES: Final = ("path", "page", "heading", "attachment", "start", "end")
_NUMBERS: Final = re.compile(r"\[(\d{1,4}(?:, ?\d{1,4}){0,20})\]")

Source = dict[str, Any]

_noted: ContextVar[list[Source] | None] = ContextVar("axil_agent_sources", default=None)


@contextmanager
def noting_sources() -> Generator[list[Source]]:
    """Within the ``with``, blocks that a prompt numbers are noted in the list."""
    sources: list[Source] = []
    token = _noted.set(sources)
    try:
        yield sources
    finally:
        _noted.reset(token)


def note_sources(sources: Sequence[Source]) -> None:
    """Note the blocks that a prompt numbers."""
    noted = _noted.get()
    if noted is not None:
        noted[:] = sources


def numbers_from() -> int:
    """Return the number of the next block that the model is shown."""
    return len(_noted.get() or ()) + 1


def note_found(content: Any) -> None:
    """Note the blocks that the model has asked for, as a result of ``retrieve_context`` has them;
    also one that was recorded.
    """
    noted = _noted.get()
    if noted is None:
        return
    parts = [{"text": content}] if isinstance(content, str) else content
    found: Any = None
    with suppress(ValueError, RecursionError):  # it failed, and said so
        data: Any = json.loads(parts[0].get("text") or "{}" if parts else "{}")
        found = cast("Mapping[str, Any]", data).get(SOURCES) if isinstance(data, Mapping) else None
    if isinstance(found, list) and all(map(_is_source, cast("list[object]", found))):
        noted += found  # else it is of another tool of this name


def _is_source(given: object) -> bool:
    source = cast("Mapping[str, object]", given if isinstance(given, Mapping) else {})
    return type(source.get("number")) is int


def source_of(number: int, label: str, block: ContextBlock) -> Source:
    """Return a block as what may be cited."""
    places = {name: block.metadata[name] for name in _PLACES if name in block.metadata}
    made = citation(url=block.uri, title=block.title, text=block.text[:_EXCERPT])
    more = {"chunk_id": block.chunk_id, "metadata": plain_data(places)}
    return {**made, "number": number, "provider": label, **{k: v for k, v in more.items() if v}}


def citations_of(given: object, sources: Sequence[Source]) -> list[Source]:
    """Return the sources whose numbers are in the texts of an answer, in their order there.

    >>> ferns, moss = {"number": 1, "url": "ferns.md"}, {"number": 2, "url": "moss.md"}
    >>> citations_of({"text": "It drinks [2], ferns too [1, 2][9]."}, [ferns, moss])
    [{'number': 2, 'url': 'moss.md'}, {'number': 1, 'url': 'ferns.md'}]
    """
    known = {source["number"]: source for source in sources}
    numbers = [
        int(number)
        for text in _texts(given)
        for found in _NUMBERS.finditer(text)
        for number in found[1].split(",")
    ]
    return [known[number] for number in dict.fromkeys(numbers) if number in known]


def _texts(given: object) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping):
        for each in cast("Mapping[object, object]", given).values():
            yield from _texts(each)
    elif isinstance(given, (list, tuple)):
        for each in cast("Sequence[object]", given):
            yield from _texts(each)
