"""Functions that were written for DevAll, as tools: a parameter ``_context`` is filled with what a
run has of it, and ``ParamMeta(description=…)`` describes a parameter.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import typing
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from axil.plugin import signature_of
from axil_files.checkout import Checkout

_CONTEXT: Final = "_context"
_CTX: Final = "ctx"
_OF_RUN: Final = (_CONTEXT, _CTX)
"""The parameters that a run fills, and no model is shown."""


def adapted(function: Any, checkout: Checkout) -> Any:
    """Return a tool that is called as axil calls one; the function itself, if it is one already."""
    if not inspect.isfunction(function):
        return function
    signature = signature_of(function)
    hints = _hints(function, signature)
    described = {name: _described(hint) for name, hint in hints.items()}
    wants, takes_ctx = _CONTEXT in signature.parameters, _CTX in signature.parameters
    if not wants and all(described[name] is hints[name] for name in hints):
        return function

    async def call(*args: Any, ctx: Any, **named: Any) -> Any:
        if wants:
            named[_CONTEXT] = _surroundings(ctx, asyncio.get_running_loop(), checkout)
        if takes_ctx:
            named[_CTX] = ctx
        if inspect.iscoroutinefunction(function):
            return _plain(await function(*args, **named))
        return _plain(await asyncio.to_thread(function, *args, **named))

    shown = [each for name, each in signature.parameters.items() if name not in _OF_RUN]
    context = inspect.Parameter(_CTX, inspect.Parameter.KEYWORD_ONLY)
    made = cast("Any", call)
    made.__name__, made.__qualname__ = function.__name__, function.__qualname__
    made.__doc__, made.__module__ = function.__doc__, function.__module__
    made.__annotations__ = described
    parameters = sorted([*shown, context], key=lambda each: each.kind)  # ctx before **more
    made.__signature__ = signature.replace(parameters=parameters)
    return made


def _hints(function: Any, signature: inspect.Signature) -> dict[str, Any]:
    """Return the annotations of what a model is shown, each by itself: one that names what only
    type checkers know is left as it is written, and said where it is used.
    """
    written = {p.name: p.annotation for p in signature.parameters.values() if p.name not in _OF_RUN}
    written["return"] = signature.return_annotation
    hints = {name: each for name, each in written.items() if each is not signature.empty}
    own = inspect.unwrap(function)
    for name, each in hints.items():
        one = SimpleNamespace(
            __annotations__={name: each},
            __globals__=own.__globals__,
            __type_params__=getattr(own, "__type_params__", ()),
        )
        with suppress(NameError, TypeError, AttributeError):
            hints[name] = typing.get_type_hints(one, include_extras=True)[name]
    return hints


def as_processor(function: Any) -> Any:
    """Return a processor that gives plain data where it gave a message of DevAll's own."""
    if not inspect.isfunction(function):
        return function

    @functools.wraps(function)
    def process(*args: Any, **named: Any) -> Any:
        return _plain(function(*args, **named))

    return process


def _described(hint: Any) -> Any:
    """``Annotated[int, ParamMeta(description="…")]`` → ``Annotated[int, "…"]``; others as they
    are.
    """
    if typing.get_origin(hint) is not typing.Annotated:
        return hint
    inner, *notes = typing.get_args(hint)
    if not any(type(each).__name__ == "ParamMeta" for each in notes):
        return hint
    lines: list[Any] = []
    for each in notes:
        if type(each).__name__ != "ParamMeta":
            lines.append(each)
            continue
        choices: Any = getattr(each, "enum", None)
        if choices:
            inner = typing.Literal[tuple(choices)]
        lines += [each.description] if getattr(each, "description", None) else []
    annotated: Any = typing.Annotated
    return annotated[(inner, *lines)] if lines else inner


def _surroundings(ctx: Any, loop: asyncio.AbstractEventLoop, checkout: Checkout) -> dict[str, Any]:
    """Return the ``_context`` of DevAll's functions."""
    found: dict[str, Any] = {
        "node_id": ctx.activation.node,
        "session_id": ctx.run_id,
        "human_prompt": _Prompt(ctx, loop),
    }
    if ctx.workspace is not None:
        workspace = Path(ctx.workspace)
        found |= {"python_workspace_root": workspace, "graph_directory": str(workspace)}
        module = checkout.beside("utils.attachments")
        store: Any = getattr(module, "AttachmentStore", None)
        if store is not None:
            found["attachment_store"] = store(workspace / "attachments")
    return found


class _Prompt:
    """Questions to a person, from the thread in which a function runs."""

    def __init__(self, ctx: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._ctx, self._loop = ctx, loop

    def request(self, *, inputs: Any = "", task_description: str = "", **_: Any) -> Any:
        """Ask, and wait for the answer."""
        asking = self._ctx.ask(str(inputs or task_description))
        answer = asyncio.run_coroutine_threadsafe(asking, self._loop).result()
        return SimpleNamespace(text=str(answer), blocks=[], metadata={})


def _plain(value: Any) -> Any:
    """Return a function's result without objects of DevAll's own, which say themselves as data."""
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    say: Any = None if isinstance(value, dict) else getattr(value, "to_dict", None)
    return say() if callable(say) else cast("Any", value)
