"""``map`` and ``tree``: a node that runs once per item, or per group of items until one is left.

Theory of operation
-------------------
Both are wrappers: they run the body in one frame per item, whose input is what all items share,
then the item. Each frame begins with the state at the entry. The node's delta is what the frames
wrote, in item order, whatever finished first. An item that asks a person pauses alone; the node
pauses when all others have ended, with the questions of all.

Items are messages, or the values of a list in a field (``over``): then each firing gets one value
beside the other fields, and each field that the firings give becomes a list, one value each.

In a tree every group of a layer is such a frame, and what a layer wrote is upstream of the next.
The node types are these wrappers around a body that their config holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self, Unpack, cast

from pydantic import BaseModel, Field, field_validator, model_validator

from axil import (
    ComponentRef,
    Context,
    EdgeSpec,
    GraphSpec,
    NodeSpec,
    Out,
    Problem,
    SpecError,
    State,
)
from axil.plugin import (
    ENTRY,
    EXIT,
    Body,
    CompileOptions,
    Message,
    Mode,
    NodeInfo,
    Plan,
    SubgraphSpec,
    SubRunResult,
    Task,
    as_messages,
    check_size,
    combine_deltas,
    did_you_mean,
    fold_payloads,
    format_names,
    gather_messages,
    refers_to,
    with_article,
)
from axil_control.errors import InputError
from axil_control.parts import ByMessage, Split
from axil_control.subgraph import surroundings

if TYPE_CHECKING:
    from axil_control.keywords import MapKeywords, TreeKeywords

MOST_LAYERS: Final = 100
"""The number of layers after which a tree fails."""


class MapConfig(BaseModel, extra="forbid", frozen=True):
    """The items, and how many run at a time."""

    over: str = Field(
        default="",
        description="The field that holds the list of items: of what comes in, else of the state. "
        "Empty: messages are the items.",
    )
    item: str = Field(
        default="",
        description="With over: the field in which the node gets its item; empty: the same name.",
    )
    split: Split = Field(
        default_factory=ByMessage, description="What an item is: message, regex or json_path."
    )
    max_parallel: int = Field(default=10, ge=1, description="Items at work at the same time.")
    max_items: int = Field(
        default=10_000,
        ge=1,
        description="The largest number of items of one firing. A map in a cycle may multiply "
        "them in each round.",
    )
    edges: tuple[str, ...] | None = Field(
        default=None,
        description="Nodes whose messages hold the items; those of others are put before each "
        "item. Without it: all messages.",
    )

    @model_validator(mode="after")
    def _is_of_fields_or_of_messages(self) -> Self:
        if self.over and (self.edges is not None or not isinstance(self.split, ByMessage)):
            raise ValueError("AX606 over names a field; split and edges are for messages.")
        if self.item and not self.over:
            raise ValueError("AX606 item names the field of an item, and over is missing.")
        return self

    def items(self, messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
        """Return the messages that all items share, and the items.

        Raises: InputError (AX630; AX634): there are more than ``max_items``.
        """
        mine = [self.edges is None or m.get("source") in self.edges for m in messages]
        static = [m for m, is_mine in zip(messages, mine, strict=True) if not is_mine]
        items: list[Message] = []
        for message, is_mine in zip(messages, mine, strict=True):
            if is_mine:
                items += self.split.items(message)
            if len(items) > self.max_items:
                raise _too_many("the messages have", self.max_items)
        return static, items


def _too_many(holder: str, most: int) -> InputError:
    message = f"{holder} more than {most} items, which is the limit."
    return InputError("AX634", message, "Split them into fewer items, or raise max_items.")


class TreeConfig(MapConfig, frozen=True):
    """The items, and how many become one."""

    group_size: int = Field(default=3, ge=2, description="Items that one firing takes together.")


class _Messages:
    """Items that are messages."""

    def __init__(self, config: MapConfig, node: NodeInfo) -> None:
        self._config, self._node = config, node.name

    def split(self, task: Task) -> tuple[Any, list[Any]]:
        """Return what all items share, and the items."""
        return self._config.items(gather_messages(task.tokens))

    def payload(self, static: Any, group: list[Any], *, is_group: bool) -> Any:
        """Return the input of one firing."""
        return [*static, *group]

    def outputs(self, results: Sequence[SubRunResult]) -> list[Any]:
        """Return what the firings gave, in their order."""
        return [m for each in results for m in as_messages(each.output)]

    def next_items(self, outputs: list[Any]) -> list[Any]:
        """Return the outputs of one layer of a tree as the items of the next."""
        return [{**m, "role": "user", "source": self._node} for m in outputs]

    def out(self, outputs: list[Any], written: Mapping[str, Any]) -> Out:
        """Return the outcome of a map."""
        return Out(outputs, written, None if outputs else frozenset())


class _Fields:
    """Items that are the values of a list in a field."""

    def __init__(self, config: MapConfig, node: NodeInfo) -> None:
        self._over, self._item = config.over, config.item or config.over
        self._node, self._schema, self._most = node.name, node.schema, config.max_items
        self._carried = [name for edge in node.edges for name in edge.keys or ()]

    def split(self, task: Task) -> tuple[Any, list[Any]]:
        """Return the other fields, and the items. Raises: InputError (AX634, AX636)."""
        fields = fold_payloads(token.payload for token in task.tokens)
        found: Any = fields.pop(self._over) if self._over in fields else task.state.get(self._over)
        kind = type(cast("object", found)).__name__
        if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Sequence):
            came = "nothing brings it" if found is None else f"it is {with_article(kind)}"
            raise InputError(
                "AX636",
                f'"{self._node}" runs once per item of the list in "{self._over}", and {came}.',
                "Bring a list in that field, or name the field that holds one in over.",
            )
        items = list(cast("Sequence[object]", found))
        if len(items) > self._most:
            raise _too_many(f'"{self._over}" has', self._most)
        return fields, items

    def payload(self, static: Any, group: list[Any], *, is_group: bool) -> Any:
        return {**static, self._item: group if is_group else group[0]}

    def outputs(self, results: Sequence[SubRunResult]) -> list[Any]:
        return [fold_payloads([each.output]) for each in results if each.output is not None]

    def next_items(self, outputs: list[Any]) -> list[Any]:
        """Return the values of the field, or of the only field that was given.

        Raises: InputError (AX635): neither is there.
        """
        items: list[Any] = []
        for each in outputs:
            if self._over not in each and len(each) != 1:
                raise InputError(
                    "AX635",
                    f'a group of "{self._node}" gave {format_names(list(each))}; '
                    f'the next layer takes "{self._over}".',
                    f'Let the node give "{self._over}", or one field alone.',
                )
            items.append(each[self._over] if self._over in each else next(iter(each.values())))
        return items

    def out(self, outputs: list[Any], written: Mapping[str, Any]) -> Out:
        """Return each field as the list of what the items gave in it.

        Raises: InputError (AX635): an item gave other fields than the first.
        """
        names = list(outputs[0]) if outputs else self._carried
        for each in outputs:
            if each.keys() != set(names):
                raise InputError(
                    "AX635",
                    f'an item of "{self._node}" gave {format_names(list(each)) or "no field"}, '
                    f"the first one {format_names(names) or 'no field'}.",
                    "Give the same fields for each item, so that the lists stay side by side.",
                )
        lists = {name: [each[name] for each in outputs] for name in names}
        whole = {
            name: values
            for name, values in lists.items()
            if name in written and self._schema.of(name).reducer.name == "overwrite"
        }
        return Out(lists, {**written, **whole})


_Items = _Messages | _Fields


class Map:
    """The wrapper ``map``: one firing per item; outputs are in the order of the items."""

    Config = MapConfig

    def __init__(self, config: MapConfig | None = None, **settings: Unpack[MapKeywords]) -> None:
        """Take ``config``, or its settings by name."""
        self.config = config or MapConfig.model_validate(settings)
        self.repeats = self.config.max_items

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        return _Fanned(node, self.config, self._run)

    async def _run(self, fan: _Fan, static: object, items: list[object]) -> Out:
        outputs = await fan.layer([[item] for item in items], static)
        return fan.items.out(outputs, fan.changes())


class Tree:
    """The wrapper ``tree``: one firing per group of items, and again over what they gave, until
    one is left.

    Messages that are the same for all go into the first layer only, other fields into each. Every
    item is worked on, a single one too.
    """

    Config = TreeConfig

    def __init__(self, config: TreeConfig | None = None, **settings: Unpack[TreeKeywords]) -> None:
        self.config = config or TreeConfig.model_validate(settings)

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        return _Fanned(node, self.config, self._run)

    async def _run(self, fan: _Fan, static: object, items: list[object]) -> Out:
        size = self.config.group_size
        for layer in range(MOST_LAYERS):
            groups = [items[at : at + size] for at in range(0, len(items), size)]
            outputs = await fan.layer(groups, static, layer, is_group=True)
            if len(outputs) < 2:
                one = outputs[0] if outputs and self.config.over else fan.items.next_items(outputs)
                return Out(one, fan.changes(), None if outputs else frozenset())
            items = fan.items.next_items(outputs)
            static = static if self.config.over else []
        raise InputError(
            "AX631",
            f"the tree still has {len(items)} items after {MOST_LAYERS} layers.",
            "Let the node give fewer items than it takes.",
        )


class _Fanned:
    """The body of a node that runs once per item."""

    mode: Mode = "async"
    wants_ctx = True

    def __init__(self, node: NodeInfo, config: MapConfig, run: Any) -> None:
        self._config, self._run, self._items = config, run, _items_of(config, node)
        self._plan = (replace(node, payload="fields") if config.over else node).single()
        self._field = config.item if config.item in node.schema.fields else ""

    async def __call__(self, task: Task, ctx: Context, /) -> Out:
        static, items = self._items.split(task)
        fan = _Fan(self._plan, self._items, task.state, ctx, self._config.max_parallel)
        fan.field = self._field
        if items or not static or self._config.over:
            return await self._run(fan, static, items)
        return fan.items.out(await fan.layer([[]], static), fan.changes())


def _items_of(config: MapConfig, node: NodeInfo) -> _Items:
    """Return the items of a node; where fields come in and none is named, warn of it.

    Raises: SpecError (AX159): neither its edges nor the state have the field.
    """
    brought, stored = node.brought(), node.stored
    if not config.over:
        lists = sorted((brought or frozenset[str]()) - {"message"})
        if lists and node.payload == "fields":
            message = f"its edges bring {format_names(lists)}, and it takes all fields as one item."
            hint = "Name the field that holds the list of items: over."
            node.report(Problem("AX159", "", message, hint, severity="warning"))
        return _Messages(config, node)
    if brought is not None and stored is not None and config.over not in brought | stored:
        known = sorted(brought | stored)
        message = f'it runs over "{config.over}", which neither its edges nor the state have.'
        hint = did_you_mean(config.over, known) or f"They have {format_names(known) or 'none'}."
        raise SpecError(Problem("AX159", "", message, hint))
    return _Fields(config, node)


class _Fan:
    """One firing of such a node: runs layers of frames and remembers what they wrote."""

    field = ""
    """The field of a typed state that a frame has its item in."""

    def __init__(self, plan: Plan, items: _Items, state: State, ctx: Context, most: int) -> None:
        self.items = items
        self._plan, self._ctx, self._most = plan, ctx, most
        self._entry = self._state = state
        self._written: list[Any] = []

    async def layer(
        self, groups: Sequence[list[object]], static: object, *name: int, is_group: bool = False
    ) -> list[object]:
        """Run each group in a frame of its own; return their outputs in order."""
        from axil.driver import Pause

        ended: list[SubRunResult | BaseException | None] = [None] * len(groups)
        waiting, used = iter(enumerate(groups)), 0

        async def work() -> None:
            """Run one group after another until none is left."""
            nonlocal used
            for position, group in waiting:
                try:
                    one = await self._one((*name, position), static, group, is_group)
                    used += check_size(one.output, used=used)
                    if one.changes:
                        used += check_size(one.changes, used=used)
                    ended[position] = one
                except (Exception, Pause) as error:  # noqa: BLE001  # raised when all have ended
                    ended[position] = error

        await asyncio.gather(*(work() for _ in range(min(self._most, len(groups)))))
        returned = [each for each in ended if isinstance(each, SubRunResult)]
        if len(returned) < len(ended):
            raise _worst([each for each in ended if isinstance(each, BaseException)])
        written = [each.changes for each in returned if each.changes]
        if written:
            self._written += written
            self._state = self._entry.apply(self.changes())
        return self.items.outputs(returned)

    def _one(
        self, name: tuple[int, ...], static: Any, group: list[Any], is_group: bool
    ) -> Awaitable[SubRunResult]:
        """Return the run of one group, in a frame of its own."""
        payload, state = self.items.payload(static, group, is_group=is_group), self._state
        if self.field:
            state = state.apply(state.schema.check({self.field: payload[self.field]}))
        return self._ctx.run(self._plan, payload, name=name, state=state)

    def changes(self) -> dict[str, object]:
        """Return all that was written so far, as one delta."""
        return combine_deltas(self._entry.schema, self._written)


def _worst(errors: Sequence[BaseException]) -> BaseException:
    """Return the first error in item order, else one pause with the questions of all."""
    from axil.driver import Pause

    failed = [error for error in errors if not isinstance(error, Pause)]
    pauses = [error for error in errors if isinstance(error, Pause)]
    return failed[0] if failed else Pause(*(q for pause in pauses for q in pause.questions))


# ---------------------------------------------------------------------- as node types


def _body_is_one(body: dict[str, object]) -> dict[str, object]:
    node = isinstance(body.get("type"), str) and body.keys() <= {"type", "config"}
    if not node and ("type" in body or not isinstance(body.get("nodes"), list)):
        raise ValueError("AX605 expected a node {type, config}, or a graph with nodes and edges.")
    return body


def _wrapped(
    kind: str, config: MapNode.Config | TreeNode.Config, node: str, setting: CompileOptions
) -> SubgraphSpec:
    """Return a graph of one node: the body, in the wrapper ``kind``."""
    body, place = config.body, setting.place and setting.place.at("config", "body")
    wrapper = ComponentRef(type=kind, config=config.model_dump(exclude={"body"}))
    inner = (
        ComponentRef(type="subgraph", config={"type": "config", "config": body})
        if "nodes" in body
        else ComponentRef(type=body["type"], config=body.get("config") or {}, place=place)
    )
    spec = GraphSpec(
        id=node,
        nodes=(NodeSpec(id="item", use=inner, wrappers=(wrapper,), place=setting.place),),
        edges=(EdgeSpec(source=ENTRY, target="item"), EdgeSpec(source="item", target=EXIT)),
        payload="fields" if config.over else "messages",
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

    def scope(self, node: str, setting: CompileOptions) -> object:
        return _wrapped("map", self.config, node, setting)


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

    def scope(self, node: str, setting: CompileOptions) -> object:
        return _wrapped("tree", self.config, node, setting)
