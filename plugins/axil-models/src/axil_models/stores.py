"""Stores: what keeps vectors, finds the nearest of them, and selects rows by tags."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from axil_models.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a store. All its texts are ASCII without control characters."""

    id: str
    """Its name; a row with the same name is replaced."""
    vector: Sequence[float]
    """Numbers, as many as in every other row of the store; a vector of length 1."""
    data: str = ""
    """The data that a search gives back."""
    tags: Sequence[str] = ()
    """Texts by which rows are selected; at most 200 characters each."""
    mark: str = ""
    """The text that ``marks`` gives back; short."""


class Hit(NamedTuple):
    """A row that a search found."""

    id: str
    data: str
    score: float
    """The cosine; higher is nearer."""


class Store(Protocol):
    """Keeps rows. ``axil.stores``.

    Making it opens nothing; it is opened when it is first used. ``close`` may be missing; after it
    the store is opened again by the next use. Each method may be async. Plain methods are called in
    threads, one at a time; async ones on the event loop, side by side.

    Raises: ContextError: AX911: it cannot be opened, or does not answer; StoreLost.
    """

    def upsert(self, rows: Sequence[Row], /) -> Awaitable[None] | None:
        """Add rows, or replace those of the same ids; no id comes twice."""
        ...

    def search(
        self, vector: Sequence[float], top_k: int, tags: Sequence[str], /
    ) -> Sequence[Hit] | Awaitable[Sequence[Hit]]:
        """Return the ``top_k`` nearest of the rows that have all of ``tags``, nearest first.

        Tags are compared before rows are counted: what lacks one takes no place of what has all.
        """
        ...

    def delete(self, ids: Sequence[str], /) -> Awaitable[None] | None:
        """Delete rows; ids that are not there are passed over."""
        ...

    def marks(self, tags: Sequence[str], /) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        """Return the mark of each row that has all of ``tags``, by id; neither data nor vectors
        are read.
        """
        ...


class StoreLost(ContextError):
    """The rows of a store are gone: its table was deleted, or its server began anew (AX911).

    What was in it is put again, where its source is known.
    """
