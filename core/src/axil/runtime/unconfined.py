"""Objects of a run's caller, used outside of the confinement of the run's file."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from axil.contract.observers import OBSERVER_HOOKS, Observers
from axil.settings.grants import Grants, granted

if TYPE_CHECKING:
    from axil.runtime.result import Options

T = TypeVar("T")


class _Unconfined:
    """An object whose methods are called, and awaited, outside of all confinement."""

    __slots__ = ("_of",)

    def __init__(self, of: object) -> None:
        self._of = of

    def __getattr__(self, name: str) -> object:
        with granted(None):
            value = getattr(self._of, name)
        return unconfined_call(value) if callable(value) else value


def unconfined(given: T) -> T:
    """Return ``given``, or None, as an object that is used outside of all confinement."""
    return given if given is None else cast("T", _Unconfined(given))


def unconfined_call(call: Callable[..., object]) -> Callable[..., Any]:
    """Return a function as one that is called, and awaited, outside of all confinement."""

    @functools.wraps(call, updated=())
    def called(*given: object, **named: object) -> Any:
        with granted(None):
            out = call(*given, **named)
        return _awaited(out) if inspect.isawaitable(out) else out

    return called


async def _awaited(given: Awaitable[object]) -> object:
    with granted(None):
        return await given


def unconfined_options(options: Options, grants: Grants) -> Options:
    """Return the options of a run that is confined to ``grants``, with what they hold unconfined.

    The run's workspace is open to the file's components.
    """
    if options.workspace is not None:
        grants.declared.folders.add(str(options.workspace.resolve()))
    return replace(
        options,
        channel=unconfined(options.channel),
        clock=unconfined(options.clock),
        executor=unconfined(options.executor),
    )


def unconfine_observers(observers: Observers) -> Observers:
    """Have the observers of a confined run called outside of its confinement."""
    for name in OBSERVER_HOOKS:
        if (call := getattr(observers, name)) is not None:
            setattr(observers, name, unconfined_call(call))
    observers.receivers = {
        kind: unconfined_call(call) for kind, call in observers.receivers.items()
    }
    return observers
