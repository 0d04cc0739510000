"""The attributes of a node while it works: its own and those that it sees, in one dict."""

from __future__ import annotations

from collections.abc import Generator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, cast

Keys = Mapping[str, Any] | None


@contextmanager
def opened(
    own: MutableMapping[str, Any], view: Any, pull: Keys, push: Keys
) -> Generator[dict[str, Any]]:
    """Give a dict of both; at the end, what was changed in it is written.

    A name that the node writes goes into ``view``, axil's; every name stays in ``own``, as in
    MASFactory, where a node may set any attribute and keeps it for its next firing.
    """
    store = {**own, **view}
    before = {name: _apart(value) for name, value in store.items()}
    first = dict(store)
    yield store
    for name, value in store.items():
        is_same = name in first and value is first[name] and _is_like(value, before[name])
        if not is_same and _writes(name, view, pull, push):
            view[name] = value
    own.update(store)


def _writes(name: str, view: Mapping[str, Any], pull: Keys, push: Keys) -> bool:
    """Return whether a node of these keys writes an attribute."""
    named = pull if push is None else push
    return name in (view if named is None else named)


def _apart(value: Any) -> Any:
    """Return a copy of lists, dicts and sets; anything else as it is."""
    if isinstance(value, dict):
        return {key: _apart(each) for key, each in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_apart(each) for each in cast("list[Any]", value)]
    return set(cast("set[Any]", value)) if isinstance(value, set) else value


def _is_like(value: Any, before: Any) -> bool:
    """Return whether a value is as it was; objects are compared by identity alone."""
    if isinstance(value, dict):
        now = cast("dict[Any, Any]", value)
        return now.keys() == before.keys() and all(_is_like(now[k], before[k]) for k in now)
    if isinstance(value, list):
        several = cast("list[Any]", value)
        return len(several) == len(before) and all(map(_is_like, several, before))
    return value == before if isinstance(value, set) else value is before
