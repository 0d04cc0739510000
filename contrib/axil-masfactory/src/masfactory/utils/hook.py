"""Hooks: functions that are called around what a node does."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

__all__ = ["HookManager", "HookStage", "masf_hook"]


class HookStage:
    """A stage of a node's work, with a key for before it, after it and its failure."""

    def __init__(self, stage_name: str) -> None:
        self.name = stage_name
        self.BEFORE = (stage_name, "before")
        self.AFTER = (stage_name, "after")
        self.ERROR = (stage_name, "error")

    def __repr__(self) -> str:
        return f"<HookStage: {self.name}>"


class HookManager:
    """The hooks of one node or edge, by key."""

    def __init__(self) -> None:
        self._hooks: dict[Any, list[Callable[..., Any]]] = defaultdict(list)

    def register(self, hook_key: Any, func: Callable[..., Any]) -> None:
        """Add a hook."""
        self._hooks[hook_key].append(func)

    def dispatch(self, hook_key: Any, *args: Any, **kwargs: Any) -> None:
        """Call the hooks of a key, in the order in which they were added.

        What one raises is raised here, and ends the run.
        """
        for func in list(self._hooks.get(hook_key, ())):
            func(*args, **kwargs)

    def has(self, hook_key: Any, func: Callable[..., Any] | None = None) -> bool:
        """Say whether a key has hooks, or this one."""
        hooks = self._hooks.get(hook_key, [])
        return bool(hooks) if func is None else func in hooks

    def has_any(self, *keys: Any) -> bool:
        """Say whether any of the keys has hooks."""
        return any(self._hooks.get(key) for key in keys)


_inside: ContextVar[frozenset[tuple[int, str]]] = ContextVar(
    "masfactory_stages", default=frozenset()
)
"""Objects and the stages of theirs that are under way here."""


def masf_hook(stage_obj: HookStage) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call the hooks of a stage around a method of an object that has ``hooks``.

    Within the same stage of the same object the hooks are called once: a method that calls its
    overridden one is one stage.
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
            hooks: HookManager = self.hooks
            stage = (id(self), stage_obj.name)
            if stage in _inside.get():
                return method(self, *args, **kwargs)
            token = _inside.set(_inside.get() | {stage})
            try:
                hooks.dispatch(stage_obj.BEFORE, self, *args, **kwargs)
                try:
                    result = method(self, *args, **kwargs)
                except Exception as error:
                    hooks.dispatch(stage_obj.ERROR, self, error, *args, **kwargs)
                    raise
                hooks.dispatch(stage_obj.AFTER, self, result, *args, **kwargs)
            finally:
                _inside.reset(token)
            return result

        hooked.__dict__["stage"] = stage_obj.name
        return hooked

    return decorate
