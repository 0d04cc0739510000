"""Selectors: which nodes and edges a rule is for, by type, by name, by a predicate."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["SelectionTarget", "Selector", "build_selector"]


@dataclass(frozen=True, slots=True)
class SelectionTarget:
    """The subject of a selector: an object, or the name and class of one to be made."""

    name: str | None
    cls: type | None
    obj: Any = None

    @classmethod
    def from_obj(cls, obj: object) -> SelectionTarget:
        """Describe an object."""
        return cls(getattr(obj, "name", None), type(obj), obj)


class Selector:
    """A choice of nodes and edges; all that is said has to hold."""

    def __init__(
        self,
        *,
        type_filter: Any = None,
        name_filter: Any = None,
        predicate: Callable[[SelectionTarget], bool] | None = None,
    ) -> None:
        """Take what is chosen.

        Args:
            type_filter: a class, or several.
            name_filter: a name, several, a compiled pattern, or a function of the name.
            predicate: a function of the ``SelectionTarget``.
        """
        self.type_filter = type_filter
        self.name_filter = name_filter
        self.predicate = predicate

    def match(self, obj: object) -> bool:
        """Say whether an object is chosen."""
        return self._match(SelectionTarget.from_obj(obj))

    def match_declaration(self, *, name: str | None, cls: type | None) -> bool:
        """Say whether an object of this name and class would be chosen."""
        return self._match(SelectionTarget(name, cls))

    def _match(self, target: SelectionTarget) -> bool:
        if self.type_filter is not None and (
            target.cls is None or not issubclass(target.cls, self.type_filter)
        ):
            return False
        if self.name_filter is not None and not _named(self.name_filter, target.name):
            return False
        return self.predicate is None or bool(self.predicate(target))


def _named(wanted: Any, name: str | None) -> bool:
    if name is None:
        return False
    if isinstance(wanted, str):
        return wanted == name
    if hasattr(wanted, "search"):
        return wanted.search(name) is not None
    if callable(wanted):
        return bool(wanted(name))
    return name in cast("Collection[str]", wanted)


def build_selector(
    selector: Selector | None = None,
    *,
    type_filter: Any = None,
    name_filter: Any = None,
    predicate: Callable[[SelectionTarget], bool] | None = None,
) -> Selector:
    """Give the selector, or make one of the filters."""
    return selector or Selector(
        type_filter=type_filter, name_filter=name_filter, predicate=predicate
    )
