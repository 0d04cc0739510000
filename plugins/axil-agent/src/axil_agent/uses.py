"""Components that the settings of a node name, with their faults reported together, by place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from axil import AxilError, ConfigError, Problem, SpecError
from axil.plugin import make_component
from axil_models import name_and_config

if TYPE_CHECKING:
    from axil.plugin import CompileOptions

T = TypeVar("T")


class Parts:
    """The components that a node is made of.

    ``setting``: of the plan; where it says the node's place in a file, problems are reported there.
    """

    def __init__(self, setting: CompileOptions | None) -> None:
        self.problems: list[Problem] = []
        self._place: Any = getattr(setting, "place", None)
        self._registry: Any = getattr(setting, "registry", None)

    def place(self, *keys: str | int) -> Any:
        """Return where a setting is written: a ``Place``, or without a file its keys as text."""
        if self._place is None:
            return ".".join(map(str, keys))
        return self._place.at("config", *keys)

    def where(self, *keys: str | int) -> str:
        """Return ``place`` as text."""
        return str(self.place(*keys))

    def made(self, kind: str, given: Any, *keys: str | int) -> Any:
        """Return a component by its name, what is no name as it is; None: ``problems`` say why."""
        if not isinstance(given, (str, Mapping)):
            return given
        from axil.plugin import default_registry

        name, config = name_and_config(given)
        known = self._registry or default_registry()
        inside = ("config",) if isinstance(given, Mapping) and "config" in given else ()
        return self.attempt(
            lambda: make_component(
                known.resolve(kind, name, self.where(*keys)), config, self.place(*keys, *inside)
            ),
            *keys,
        )

    def attempt(self, ask: Callable[[], T], *keys: str | int) -> T | None:
        """Return the result of ``ask``; record axil errors, those without a place at ``keys``."""
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
        """Return everything that is wrong: a SpecError in a file, else a ConfigError."""
        return (SpecError if self._place is not None else ConfigError)(self.problems)


def listed_or_one(given: T | Sequence[T] | None) -> list[T]:
    """Return one thing, several or none, as a list."""
    if given is None:
        return []
    is_several = isinstance(given, (list, tuple))
    return list(cast("Sequence[T]", given)) if is_several else [cast("T", given)]
