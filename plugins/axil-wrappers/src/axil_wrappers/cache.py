"""``cache``: keeps outcomes of a node, and gives them again for equal inputs.

Theory of operation
-------------------
The key is a digest of all that the outcome may depend on: what came in, what the node sees of the
state, its own state if that is to count, and the node itself: type, config, rules, the keys of its
out-edges, the wrappers around it. The whole outcome is kept, in the journal's plain form; what that
form cannot hold exactly is not kept. While one firing works on a key, equal ones wait for it; if it
fails, the next one takes its place.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import logging
import os
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Unpack, cast
from weakref import WeakKeyDictionary

from pydantic import Field

from axil import AxilError, Context, EdgeSpec, GraphSpec, NodeSpec, Out, Problem, SpecError
from axil.plugin import (
    ENTRY,
    EXIT,
    Body,
    Changes,
    LoopLocal,
    NodeInfo,
    SubgraphBody,
    Task,
    WritePath,
    current_grants,
    fold_payloads,
    kept_field,
    local_field,
)
from axil_journals import decode_delta, decode_value, encode_delta, encode_value
from axil_wrappers.inside import Around, Settings, Wrapper
from axil_wrappers.store import FolderStore, MemoryStore

if TYPE_CHECKING:
    from axil_wrappers.keywords import CacheKeywords

log = logging.getLogger("axil_wrappers.cache")

MOST: Final = 1000
"""Outcomes that this process keeps in memory, of all nodes together."""


class CacheConfig(Settings):
    """The parts of the key, and the place of outcomes."""

    directory: WritePath | None = Field(
        None,
        description="The folder of the stored outcomes; without it they are kept in this process.",
    )
    ttl_seconds: float | None = Field(
        None, gt=0, description="The longest age of a stored outcome, in real time."
    )
    inputs: tuple[str, ...] | None = Field(
        None, description="The input fields that are part of the key; without it all inputs."
    )
    attributes: tuple[str, ...] | None = Field(
        None,
        description="The fields of the state that are part of the key; without it all that the "
        "node sees.",
    )
    local: Literal["refuse", "key", "ignore"] = Field(
        "refuse",
        description="What happens with a node that has attributes of its own: it is not cached, "
        "or they are part of the key, or they are ignored.",
    )
    people: bool = Field(False, description="Also cache answers of people.")
    version: str = Field(
        "", description="A part of the key: change it when the node's behaviour changes."
    )


class Cache(Wrapper[CacheConfig]):
    """The wrapper ``cache``: keeps what a node gave."""

    type = "cache"
    Config = CacheConfig

    if TYPE_CHECKING:

        def __init__(
            self,
            config: CacheConfig | Mapping[str, object] | None = None,
            /,
            **settings: Unpack[CacheKeywords],
        ) -> None: ...

    memory: ClassVar[MemoryStore] = MemoryStore(MOST)
    """The results that this process keeps; ``Cache.memory.clear()`` drops them."""

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        """Raises: SpecError: AX832 the node asks people; AX833 nothing tells its code's versions
        apart; AX117 the folder is outside.
        """
        config = self.config
        if not config.people and _asks_people(body, node):
            message = "the node asks people, and the cache would answer instead of them."
            hint = "Remove the cache, or set people: true."
            raise SpecError(Problem("AX832", node.where, message, hint))
        if config.directory is None:
            return _Kept(body, node, config, self.memory)
        if not config.version and node.spec.use is None:
            message = "the cache cannot see changes of a body written in Python."
            hint = "Set the cache's version, and change it when the code changes."
            raise SpecError(Problem("AX833", node.where, message, hint))
        return _Kept(body, node, config, FolderStore(_folder(config.directory, node)))


def _folder(given: str, node: NodeInfo) -> Path:
    """Return a folder; one that a file names lies beside the file, or below."""
    around = node.setting.folder
    if not around or current_grants() is not None:  # what a file names is confined already
        return Path(given)
    root, folder = os.path.realpath(around), os.path.realpath(os.path.join(around, given))
    if os.path.commonpath([root, folder]) != root:
        message = f"the cache's folder \"{given}\" is outside the workflow file's folder."
        raise SpecError(Problem("AX117", node.where, message, "Use a folder inside it."))
    return Path(folder)


def _asks_people(body: Body, node: NodeInfo) -> bool:
    if node.vertex.lane == "human":
        return True
    scopes = [body]
    while scopes:
        scope = scopes.pop()
        if isinstance(scope, SubgraphBody):
            vertices = scope.plan.graph.vertices
            if any(vertex.lane == "human" for vertex in vertices):
                return True
            scopes += [vertex.body for vertex in vertices]
    return False


_bodies: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_numbers = itertools.count()


def _identity(spec: NodeSpec, config: CacheConfig) -> str:
    """Return what tells a body made in Python from others of this process; empty: its config."""
    if spec.body is None or config.directory is not None:
        return ""
    try:
        return str(_bodies.setdefault(spec.body, next(_numbers)))
    except TypeError:  # it cannot be remembered, so it is like no other
        return str(next(_numbers))


_flights: LoopLocal[dict[str, asyncio.Future[str | None]]] = LoopLocal(dict)
"""On each event loop, the firings at work by their keys."""
_mine: ContextVar[frozenset[str]] = ContextVar("axil_wrappers_flights", default=frozenset())
"""The keys that the current firing computes itself."""


class _Kept(Around):
    """A body whose outcomes are kept."""

    def __init__(
        self, body: Body, node: NodeInfo, config: CacheConfig, store: MemoryStore | FolderStore
    ) -> None:
        super().__init__(body, node)
        self._config, self._store = config, store
        self._schema, self._rules = node.schema, node.rules
        self._own = (local_field(node.name), kept_field(node.name))
        self._is_reported = False
        edges = [
            EdgeSpec(source=ENTRY, target=node.name),
            *(EdgeSpec(source=node.name, target=EXIT, keys=e.keys) for e in node.edges),
        ]
        whole = GraphSpec(
            id="", nodes=(node.spec,), edges=tuple(edges), payload=cast("Any", node.payload)
        )
        self._self = [whole.digest(), config.version, _identity(node.spec, config)]

    async def run(self, task: Task, ctx: Context) -> Out:
        try:
            digest = self._digest(task)
        except AxilError as error:
            return await self._uncached(task, ctx, f"the input cannot be compared: {error}")
        if digest is None:
            return await self._uncached(task, ctx, "the node has attributes of its own")
        flights = _flights.get()
        while True:
            text = self._store.get(digest, self._config.ttl_seconds)
            if text is not None:
                ctx.note({"kind": "cache", "hit": True})
                return self._decoded(text)
            flight = flights.get(digest)
            if flight is None:
                break
            if digest in _mine.get():  # one cache inside another: it would wait for itself
                return await self.inside(task, ctx)
            await asyncio.wait({flight})
            text = flight.result()
            if text is not None:
                ctx.note({"kind": "cache", "hit": True, "shared": True})
                return self._decoded(text)
        flight = flights[digest] = asyncio.get_running_loop().create_future()
        text = None
        mine = _mine.set(_mine.get() | {digest})
        try:
            ctx.note({"kind": "cache", "hit": False})
            part = ctx.part()
            out = await self.inside(task, part)
            text = self._encoded(out, part, ctx)
            if text is not None:
                self._store.put(digest, text)
            return out
        finally:
            _mine.reset(mine)
            del flights[digest]
            flight.set_result(text)

    async def _uncached(self, task: Task, ctx: Context, why: str) -> Out:
        self._report(ctx, why)
        return await self.inside(task, ctx.part())

    def _report(self, ctx: Context, why: str) -> None:
        ctx.note({"kind": "cache", "hit": False, "refused": why})
        if not self._is_reported:
            self._is_reported = True
            log.warning('node "%s" is not cached: %s', self.node, why)

    # -- the key

    def _digest(self, task: Task) -> str | None:
        """Return the key; None: the node has attributes of its own.

        Raises: JournalError, StateError: a value cannot be written as plain data.
        """
        config = self._config
        kept = {name: task.state[name] for name in self._own if task.state.get(name)}
        if kept and config.local == "refuse":
            return None
        payloads = [token.payload for token in task.tokens]
        came: Any = [encode_value(payload) for payload in payloads]
        if config.inputs is not None:
            fields = fold_payloads(payloads)
            came = {name: encode_value(fields[name]) for name in config.inputs if name in fields}
        mine = encode_value(kept) if kept and config.local == "key" else None
        text = json.dumps(
            [self._self, came, self._seen(task), mine], sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def _seen(self, task: Task) -> Mapping[str, Any]:
        state, rules = task.state, self._rules
        names = [name for name in state if not name.startswith("@")]
        if self._config.attributes is not None:
            names = [name for name in self._config.attributes if name in state]
        elif rules.pull is not None and rules.payload != "state":
            names = [name for name in rules.pull if name in state]
        return encode_delta({name: state[name] for name in names}, self._schema)

    # -- the outcome

    def _encoded(self, out: Out, part: Context, ctx: Context) -> str | None:
        """Return an outcome as text; None: it is not to be kept."""
        if part.has_asked and not self._config.people:
            self._report(ctx, "a person was asked")
            return None
        delta: Mapping[str, Any] = out.delta
        if any(delta.get(name) for name in self._own) and self._config.local != "key":
            if self._config.local == "refuse":
                self._report(ctx, "the node has attributes of its own")
                return None
            delta = {name: value for name, value in delta.items() if name not in self._own}
        try:
            data = {
                "output": encode_value(out.output),
                "delta": encode_delta(delta, self._schema),
                "composed": type(out.delta) is Changes,
                "to": None if out.to is None else sorted(out.to),
            }
        except (AxilError, AttributeError, TypeError, ValueError) as error:
            # a typed field's value need not fit before it is committed
            self._report(ctx, f"the outcome cannot be kept: {error}")
            return None
        return json.dumps(data)

    def _decoded(self, text: str) -> Out:
        data = json.loads(text)
        delta = decode_delta(data["delta"], self._schema)
        to = None if data["to"] is None else frozenset(cast("list[str]", data["to"]))
        return Out(decode_value(data["output"]), Changes(delta) if data["composed"] else delta, to)
