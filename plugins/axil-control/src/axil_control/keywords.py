"""Settings of ``axil_control`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from axil_control.parts import Split


class MapKeywords(TypedDict, total=False):
    """The settings of ``Map``; see ``MapConfig``."""

    over: str
    """The field that holds the list of items: of what comes in, else of the state. Empty: messages
    are the items.
    """

    item: str
    """With over: the field in which the node gets its item; empty: the same name."""

    split: Split | str | Mapping[str, object] | None
    """What an item is: message, regex or json_path."""

    max_parallel: int
    """Items at work at the same time."""

    max_items: int
    """The largest number of items of one firing. A map in a cycle may multiply them in each round.
    """

    edges: Sequence[str] | None
    """Nodes whose messages hold the items; those of others are put before each item. Without it:
    all messages.
    """


class TreeKeywords(TypedDict, total=False):
    """The settings of ``Tree``; see ``TreeConfig``."""

    over: str
    """The field that holds the list of items: of what comes in, else of the state. Empty: messages
    are the items.
    """

    item: str
    """With over: the field in which the node gets its item; empty: the same name."""

    split: Split | str | Mapping[str, object] | None
    """What an item is: message, regex or json_path."""

    max_parallel: int
    """Items at work at the same time."""

    max_items: int
    """The largest number of items of one firing. A map in a cycle may multiply them in each round.
    """

    edges: Sequence[str] | None
    """Nodes whose messages hold the items; those of others are put before each item. Without it:
    all messages.
    """

    group_size: int
    """Items that one firing takes together."""
