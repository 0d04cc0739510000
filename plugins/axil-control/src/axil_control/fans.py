"""``map`` and ``tree``: a node that runs once per item, side by side, or group by group until one
message is left.

Theory of operation
-------------------
Both are wrappers: they take the place of a node's body and run what they wrap in frames of their
own, one per item, with the item, behind whatever is the same for all, as its input. Each frame
begins with the state at the entry; what comes back is what its items wrote, as one delta in item
order, whatever finished first. An item that asks a person pauses alone; the node pauses when all
others have ended, with the questions of all.

In a tree every group of a layer is such a frame, and what a layer wrote is upstream of the next. As
node types they are the same around a body that is written into their config.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from pydantic import BaseModel, Field, field_validator

from axil import ComponentRef, Context, EdgeSpec, GraphSpec, NodeSpec, Out, State
from axil.plugin import (
    ENTRY,
    EXIT,
    Body,
    CompileOptions,
    Message,
    Mode,
    NodeInfo,
    Plan,
    SubRunResult,
    Task,
    as_messages,
    gather_messages,
    refers_to,
)
from axil_control.errors import InputError
from axil_control.parts import ByMessage, Split
from axil_control.subgraph import surroundings

MOST_LAYERS: Final = 100
"""Layers after which a tree that is not coming to an end is given up."""


class MapConfig(BaseModel, extra="forbid", frozen=True):
    """The items, and how many run at a time."""

    split: Split = Field(
        default_factory=ByMessage, description="What an item is: message, regex or json_path."
    )
    max_parallel: int = Field(default=10, ge=1, description="Items at work at the same time.")
    edges: tuple[str, ...] | None = Field(
        default=None,
        description="Nodes whose messages hold the items; those of others are put before each "
        "item. Without it: all messages.",
    )

    def items(self, messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
        """Return the value that all items share, and the items. Raises: InputError."""
        mine = [self.edges is None or m.get("source") in self.edges for m in messages]
        static = [m for m, is_mine in zip(messages, mine, strict=True) if not is_mine]
        return static, [
            item
            for m, is_mine in zip(messages, mine, strict=True)
            if is_mine
            for item in self.split.items(m)
        ]


class TreeConfig(MapConfig, frozen=True):
    """The items, and how many become one."""

    group_size: int = Field(default=3, ge=2, description="Messages that one firing takes together.")


class Map:
    """The wrapper ``map``: one firing per item, and what they gave in the order of the items."""

    Config = MapConfig

    def __init__(self, config: MapConfig | None = None) -> None:
        self.config = config or MapConfig()

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        return _Fanned(node, self.config, self._run)

    async def _run(self, fan: _Fan, static: list[Message], items: list[Message]) -> list[Message]:
        return await fan.layer([[*static, item] for item in items])


class Tree:
    """The wrapper ``tree``: one firing per group of messages, and again over what they gave, until
    one message is left.

    What is the same for all goes into the first layer only. Every item is worked on, a single one
    too.
    """

    Config = TreeConfig

    def __init__(self, config: TreeConfig | None = None) -> None:
        self.config = config or TreeConfig()

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        return _Fanned(node, self.config, self._run)

    async def _run(self, fan: _Fan, static: list[Message], items: list[Message]) -> list[Message]:
        size, messages = self.config.group_size, items
        for layer in range(MOST_LAYERS):
            groups = [messages[at : at + size] for at in range(0, len(messages), size)]
            gave = await fan.layer([[*static, *group] for group in groups], layer)
            messages = [{**m, "role": "user", "source": fan.node} for m in gave]
            static = []
            if len(messages) < 2:
                return messages
        raise InputError(
            "AX631",
            f"the tree has {len(messages)} messages after {MOST_LAYERS} layers; "
            "it does not come down to one.",
            "Let the node give fewer messages than it takes.",
        )


class _Fanned:
    """The body of a node that runs once per item."""

    mode: Mode = "async"
    wants_ctx = True

    def __init__(self, node: NodeInfo, config: MapConfig, run: Any) -> None:
        self._name, self._config, self._run = node.name, config, run
        self._plan = node.single()

    async def __call__(self, task: Task, ctx: Context, /) -> Out:
        static, items = self._config.items(gather_messages(task.tokens))
        fan = _Fan(self._plan, self._name, task.state, ctx, self._config.max_parallel)
        ran = self._run(fan, static, items) if items else fan.layer([static] if static else [])
        gave = await ran
        return Out(gave, fan.changes(), None if gave else frozenset())


class _Fan:
    """One firing of such a node: runs layers of frames and remembers what they wrote."""

    def __init__(self, plan: Plan, node: str, state: State, ctx: Context, most: int) -> None:
        self.node = node
        self._plan, self._ctx, self._most = plan, ctx, most
        self._entry = self._state = state
        self._written: list[Any] = []

    async def layer(self, groups: Sequence[list[Message]], *name: int) -> list[Message]:
        """Run each group in a frame of its own; their messages, in order."""
        gate = asyncio.Semaphore(self._most)

        async def one(position: int, messages: list[Message]) -> SubRunResult:
            async with gate:
                return await self._ctx.run(
                    self._plan, messages, name=(*name, position), state=self._state
                )

        ended = await asyncio.gather(
            *(one(i, messages) for i, messages in enumerate(groups)), return_exceptions=True
        )
        returned = [each for each in ended if isinstance(each, SubRunResult)]
        if len(returned) < len(ended):
            raise _worst([each for each in ended if isinstance(each, BaseException)])
        written = [each.changes for each in returned if each.changes]
        if written:
            self._written += written
            self._state = self._entry.apply(self.changes())
        return [m for each in returned for m in as_messages(each.output)]

    def changes(self) -> Any:
        """Return all that was written so far, as one delta."""
        from axil.plugin import combine_deltas

        return combine_deltas(self._entry.schema, self._written)


def _worst(errors: Sequence[BaseException]) -> BaseException:
    """Choose what is raised for several: the first error in item order, else one pause for all."""
    from axil.driver import Pause

    failed = [error for error in errors if not isinstance(error, Pause)]
    return (
        failed[0]
        if failed
        else Pause(
            *(
                question
                for error in errors
                if isinstance(error, Pause)
                for question in error.questions
            )
        )
    )


# ---------------------------------------------------------------------- as node types


def _body_is_one(body: dict[str, Any]) -> dict[str, Any]:
    node = isinstance(body.get("type"), str) and body.keys() <= {"type", "config"}
    if not node and ("type" in body or not isinstance(body.get("nodes"), list)):
        raise ValueError("AX605 expected a node {type, config}, or a graph with nodes and edges.")
    return body


def _around(body: dict[str, Any], node: str, wrapper: ComponentRef, setting: CompileOptions) -> Any:
    """Return a graph of one node: the body, wrapped."""
    from axil.plugin import SubgraphSpec

    inner = (
        ComponentRef(type="subgraph", config={"type": "config", "config": body})
        if "nodes" in body
        else ComponentRef(type=body["type"], config=body.get("config") or {})
    )
    spec = GraphSpec(
        id=node,
        nodes=(NodeSpec(id="item", use=inner, wrappers=(wrapper,)),),
        edges=(EdgeSpec(source=ENTRY, target="item"), EdgeSpec(source="item", target=EXIT)),
        payload="messages",
        end=("item",),
        extras=surroundings(setting),
    )
    return SubgraphSpec(spec=spec)


class MapNode:
    """The node type ``map``: a body that runs once per item."""

    examples = ({"body": {"type": "passthrough"}},)

    class Config(MapConfig, frozen=True):
        """The body and its items."""

        body: dict[str, Any] = Field(
            description="What runs per item: a node {type, config}, "
            "or a graph {nodes, edges, start, end}.",
            json_schema_extra=refers_to("graph"),
        )
        _body = field_validator("body")(_body_is_one)

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> Any:
        return _around(
            self.config.body,
            node,
            ComponentRef(type="map", config=self.config.model_dump(exclude={"body"})),
            setting,
        )


class TreeNode:
    """The node type ``tree``: a body that runs group by group until one message is left."""

    examples = ({"body": {"type": "passthrough"}},)

    class Config(TreeConfig, frozen=True):
        """The body and its items."""

        body: dict[str, Any] = Field(
            description="What runs per group: a node {type, config}, "
            "or a graph {nodes, edges, start, end}.",
            json_schema_extra=refers_to("graph"),
        )
        _body = field_validator("body")(_body_is_one)

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> Any:
        return _around(
            self.config.body,
            node,
            ComponentRef(type="tree", config=self.config.model_dump(exclude={"body"})),
            setting,
        )
