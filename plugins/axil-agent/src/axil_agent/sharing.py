"""The notes that memories keep in the state: with the node, or in an attribute that agents share.

While a body runs, ``local`` holds both an attribute's new value and what was added to it; when it
ends, the field's reducer says which of them is the delta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from axil.plugin import Log, Message, Task, same_value
from axil_models import ChatMemory, plain_data

if TYPE_CHECKING:
    from axil import Context
    from axil_agent.standalone import StandaloneContext

_SHARED = "@shared"
_GROWING = ("append", "append_messages")


def is_shared(memory: object) -> bool:
    """Return whether agents of one run share the memory by an attribute, as a blackboard."""
    return (
        hasattr(memory, "notes") and hasattr(memory, "keep") and bool(getattr(memory, "share", ""))
    )


def shared_now(name: str, ctx: Context | StandaloneContext) -> list[Any]:
    """Return the values of a shared attribute, with those that this body has added."""
    written = ctx.local.get(_SHARED, {})
    return list(written[name]["whole"] if name in written else held(ctx.state, name))


def held(state: object, name: str) -> Sequence[object]:
    """Return the value of a name in a state, a mapping or an object of its schema."""
    if isinstance(state, Mapping):
        return cast("Mapping[str, Any]", state).get(name) or ()
    return getattr(state, name, None) or ()


def kept(memory: ChatMemory, ctx: Context | StandaloneContext) -> Sequence[Message]:
    """Return the notes that a chat memory was given to keep."""
    if memory.share:
        return shared_now(memory.share, ctx)
    return ctx.kept.get("history", {}).get(memory.label, ())


def keep(
    memory: Any, ctx: Context | StandaloneContext, whole: Sequence[object], new: Sequence[object]
) -> None:
    """Keep ``whole``, the new value of a memory, of which ``new`` was added in this turn."""
    if not memory.share:
        history = ctx.kept.get("history", {})
        grown = _continued(history.get(memory.label), whole)
        ctx.kept["history"] = {**history, memory.label: grown}
        return
    written = ctx.local.get(_SHARED, {})
    before: Mapping[str, Any] = written.get(memory.share, {"new": []})
    shared = {"whole": plain_data(whole), "new": [*before["new"], *new]}
    ctx.local[_SHARED] = {**written, memory.share: shared}


def _continued(before: object, whole: Sequence[object]) -> Log:
    """Return ``whole`` as a log of plain data that continues ``before`` where it can."""
    if type(whole) is Log:
        return whole
    if not isinstance(before, Log) or not 0 < len(before) <= len(whole):
        return Log(plain_data(whole))
    if not all(map(same_value, before.raw(), whole)):
        return Log(plain_data(whole))
    return before.extended(plain_data(whole[len(before) :]))


def shared_values(ctx: Context | StandaloneContext) -> dict[str, object]:
    """Return the new values of shared attributes; they are no longer in ``local``."""
    return {name: written["whole"] for name, written in ctx.local.pop(_SHARED, {}).items()}


def shared_delta(ctx: Context, task: Task) -> dict[str, object]:
    """Return what the body writes to shared attributes, for reducers; it leaves ``local``."""
    delta: dict[str, object] = {}
    if ctx.touched is None:  # nothing was kept: asking for ``local`` would begin to
        return delta
    for name, written in ctx.local.pop(_SHARED, {}).items():
        grows = task.state.schema.of(name).reducer.name in _GROWING
        delta[name] = written["new" if grows else "whole"]
    return delta
