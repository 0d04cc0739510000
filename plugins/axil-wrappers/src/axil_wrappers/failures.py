"""The selection of failures: by class, by status, by text, or by whether a repetition may help."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field

from axil import (
    AxilError,
    ConfigError,
    LimitReached,
    NodeFailed,
    PluginError,
    RunCancelled,
    RunPaused,
    SpecError,
    StateError,
)
from axil.plugin import BodyError, JournalError, KernelBug, RouteError, did_you_mean
from axil_wrappers.inside import Settings

NEVER = (LimitReached, RunPaused, RunCancelled, KernelBug)
"""Signals of the run that nothing catches; cancellation and pauses are no ``Exception``."""

LASTING = (
    SpecError,
    ConfigError,
    PluginError,
    StateError,
    BodyError,
    RouteError,
    JournalError,
    TypeError,
    NameError,
    AttributeError,
    ImportError,
    LookupError,
    SyntaxError,
    NotImplementedError,
    RecursionError,
    MemoryError,
)
"""Mistakes in a graph, a setting or a program: they are there again next time."""

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""HTTP statuses after which a repetition may help."""

_DEEPEST = 20


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error that a node failed with, and its causes."""
    seen = 0
    current: BaseException | None = error
    while current is not None and seen < _DEEPEST:
        if not isinstance(current, NodeFailed):
            yield current
        current, seen = current.__cause__, seen + 1


def is_own(error: BaseException) -> bool:
    """Return whether the failure is a signal of the run itself."""
    return any(isinstance(each, NEVER) for each in chain(error))


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error, or what it was raised from, tells of."""
    for each in chain(error):
        for holder in (each, getattr(each, "response", None)):
            for name in ("status", "status_code"):
                value = getattr(holder, name, None)
                if type(value) is int:
                    return value
    return None


def retry_after_of(error: BaseException) -> float | None:
    """Return the seconds to wait in an error's ``retry_after_seconds`` or ``retry_after``."""
    for each in chain(error):
        for name in ("retry_after_seconds", "retry_after"):
            value: Any = getattr(each, name, None)
            if isinstance(value, (int, float)) and type(value) is not bool and value >= 0:
                return float(value)
    return None


def may_pass(error: BaseException) -> bool:
    """Return whether a repetition may help: by the error's own ``transient``, by its status, else
    unless it is a mistake.
    """
    for each in chain(error):
        transient = getattr(each, "transient", None)
        if type(transient) is bool:
            return transient
    status = status_of(error)
    if status is not None:
        return status in PASSING
    return not any(isinstance(each, LASTING) for each in chain(error))


def describe_failure(error: BaseException) -> str:
    """Return an error as one line for people."""
    first = next(chain(error), error)
    name, text = type(first).__name__, str(first)
    if not text or isinstance(first, AxilError):
        return text or name
    return f"{name}: {text}"


# --------------------------------------------------------------------------------------------------


def _known() -> set[str]:
    names = {
        name
        for name, kind in vars(builtins).items()
        if isinstance(kind, type) and issubclass(kind, Exception)
    }
    return names | {kind.__name__ for kind in _derived(AxilError) if _is_bare(kind)}


def _derived(kind: type[Exception]) -> Iterator[type[Exception]]:
    """Yield ``kind`` and all classes derived from it that are loaded."""
    yield kind
    for each in kind.__subclasses__():
        yield from _derived(each)


def _is_bare(kind: type) -> bool:
    """Return whether a class is known by its name alone: Python's, or one of axil's errors."""
    return kind.__module__ in ("builtins", AxilError.__module__)


def _named(given: str | type[Exception] | Collection[str | type[Exception]]) -> Any:
    """Return names of error classes, from a name, a class, or several. Raises: ValueError."""
    several = isinstance(given, (list, tuple, set, frozenset))
    return tuple(_name(item) for item in (cast("Any", given) if several else [given]))


def _name(item: Any) -> str:
    if isinstance(item, type) and issubclass(item, BaseException):
        if not issubclass(item, Exception) or issubclass(item, NEVER):
            raise ValueError(f"{item.__name__} belongs to the run itself and is never caught")
        return item.__name__ if _is_bare(item) else f"{item.__module__}.{item.__qualname__}"
    if not isinstance(item, str) or not item:
        raise ValueError(f"expected the name of an error class, found {item!r}")
    if item in {kind.__name__ for kind in NEVER} | {"CancelledError", "Pause", "BaseException"}:
        raise ValueError(f"{item} belongs to the run itself and is never caught")
    if "." not in item and item not in _known():
        hint = (
            did_you_mean(item, _known())
            or f'For a class of another module write "module.{item}", or "*.{item}" for any.'
        )
        raise ValueError(f'"{item}" is neither a built-in error nor one of axil\'s. {hint}')
    return item


def is_kind(error: BaseException, name: str) -> bool:
    """Tell whether an error, or one that it was raised from, is of the class ``name``, or below.

    ``Name``: built-in, or axil's; ``module.Name``: of that module or one inside it; ``*.Name``: of
    any.

    >>> (
    ...     is_kind(ConnectionResetError(), "OSError"),
    ...     is_kind(ValueError(), "*.ValueError"),
    ...     is_kind(ValueError(), "json.ValueError"),
    ... )
    (True, True, False)
    """
    module, _, last = name.rpartition(".")
    return any(_fits(kind, module, last) for each in chain(error) for kind in type(each).__mro__)


def _fits(kind: type, module: str, name: str) -> bool:
    if kind.__name__ != name and kind.__qualname__ != name:
        return False
    if module == "*":
        return True
    if not module:
        return _is_bare(kind)
    return kind.__module__ == module or kind.__module__.startswith(f"{module}.")


Names = Annotated[tuple[str, ...], BeforeValidator(_named)]


class Failures(Settings):
    """The selection of failures.

    Where none of ``on``, ``on_status``, ``on_text`` is given: those that may pass.
    """

    on: Names = Field(
        (),
        description="Error classes: built-in, axil's, module.Class, or *.Class; subclasses are "
        "included.",
    )
    on_status: tuple[int, ...] = Field((), description="HTTP statuses of errors.")
    on_text: tuple[str, ...] = Field(
        (), description="Texts that an error's message contains; upper and lower case are equal."
    )
    not_on: Names = Field(
        (), description="Error classes that are excluded, even where another rule matches."
    )

    def selects(self, error: BaseException, usual: bool | None = None) -> bool:
        """Return whether this failure is selected.

        ``usual``: the answer where no rule is given; None: whether a repetition may help.
        """
        if (
            not isinstance(error, Exception)
            or is_own(error)
            or any(is_kind(error, name) for name in self.not_on)
        ):
            return False
        if not (self.on or self.on_status or self.on_text):
            return may_pass(error) if usual is None else usual
        if any(is_kind(error, name) for name in self.on) or status_of(error) in self.on_status:
            return True
        texts = [str(each).lower() for each in chain(error)] if self.on_text else []
        return any(part.lower() in text for part in self.on_text for text in texts)
