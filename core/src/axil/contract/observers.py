"""The seven hooks that only listen, frozen into plain callables before a run.

pluggy is the switchboard (see ``hooks``): it finds, orders, checks and blocks implementations. It
is not the wire: when a run starts, ``Observers.freeze`` turns each observer hook into ``None``, a
function, or a short loop, and the run tests ``is None``. An observer that raises is logged with its
plugin's name and dropped for the rest of the run; it never changes the run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pluggy

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "run_started": ("run_id", "plan"),
    "firing_started": ("activation", "kind"),
    "chunk": ("activation", "chunk"),
    "firing_finished": ("activation", "kind", "output"),
    "firing_failed": ("activation", "kind", "error"),
    "firing_skipped": ("activation", "kind"),
    "run_finished": ("run_id", "result"),
}
"""What each tells; ``hooks.Hooks`` says what it means. Plugins may ask for ``run_id`` too."""
OBSERVER_HOOKS = tuple(PARAMETERS)
"""Names of the hooks that only listen."""


class Trusted:
    """An observer of the kernel's own that listens to all hooks with all they tell, and does not
    raise: nothing is put around it.
    """

    __slots__ = ()


class Observers:
    """The observer hooks of one run, each a plain callable or None."""

    __slots__ = OBSERVER_HOOKS

    run_started: Callable[[str, Any], None] | None
    firing_started: Callable[[Any, str], None] | None
    chunk: Callable[[Any, Any], None] | None
    firing_finished: Callable[[Any, str, Any], None] | None
    firing_failed: Callable[[Any, str, BaseException], None] | None
    firing_skipped: Callable[[Any, str], None] | None
    run_finished: Callable[[str, Any], None] | None

    @classmethod
    def freeze(
        cls, hooks: pluggy.PluginManager | None, others: Iterable[Any] = (), run_id: str = ""
    ) -> Observers:
        """Observers of a run from registered plugins, in pluggy's order, then from ``others``:
        objects with methods named like hooks.
        """
        also = list(others)
        self = cls()
        dropped: set[int] = set()
        for name, parameters in PARAMETERS.items():
            calls = [
                _guarded(fn, names, parameters, who, plugin, dropped)
                for fn, names, who, plugin in _listeners(hooks, name, run_id)
            ]
            for other in also:
                method: Any = getattr(other, name, None)
                if isinstance(other, Trusted):
                    calls.append(method)
                elif method is not None:
                    taken = tuple(
                        p for p in inspect.signature(method).parameters if p in parameters
                    )
                    calls.append(
                        _guarded(method, taken, parameters, type(other).__name__, other, dropped)
                    )
            setattr(self, name, _one(calls))
        return self


def _listeners(
    hooks: pluggy.PluginManager | None, name: str, run_id: str
) -> Iterable[tuple[Callable[..., Any], tuple[str, ...], str, Any]]:
    if hooks is not None:
        for implementation in reversed(getattr(hooks.hook, name).get_hookimpls()):
            call, names = implementation.function, implementation.argnames
            if "run_id" in names and "run_id" not in PARAMETERS[name]:
                names = tuple(each for each in names if each != "run_id")
                call = _of_run(call, names, run_id)
            yield call, names, implementation.plugin_name, implementation.plugin


def _of_run(call: Callable[..., Any], names: tuple[str, ...], run_id: str) -> Callable[..., Any]:
    """Return a listener that takes no run id as one that takes it."""

    def listener(*values: Any, **named: Any) -> Any:
        return call(run_id=run_id, **dict(zip(names, values, strict=False)), **named)

    return listener


def _heard(
    call: Callable[..., Any], taken: tuple[str, ...], parameters: tuple[str, ...]
) -> Callable[..., Any]:
    """``call``, which takes some of a hook's parameters, as a function of all of them."""
    if taken == parameters:
        return call
    positions = tuple(parameters.index(name) for name in taken)
    signature = inspect.signature(call).parameters
    if (
        len(taken) == 1
        and next(iter(signature)) in taken
        and signature[taken[0]].kind is not inspect.Parameter.KEYWORD_ONLY
    ):
        (at,) = positions
        return lambda *values: call(values[at])
    return lambda *values: call(
        **{name: values[at] for name, at in zip(taken, positions, strict=True)}
    )


def _guarded(
    call: Callable[..., Any],
    taken: tuple[str, ...],
    parameters: tuple[str, ...],
    who: str,
    plugin: Any,
    dropped: set[int],
) -> Callable[..., None]:
    """``call``, whatever it raises: then it is logged, and its plugin is dropped.

    Every hook has two parameters or three.
    """
    listen = _heard(call, taken, parameters)

    def failed() -> None:
        dropped.add(id(plugin))
        import logging

        logging.getLogger("axil.hooks").exception(
            "observer %s failed and is dropped for the rest of the run", who
        )

    def of_two(one: Any, two: Any) -> None:
        if not dropped or id(plugin) not in dropped:
            try:
                listen(one, two)
            except Exception:  # noqa: BLE001
                # an observer may raise anything: it is logged, and the run goes on
                failed()

    def of_three(one: Any, two: Any, three: Any) -> None:
        if not dropped or id(plugin) not in dropped:
            try:
                listen(one, two, three)
            except Exception:  # noqa: BLE001  # as above
                failed()

    return of_two if len(parameters) == 2 else of_three


def _one(calls: list[Callable[..., None]]) -> Callable[..., None] | None:
    if not calls:
        return None
    if len(calls) == 1:
        return calls[0]

    def all_of_them(*values: Any) -> None:
        for call in calls:
            call(*values)

    return all_of_them


NO_OBSERVERS = Observers.freeze(None)
"""The observers of a run that nothing listens to."""
