"""``AgentSwitch``: a model decides which out-edges are taken."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from axil import Context, Out
from axil.plugin import (
    EXIT,
    Body,
    BodyRules,
    as_body,
    did_you_mean,
    format_names,
    naming_unknown,
    without_views,
)
from axil_agent.converse import think
from axil_agent.errors import ReplyError, WiringError
from axil_agent.models import Chosen
from axil_agent.speakers import transcript
from axil_agent.verdict import TRIES, decided
from axil_models import Model, ModelLike, Request, plain_data, read_arguments

if TYPE_CHECKING:
    from axil import Graph
    from axil.plugin import CompileOptions
    from axil_agent.arguments import SwitchNodeOptions

_SYSTEM = (
    "You judge whether a condition holds for what the user gives. "
    "Answer with one word: YES if the condition holds, NO if it does not. Explain nothing."
)
_ALL_AT_ONCE = (
    "You judge which conditions hold for what the user gives; several may, or none. "
    "Answer with a JSON object and nothing else: "
    '{"holds": [the numbers of the conditions that hold]}.'
)
_WORDS = {"yes": True, "no": False}


class AgentSwitch:
    """A switch whose conditions are sentences.

    All are judged, side by side or in one call; several may hold. Judged are the inputs; in a typed
    graph its conversation, or without one the pulled fields, too.

    Once an edge is bound, those that are not are never taken; without any binding all are. What it
    sends is what it received.
    """

    @naming_unknown
    def __init__(
        self,
        model: ModelLike | None = None,
        routes: Mapping[str, str] | None = None,
        *,
        in_one_call: bool = False,
        name: str = "",
    ) -> None:
        """Take ``routes``, a condition for each receiver's name, or ``condition_binding``."""
        self.name = name
        self.in_one_call = in_one_call
        self._model = Chosen(model)
        self._routes, self._bound = dict(routes or {}), dict[str, str]()
        self._conditions: dict[str, str] = {}
        self._setting: CompileOptions | None = None

    if TYPE_CHECKING:

        @classmethod
        def create_in(
            cls,
            graph: Graph,
            /,
            *args: ModelLike | Mapping[str, str],
            **options: Unpack[SwitchNodeOptions],
        ) -> Self: ...

    def condition_binding(self, prompt: str, out_edge: Any) -> None:
        """Take ``out_edge`` where the model says that ``prompt`` holds.

        Raises: WiringError (AX665): it is not free.
        """
        spec = getattr(out_edge, "spec", None)
        target = str(spec.target if spec is not None else out_edge.receiver)
        if out_edge.sender is not self and out_edge.sender != self.name:
            message = f"the edge to {target} does not start at this switch."
            raise WiringError("AX665", message, "Bind edges made with create_edge(switch, …).")
        if target in self._bound or self._routes:
            message = f"the edge to {target} is bound already, or by routes."
            raise WiringError("AX665", message, "Put both into one condition.")
        self._bound[target] = prompt

    def bind(self, out_edges: Sequence[Any], setting: CompileOptions | None = None) -> None:
        """Match conditions with edges; called by the planner.

        Raises: WiringError (AX665): a condition has no edge, or routes miss one.
        """
        self._setting, where = setting, f'node "{self.name}"'
        receivers = list(dict.fromkeys(str(edge.receiver) for edge in out_edges))
        given = self._routes or self._bound
        found = {_receiver(target, receivers): prompt for target, prompt in given.items()}
        strangers = [target for target in found if target not in receivers]
        missing = [target for target in receivers if target not in found]
        if strangers:
            known = f"Its out-edges lead to {format_names(receivers) or 'nothing'}."
            message = f"a condition names {format_names(strangers)}, where no edge leads."
            hint = did_you_mean(strangers[0], receivers) or known
            raise WiringError("AX665", message, hint, where)
        if self._routes and missing:
            message = f"routes has no entry for {format_names(missing)}."
            raise WiringError("AX665", message, "Add them, or bind edge by edge.", where)
        self._conditions = found

    @property
    def model_calls(self) -> int:
        """The most times that it may ask its model in one firing."""
        return TRIES * (bool(self._conditions) if self.in_one_call else len(self._conditions))

    @property
    def ways(self) -> dict[str, object] | None:
        """The condition of each target, as plain data; others get nothing. None: all get it."""
        return {each: ("?", f"{id(self)} {each}") for each in self._conditions} or None

    def adapted(self, rules: BodyRules) -> Body:
        """Return the body. Raises: as making the model does."""
        if self._conditions:
            self._model.check(self._setting)
        conditions, where = dict(self._conditions), f'node "{rules.node}"'

        async def chosen(
            judged: object, inputs: dict[str, object], payloads: list[object], ctx: Context
        ) -> Out:
            is_one = rules.payload == "messages" and len(payloads) == 1
            output = payloads[0] if is_one else without_views(inputs)
            if not conditions:
                return Out(output)
            judge = self._in_one_call if self.in_one_call else self._side_by_side
            holds = await judge(judged, conditions, ctx, where)
            return Out(output, to=frozenset(itertools.compress(conditions, holds)))

        async def by_input(inputs: dict[str, object], payloads: list[object], ctx: Context) -> Out:
            return await chosen(without_views(inputs), inputs, payloads, ctx)

        async def by_conversation(
            inputs: dict[str, object], payloads: list[object], messages: list[Any], ctx: Context
        ) -> Out:
            return await chosen(transcript(messages), inputs, payloads, ctx)

        async def by_state(
            inputs: dict[str, object],
            payloads: list[object],
            attributes: dict[str, object],
            ctx: Context,
        ) -> Out:
            seen = plain_data({**attributes, **without_views(inputs)})
            return await chosen(seen, inputs, payloads, ctx)

        if rules.chat:
            return as_body(by_conversation, rules)
        return as_body(by_input if rules.view is None else by_state, rules)

    async def _side_by_side(
        self, judged: object, conditions: Mapping[str, str], ctx: Context, where: str
    ) -> list[bool]:
        model = await self._model.ready()

        async def ask(condition: str, number: int) -> bool:
            user = f"USER INPUT:\nANSWER:\n{judged}\nCONDITION:\n{condition}\n"
            messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": user}]
            return await decided(model, messages, _WORDS, ctx, f"condition:{number}", where)

        try:
            async with asyncio.TaskGroup() as group:
                asked = [
                    group.create_task(ask(condition, number))
                    for number, condition in enumerate(conditions.values())
                ]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in asked]

    async def _in_one_call(
        self, judged: object, conditions: Mapping[str, str], ctx: Context, where: str
    ) -> list[bool]:
        model = await self._model.ready()
        shown = "\n".join(f"{n}. {condition}" for n, condition in enumerate(conditions.values(), 1))
        texts = [
            {"role": "system", "content": _ALL_AT_ONCE},
            {"role": "user", "content": f"USER INPUT:\nANSWER:\n{judged}\nCONDITIONS:\n{shown}\n"},
        ]
        text = ""
        for attempt in range(TRIES):
            reply = await think(model, Request(messages=list(texts)), ctx, f"conditions:{attempt}")
            text = reply.text
            found, _ = read_arguments(text[text.find("{") : text.rfind("}") + 1])
            numbers: object = found.get("holds")
            all_numbers = range(1, len(conditions) + 1)
            if isinstance(numbers, list) and all(
                type(n) is int and n in all_numbers for n in cast("list[object]", numbers)
            ):
                return [n in numbers for n in all_numbers]
            again = f'Please answer with {{"holds": […]}}, numbers from 1 to {len(conditions)}.'
            texts += [reply.message(), {"role": "user", "content": again}]
        message = f'the model was asked which conditions hold and answered "{text:.80}".'
        raise ReplyError("AX659", message, "Judge each condition in a call of its own.", where)

    def models(self) -> list[Model]:
        """Return the model that it asks, if it asks one."""
        return [self._model.now()] if self._model.given is not None else []

    async def close(self) -> None:
        """Close the model, if it was given by name."""
        await self._model.close()


def _receiver(name: str, receivers: Sequence[str]) -> str:
    """Return the receiver that a condition names."""
    if name not in receivers:
        if name in ("exit", "end", "terminate") and EXIT in receivers:
            return EXIT
        if name.endswith("_controller") and "controller" in receivers:
            return "controller"
    return name
