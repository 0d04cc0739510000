"""What context providers have in common: how they are made by name, whose memories are whose, and
what of a turn is remembered.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import decode_config, make_component
from axil_agent.errors import ContextError
from axil_agent.interfaces import ContextBlock, ContextQuery, Embedder, Turn
from axil_agent.values import plain, text_of

Settings = TypeVar("Settings", bound=BaseModel)
Owner = Literal["run", "session", "agent", "user"]
Use = str | dict[str, Any]


class Offered(BaseModel):
    """How a provider is offered: the settings that all of them have."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    context_label: str = Field(
        "", description="What its blocks are labelled with; without one, the component's name."
    )
    passive: bool = Field(True, description="Its blocks go into the prompt.")
    active: bool = Field(False, description="The model may ask it.")


def configured(
    model: type[Settings], config: Settings | None, settings: Mapping[str, Any]
) -> Settings:
    """``config``, or one made of keyword arguments. Raises: ConfigError: as ``decode_config``."""
    return config if config is not None else decode_config(model, settings, model.__name__)


def component(kind: str, given: Any, where: str = "") -> Any:
    """A component: an object as it is; a name, or ``{type: name, …}``, from the registry.

    Raises: as ``resolve`` and ``make_component``.
    """
    if not isinstance(given, (str, Mapping)):
        return given
    from axil.plugin import default_registry

    use = {"type": given} if isinstance(given, str) else dict(cast("Mapping[str, Any]", given))
    name = str(use.pop("type", ""))
    return make_component(
        default_registry().resolve(kind, name, where), use.pop("config", None) or use or None, where
    )


def signed(blocks: Iterable[ContextBlock], provider: str) -> list[ContextBlock]:
    """The blocks, saying who gives them; their metadata is a copy."""
    return [replace(block, metadata={**block.metadata, "provider": provider}) for block in blocks]


async def embedded(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """The vectors of ``texts``.

    Raises: ContextError (AX893): there are not as many as texts, or they differ in length.
    """
    if not texts:
        return []
    vectors = await embedder.embed(list(texts))
    lengths = {len(vector) for vector in vectors}
    expected = embedder.dimensions
    if (
        len(vectors) != len(texts)
        or len(lengths) > 1
        or (expected is not None and lengths != {expected})
    ):
        told = (
            f'the embedder "{embedder.name}" '
            f"gave {len(vectors)} vectors of {sorted(lengths)} numbers"
        )
        raise ContextError(
            "AX893",
            f"{told}; expected {len(texts)} of {expected or 'one length'}.",
            "It is the embedder's fault.",
        )
    return vectors


Result = TypeVar("Result")


class Flight(Generic[Result]):
    """Work that is done by one at a time: who comes meanwhile, from any thread or event loop, waits
    for the same result.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: Future[tuple[str, Any]] | None = None

    async def run(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """What ``work`` gives, or what the work under way gives.

        If the one who works is cancelled, the next one takes it on.
        """
        while True:
            with self._lock:
                mine = self._under_way is None
                future = self._under_way = self._under_way or Future()
            if mine:
                return await self._done(work, future)
            how, value = await asyncio.shield(asyncio.wrap_future(future))
            if how == "failed":
                raise value
            if how == "done":
                return cast("Result", value)

    async def _done(
        self, work: Callable[[], Awaitable[Result]], future: Future[tuple[str, Any]]
    ) -> Result:
        told: tuple[str, Any] = ("abandoned", None)
        try:
            result = await work()
            told = ("done", result)
            return result
        except Exception as error:
            told = ("failed", error)
            raise
        finally:
            with self._lock:
                self._under_way = None
            future.set_result(told)


# --------------------------------------------------------------------------------------------------


def owners(
    namespace: Sequence[Owner], query: ContextQuery, user_field: str = "user"
) -> dict[str, Any]:
    """Whose memories a query is about: metadata that its blocks have, and others' have not.

    Raises: ContextError (AX894): the query does not say: nothing is then read from, or written to,
    a place where others look.
    """
    user = query.attributes.get(user_field, query.inputs.get(user_field))
    known = {
        "run": query.run_id,
        "session": query.session_id,
        "agent": query.node_name or None,
        "user": user,
    }
    for name in namespace:
        if known[name] in (None, ""):
            told = (
                f"memories are kept for each {name}, "
                f"and the query does not say which {name} it is for."
            )
            hint = (
                f'Give "{user_field}" as an input, or pull it.'
                if name == "user"
                else "Leave it out of namespace."
            )
            raise ContextError("AX894", told, hint)
    return {f"owner_{name}": text_of(known[name]) for name in namespace}


def remembered(turn: Turn, what: Literal["turn", "reply"] = "turn") -> str:
    """A turn as the text that is remembered."""
    return (
        turn.reply
        if what == "reply"
        else f"{turn.query.query_text.strip()}\n{turn.reply.strip()}".strip()
    )


def turn_id(turn: Turn) -> str:
    """A name of the turn, the same when a resumed run tells it again."""
    told = [turn.query.run_id, turn.query.session_id, turn.query.node_path, turn.key, turn.reply]
    return hashlib.sha256(
        json.dumps(plain(told), sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    ).hexdigest()[:32]


def turn_of(key: str, value: str, query: ContextQuery | None = None) -> Turn:
    """The turn that ``insert(key, value)`` tells of."""
    try:
        told: Any = json.loads(key)
    except ValueError:
        told = None
    given = cast("dict[str, Any]", told) if isinstance(told, dict) else {"input": {"message": key}}
    inputs: Any = given.get("input")
    fields = (
        cast("dict[str, Any]", inputs) if isinstance(inputs, dict) else {"message": text_of(inputs)}
    )
    text = (
        text_of(next(iter(fields.values())))
        if len(fields) == 1
        else text_of(fields)
        if fields
        else ""
    )
    asked = query or ContextQuery(text, fields)
    number: Any = given.get("turn")
    return Turn(
        query=asked,
        reply=value,
        role_name=str(given.get("role_name") or ""),
        number=number if isinstance(number, int) else 1,
    )
