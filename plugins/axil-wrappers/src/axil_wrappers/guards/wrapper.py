"""``guard``: the wrapper that guards a node's input, output and tool calls."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar, Unpack, cast

from pydantic import Field, model_validator

from axil import ComponentRef, Context, Out, Question
from axil.plugin import Body, NodeInfo, Task, check_time, isolate, make_component, refers_to, thaw
from axil_wrappers.guards.errors import GuardTripped
from axil_wrappers.guards.finding import Finding, Guard, GuardLike, masked
from axil_wrappers.inside import Around, Settings, Wrapper

if TYPE_CHECKING:
    from axil_wrappers.keywords import GuardedKeywords

T = TypeVar("T")
Action = Literal["block", "mask", "ask", "repair"]


class GuardedConfig(Settings):
    """The guards of a node."""

    input: tuple[GuardLike, ...] = Field(
        (),
        description="Guards of the payloads that a firing begins with.",
        json_schema_extra=refers_to("guards"),
    )
    output: tuple[GuardLike, ...] = Field(
        (), description="Guards of what the node gives.", json_schema_extra=refers_to("guards")
    )
    tools: tuple[GuardLike, ...] = Field(
        (),
        description="Guards of the arguments of tool calls.",
        json_schema_extra=refers_to("guards"),
    )
    results: tuple[GuardLike, ...] = Field(
        (),
        description="Guards of the results of tool calls.",
        json_schema_extra=refers_to("guards"),
    )
    action: Action = Field(
        "block",
        description="What follows, unless a guard has its own: block, mask, ask or repair.",
    )
    tries: int = Field(
        2, ge=1, le=10, description="How often the node runs again to repair its output."
    )
    ahead: bool = Field(
        False,
        description="An async node begins, and calls its model, while guards look at its input; "
        "all else that it does waits for them.",
    )
    feedback: str = Field(
        "", description="The input field that has the reason when the node runs again; empty: none."
    )

    @model_validator(mode="after")
    def _some(self) -> GuardedConfig:
        if not (self.input or self.output or self.tools or self.results):
            raise ValueError("expected guards in input, output, tools or results")
        return self


class _Placed(NamedTuple):
    """A guard at its place."""

    name: str
    guard: Guard
    action: Action


class Guarded(Wrapper[GuardedConfig]):
    """The wrapper ``guard``: guards of inputs, outputs and tools.

    A guard is a name, ``{type: …, action: …, …}``, or an object; ``action`` is its own.
    """

    type = "guard"
    repeats = writes = None
    Config = GuardedConfig
    examples: ClassVar[Any] = (
        {"output": ["pii"], "action": "mask"},
        {"input": [{"type": "injection", "action": "ask"}], "tools": ["secrets"]},
    )

    def __init__(
        self,
        config: GuardedConfig | Mapping[str, object] | None = None,
        /,
        **settings: Unpack[GuardedKeywords],
    ) -> None:
        super().__init__(config, **settings)
        self._made: list[Any] = []

    def use(self) -> ComponentRef:
        given = {name: getattr(self.config, name) for name in self.config.model_fields_set}
        return ComponentRef(type=self.type, config=given)

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        placed = {
            place: [self._placed(each, node) for each in getattr(self.config, place)]
            for place in ("input", "output", "tools", "results")
        }
        return _Guarding(body, node, self.config, placed)

    def _placed(self, given: Any, node: NodeInfo) -> _Placed:
        action: Action = self.config.action
        if not isinstance(given, (str, Mapping)):
            name = str(getattr(given, "name", type(given).__name__))
            return _Placed(name, given, getattr(given, "action", action))
        data = {"type": given} if isinstance(given, str) else dict(cast("Any", given))
        stated = data.pop("action", action)
        if stated not in ("block", "mask", "ask", "repair"):
            from axil import Problem, SpecError

            message = f'a guard\'s action is block, mask, ask or repair, found "{stated}".'
            raise SpecError(Problem("AX131", node.where, message, "Choose one of them."))
        use = ComponentRef.of(data)
        component = node.setting.resolve("guards", use.type, node.where)
        made = make_component(component, use.config, node.where)
        self._made.append(made)
        return _Placed(use.type, made, stated)

    async def close(self) -> None:
        """Close the guards that were made here."""
        async with AsyncExitStack() as stack:
            for made in self._made:
                if hasattr(made, "close"):
                    stack.push_async_callback(made.close)


class _Repair(Exception):  # a signal, not an error: it does not leave this module
    """The output of a node that is to run again."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class _Guarding(Around):
    """A body with guards."""

    def __init__(
        self,
        body: Body,
        node: NodeInfo,
        config: GuardedConfig,
        placed: Mapping[str, Sequence[_Placed]],
    ) -> None:
        super().__init__(body, node)
        self._body, self._where, self._config, self._placed = body, node.where, config, placed

    async def run(self, task: Task, ctx: Context) -> Out:
        given, begun = task, None
        part = ctx.part()
        if self._placed["input"] and self._config.ahead and self._body.mode == "async":
            given, begun = await self._ahead(task, part, ctx)
        elif self._placed["input"]:
            given = await self._guarded_input(task, ctx)
        for number in range(self._config.tries + 1):
            if number or (begun is None and given is not task and self._config.ahead):
                part = ctx.part(f"guarded:{number}")
            out = await (begun or self._inside(given, part))
            begun, is_last = None, number == self._config.tries
            try:
                return out._replace(
                    output=await self._passed("output", out.output, part, number, is_last=is_last)
                )
            except _Repair as repair:
                self.take_back(part, ctx)
                if self._config.feedback:
                    given = _with_reason(given, self._config.feedback, repair.reason)
        raise AssertionError("the last try is not repaired")

    async def _guarded_input(self, task: Task, ctx: Context) -> Task:
        """Return the task as its guards let it pass; itself, if they change nothing."""
        tokens = [
            token._replace(payload=await self._passed("input", token.payload, ctx, at))
            for at, token in enumerate(task.tokens)
        ]
        is_same = all(a.payload is b.payload for a, b in zip(tokens, task.tokens, strict=True))
        return task if is_same else task.with_tokens(tuple(tokens))

    async def _ahead(
        self, task: Task, part: Context, ctx: Context
    ) -> tuple[Task, asyncio.Task[Out] | None]:
        """Begin the body while guards look at its input.

        Returns: the task, with the running body; where guards changed the input, the changed task
        without a body: what was begun is taken back.
        """
        gate = asyncio.Event()
        begun = asyncio.create_task(self._inside(task, part, gate))
        try:
            given = await self._guarded_input(task, ctx)
            if given is task:
                gate.set()
                return task, begun
        finally:
            if not gate.is_set():
                begun.cancel()
                await asyncio.gather(begun, return_exceptions=True)
                self.take_back(part, ctx)
        return given, None

    async def _inside(self, task: Task, ctx: Context, gate: asyncio.Event | None = None) -> Out:
        is_watched = self._placed["tools"] or self._placed["results"] or gate is not None
        if not is_watched or self._body.mode != "async":
            return await self.inside(task, ctx)
        out = self._body(task, cast("Any", _WatchedContext(ctx, self, gate)))
        return await out if inspect.isawaitable(out) else cast("Out", out)

    async def _passed(
        self, place: str, value: Any, ctx: Context, at: int | str, *, is_last: bool = True
    ) -> Any:
        """Return a value as it may pass. Raises: GuardTripped; _Repair."""
        for index, placed in enumerate(self._placed[place]):
            step = f"{place}:{at}:{index}"
            value = await self._checked(placed, place, value, ctx.part(step), is_last)
        return value

    async def _checked(
        self, placed: _Placed, place: str, value: Any, ctx: Context, is_last: bool
    ) -> Any:
        if getattr(placed.guard, "of", "text") == "value":
            found = await _found(placed.guard, thaw(isolate(value)), ctx)
            if found is not None:
                await self._tripped(placed, place, found, ctx, is_last)
            return value
        changed: dict[Path, str] = {}
        for path, text in _texts(value):
            found = await _found(placed.guard, text, ctx)
            if found is None:
                continue
            if placed.action == "mask" and found.spans:
                self._report(placed, place, found, "mask", ctx)
                changed[path] = masked(text, found.spans)
            else:
                await self._tripped(placed, place, found, ctx, is_last)
        return _replaced(value, changed) if changed else value

    async def _tripped(
        self, placed: _Placed, place: str, found: Finding, ctx: Context, is_last: bool
    ) -> None:
        """Block, ask, or have it repaired. What cannot be masked or repaired is blocked."""
        of = {"tools": "arguments of a tool", "results": "result of a tool"}.get(place, place)
        if placed.action == "ask":
            self._report(placed, place, found, "ask", ctx)
            text = f'The guard "{placed.name}" holds the {of} of {self.node}: {found.reason}. '
            question = Question(
                text=f"{text}Let it pass?",
                kind="choice",
                options=("pass", "block"),
                default="block",
            )
            if await ctx.ask(question, name=f"guard:{placed.name}") == "pass":
                return
        if placed.action == "repair" and place == "output" and not is_last:
            self._report(placed, place, found, "repair", ctx)
            raise _Repair(found.reason)
        self._report(placed, place, found, "block", ctx)
        raise GuardTripped(placed.name, of, found.reason, self._where)

    def _report(
        self, placed: _Placed, place: str, found: Finding, action: str, ctx: Context
    ) -> None:
        """Report to the run's observers that a guard has tripped."""
        what = {"kind": "guard", "guard": placed.name, "place": place, "action": action}
        ctx.note({**what, "reason": found.reason})

    async def called(self, real: Context, name: str, call: Any, options: dict[str, Any]) -> Any:
        """Return the result of a tool call; what is blocked is a failure that the model reads."""
        request = options.get("request")
        asked: Any = request() if callable(request) else request
        arguments = cast("Any", asked).get("arguments") if isinstance(asked, Mapping) else None
        try:
            await self._unchanged("tools", arguments, real, name)
        except GuardTripped as tripped:
            return {"content": f"Error: {tripped.message}", "failed": True}
        options["request"] = asked
        result: Any = await real.step(name, call, **options)
        if not self._placed["results"] or not isinstance(result, Mapping):
            return result
        given = cast("Mapping[str, Any]", result)
        if "content" not in given:  # a person has said what came of a call that broke off
            return given
        try:
            return {**given, "content": await self._passed("results", given["content"], real, name)}
        except GuardTripped as tripped:
            return {"content": f"Error: {tripped.message}", "failed": True}

    async def _unchanged(self, place: str, value: Any, ctx: Context, name: str) -> None:
        """Check a value that cannot be masked: a tool is called as the model asked, or not."""
        for index, placed in enumerate(self._placed[place]):
            strict = placed._replace(action="block" if placed.action == "mask" else placed.action)
            await self._checked(strict, place, value, ctx.part(f"{place}:{name}:{index}"), True)


class _WatchedContext:
    """The context of a body whose tool calls are guarded; all else is the real one's.

    Steps and questions wait for the gate, if there is one, but for calls of models.
    """

    def __init__(
        self, real: Context, guarding: _Guarding, gate: asyncio.Event | None = None
    ) -> None:
        self._real, self._guarding, self._gate = real, guarding, gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def part(self, name: str = "", /) -> _WatchedContext:
        """Return the context of a part, guarded as well."""
        return _WatchedContext(self._real.part(name), self._guarding, self._gate)

    async def ask(self, question: Any, /, *, name: str = "") -> Any:
        """Ask a person, behind the gate."""
        await self._passed_gate()
        return await self._real.ask(question, name=name)

    async def run(self, *args: Any, **options: Any) -> Any:
        """Run a graph, behind the gate."""
        await self._passed_gate()
        return await self._real.run(*args, **options)

    async def _passed_gate(self) -> None:
        if self._gate is not None:
            await self._gate.wait()

    async def step(self, name: str, call: Any, /, **options: Any) -> Any:
        """Take a step; one that calls a tool is guarded."""
        if options.get("kind") != "model":
            await self._passed_gate()
        if options.get("kind") != "tool":
            return await self._real.step(name, call, **options)
        return await self._guarding.called(self._real, name, call, options)


async def _found(guard: Guard, value: Any, ctx: Context) -> Finding | None:
    check_time()  # a guard that does not wait is one step of many
    found = guard.check(value, ctx)
    return await found if inspect.isawaitable(found) else found


def _with_reason(task: Task, field: str, reason: str) -> Task:
    """Return a task whose first payload, if it is fields, has the reason in a field."""
    first, *others = task.tokens
    before: Any = first.payload
    if not isinstance(before, Mapping):
        return task
    payload = {**cast("Mapping[str, Any]", before), field: reason}
    return task.with_tokens((first._replace(payload=payload), *others))


Path = tuple[str | int, ...]


def _texts(value: Any, path: Path = ()) -> list[tuple[Path, str]]:
    """Return the texts in a value, with their paths; of messages, their contents."""
    if isinstance(value, str):
        return [(path, value)]
    found: list[tuple[Path, str]] = []
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        is_message = "role" in fields and "content" in fields
        for name, each in fields.items():
            if not is_message or name == "content":
                found += _texts(each, (*path, name))
    elif isinstance(value, (list, tuple)):
        for at, each in enumerate(cast("Sequence[Any]", value)):
            found += _texts(each, (*path, at))
    return found


def _replaced(value: T, texts: Mapping[Path, str], path: Path = ()) -> T:
    """Return a value with other texts at some paths."""
    if path in texts:
        return cast("T", texts[path])
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value).items()
        return cast("T", {name: _replaced(each, texts, (*path, name)) for name, each in fields})
    if not isinstance(value, (list, tuple)):
        return value
    items = enumerate(cast("Sequence[Any]", value))
    made = [_replaced(each, texts, (*path, at)) for at, each in items]
    return cast("T", tuple(made) if isinstance(value, tuple) else made)
