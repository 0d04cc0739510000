"""Components that the settings of a node name: made one by one, with their faults reported
together, each at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from axil import AxilError, ConfigError, Problem, SpecError
from axil.plugin import make_component

T = TypeVar("T")


def used(given: Any) -> tuple[str, Any]:
    """Return the name and the settings of a component that is written as its name or as ``{type: …,
    …}``.

    >>> (
    ...     used("history"),
    ...     used({"type": "history", "config": {"k": 3}}),
    ...     used({"type": "history", "k": 3}),
    ... )
    (('history', None), ('history', {'k': 3}), ('history', {'k': 3}))
    """
    use = {"type": given} if isinstance(given, str) else dict(cast("Mapping[str, Any]", given))
    name = str(use.pop("type", ""))
    return name, use.pop("config", None) or use or None


class Parts:
    """The components that a node is made of.

    ``setting``: of the plan; where it says the node's place in a file, problems are reported there.
    """

    def __init__(self, setting: Any) -> None:
        self.problems: list[Problem] = []
        self._place: Any = getattr(setting, "place", None)
        self._registry: Any = getattr(setting, "registry", None)

    def place(self, *keys: str | int) -> Any:
        """Return where a setting is written: a ``Place``, or without a file its keys as text."""
        return (
            self._place.at("config", *keys) if self._place is not None else ".".join(map(str, keys))
        )

    def where(self, *keys: str | int) -> str:
        """Return the same as text."""
        return str(self.place(*keys))

    def made(self, kind: str, given: Any, *keys: str | int) -> Any:
        """Return a component by its name; None: it cannot be had, and ``problems`` say why.

        What is no name is given back.
        """
        if not isinstance(given, (str, Mapping)):
            return given
        from axil.plugin import default_registry

        name, config = used(given)
        known = self._registry or default_registry()
        inside = ("config",) if isinstance(given, Mapping) and "config" in given else ()
        return self.attempt(
            lambda: make_component(
                known.resolve(kind, name, self.where(*keys)), config, self.place(*keys, *inside)
            ),
            *keys,
        )

    def attempt(self, ask: Callable[[], T], *keys: str | int) -> T | None:
        """Return the result of ``ask``; record an axil error that it raises, at the place of these
        keys where it names none.
        """
        try:
            return ask()
        except AxilError as error:
            report: Any = getattr(error, "problems", None) or (getattr(error, "problem", None),)
            if None in report:
                raise
            self.problems += [
                each if each.where else replace(each, where=self.where(*keys)) for each in report
            ]
            return None

    def error(self) -> AxilError:
        """Everything that is wrong, to be raised: a SpecError in a file, else a ConfigError."""
        return (SpecError if self._place is not None else ConfigError)(self.problems)


def listed_or_one(given: T | Sequence[T] | None) -> list[T]:
    """Return one thing, several or none, as a list."""
    if given is None:
        return []
    return (
        list(cast("Sequence[T]", given)) if isinstance(given, (list, tuple)) else [cast("T", given)]
    )
