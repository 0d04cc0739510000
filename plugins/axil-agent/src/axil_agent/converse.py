"""One turn of an agent with its model, from the prompt to fields.

Each model call and each tool call is a step under the journal. The tool calls of one reply run side
by side (those that take ``ctx`` one after another, behind them); their results are sent in the
order of the calls, errors too. A reply that cannot be read is shown its fault and asked again.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, cast

from pydantic import ValidationError

from axil import LimitReached
from axil.driver import Pause
from axil.plugin import (
    Message,
    RunError,
    did_you_mean,
    format_names,
    own_line,
    with_article,
)
from axil_agent.approval import Verdict, verdict
from axil_agent.citations import note_found
from axil_agent.commands import plain_command, take_command
from axil_agent.errors import ReplyError, TurnLimit
from axil_agent.formatters import Prose
from axil_agent.output_types import OutputType, partial_fields
from axil_agent.stage import Stage
from axil_models import (
    Command,
    Formatter,
    Model,
    ModelContract,
    Refused,
    Reply,
    Request,
    ShownThoughts,
    Tool,
    ToolCall,
    asked_by,
    check_provider_tools,
    content_of,
    content_text,
    current_batches,
    filed,
    filed_result,
    in_thread,
    is_part,
    on_clock,
    plain_data,
    reasoning_parts,
    result_of,
    size_in_characters,
    split_thoughts,
    spread_results,
    validation_text,
    with_files,
)

OnReply = Callable[[Reply, Sequence[Message]], Reply | None]
"""Called with each reply of a model and the messages it answers: see ``Agent``; what it raises
fails the node.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """The settings of a conversation."""

    model: Model
    formatter: Formatter
    required: Sequence[str] = ()
    """Fields that a reply has to have."""
    asked: Sequence[str] = ()
    """Fields that a reply is asked for: those, and some it may leave out."""
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    output: OutputType | None = None
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    max_turns: int = 10
    max_repairs: int = 2
    where: str = ""
    on_reply: OnReply | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a conversation."""

    fields: dict[str, Any]
    text: str
    """The reply that was read."""
    acted: tuple[Message, ...] = ()
    """The calls of tools before it, with their results."""
    value: Any = None
    """The output as an object of its type, where it has one."""
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    """The data that the model wants back with the reply."""
    parts: tuple[Mapping[str, Any], ...] = ()
    """The reply with the images and recordings that the model made; empty if there are none."""
    shown: int = 0
    """The chunks with which it was shown."""

    def messages(self) -> list[Message]:
        """Return the calls of tools, and the reply, as messages of a conversation.

        Behind calls the model gets the reply's ``extra`` back: some services insist on it then.
        """
        reply: Message = {"role": "assistant", "content": list(self.parts) or self.text}
        if self.acted and self.extra:
            reply["extra"] = dict(self.extra)
        return [*self.acted, reply]


class _Shown:
    """``emit`` for one reply: counts chunks, and shows the fields of a structured reply.

    That begins with a chunk ``output`` without fields: its text is data, which may not fit, so
    front ends show its fields instead.
    """

    def __init__(self, emit: Callable[[Any], None], options: ChatOptions) -> None:
        self._emit, self._output = emit, options.output
        self._is_structured = bool(options.formatter.introduction)
        self._texts: list[str] = []
        self._length = self._next = 0
        """The characters of the reply so far, and how many it has when it is read again."""
        self._fields: dict[str, object] | None = None
        self.count = 0

    def __call__(self, chunk: object, /) -> None:
        """Show a chunk, and the fields that it completes."""
        given = cast("Mapping[str, object]", chunk if isinstance(chunk, Mapping) else {})
        kind = given.get("kind")
        if kind == "text" and self._is_structured and self._fields is None:
            self._show_fields({})
        self._emit({**given, "chunks": self.count} if kind == "reset" else chunk)
        if kind == "reset":
            self._texts, self._fields, self.count = [], None, 0
            self._length = self._next = 0
        elif kind != "retry":
            self.count += 1
        if kind == "text" and self._output is not None and self._is_structured:
            self._texts.append(str(given.get("text")))
            self._length += len(self._texts[-1])
            if self._length >= self._next:  # with each chunk, it would take the square of the time
                self._next = self._length + self._length // 64
                found = partial_fields("".join(self._texts), self._output.parts)
                if found != self._fields:
                    self._show_fields(found)

    def _show_fields(self, fields: dict[str, object]) -> None:
        self._fields = fields
        self._emit({"kind": "output", "fields": fields})
        self.count += 1

    def end(self, fields: dict[str, object]) -> None:
        """Show the fields of the whole reply, where they were not all shown before: of a bare
        value, of a function, those with defaults.
        """
        if self._fields is not None and self._output is not None and fields != self._fields:
            self._show_fields(fields)

    def reset(self) -> None:
        """Show that what was shown does not count."""
        if self.count:
            self._emit({"kind": "reset", "chunks": self.count})


async def think(
    model: Model,
    request: Request,
    ctx: Stage,
    name: str,
    emit: Callable[[object], None] | None = None,
) -> Reply:
    """Call a model: recorded as the step ``name``, its usage reserved before and counted after.

    Raises: ModelContract (AX654): it gave no reply; PartError (AX804): a file cannot be sent;
    OverBudget, UnknownPrice: see ``Context.reserve``; ConfigError (AX981): calls are made in
    batches, and its service has none; and what the model raises.
    """

    async def call() -> dict[str, object]:
        return (await asked(model, request, ctx, name, emit or ctx.emit, model.reply)).plain()

    # counted inside: what is read again was paid once
    return Reply.read(await ctx.step(name, call, request=request.plain, kind="model"))


async def asked(
    model: Model,
    request: Request,
    ctx: Stage,
    name: str,
    emit: Callable[[object], None],
    ask: Callable[[Request, Callable[[object], None]], Awaitable[object]],
) -> Reply:
    """Return what ``ask``, the model's way to be asked, replies, inside of the step ``name``.

    Raises: as ``think``.
    """
    if (batches := current_batches()) is not None:
        batches.check(model)
    sent = await with_files(request, getattr(ctx, "workspace", None))
    whole: list[str] = []
    for tool in request.tools:
        if tool.kind:
            known = getattr(model, "provider_tools", ())
            check_provider_tools([tool], known, _shown_name(model))
        if tool.kind == "computer":
            whole.append(tool.name)
    spread = spread_results(sent.messages, getattr(model, "modalities", None), whole)
    if spread is not sent.messages:
        sent = replace(sent, messages=spread)
    with await ctx.reserve(
        model=names_of(model),
        characters=partial(size_of, request),
        output_tokens=max_output_tokens(request),
    ) as reservation:
        with on_clock(getattr(ctx, "clock", None)), asked_by(ctx, name):
            shown = ShownThoughts(emit)
            reply = await ask(sent, shown)
            shown.end()
        if not isinstance(reply, Reply):
            raise ModelContract(
                "AX654", f"the model gave {with_article(type(reply).__name__)}, not a Reply."
            )
        reply.settle(reservation)
    if reply.parts:
        reply = await filed(reply, getattr(ctx, "workspace", None))
    return _apart(reply)


def _shown_name(model: object) -> str:
    return ", ".join(names_of(model)) or type(model).__name__


def _apart(reply: Reply) -> Reply:
    """Return a reply with the thoughts at the beginning of its text as a part of their own."""
    if not _MARK.search(reply.text):
        return reply
    thoughts, text = split_thoughts(reply.text)
    if text == reply.text.strip():
        return reply
    return replace(reply, text=text, parts=(*reply.parts, *reasoning_parts([thoughts])))


_MARK = re.compile(r"</?th(?:ink|ought)|\[/?think\]", re.IGNORECASE)


def names_of(model: object) -> tuple[str, ...]:
    """Return the names under which prices know a model: its ``names``, or its ``name``."""
    names = getattr(model, "names", None)
    if isinstance(names, (list, tuple)):
        return tuple(str(name) for name in cast("Sequence[object]", names))
    name = getattr(model, "name", None)
    return (name,) if isinstance(name, str) and name else ()


_IMAGE_CHARACTERS = 12_000
"""The characters that an image counts as, of any size."""


def size_of(request: Request) -> int:
    """Return the characters, four a token, of messages, tools and the schema of the reply."""
    size = 0 if request.output is None else len(_json(request.output.schema))
    for m in request.messages:
        size += _size(m.get("content"))
        if calls := m.get("tool_calls"):
            size += len(_json(calls))
    for tool in request.tools:
        size += len(tool.name) + len(tool.description) + len(_json(tool.parameters))
    return size


def _size(content: object) -> int:
    if isinstance(content, str):
        return size_in_characters(content)
    size = len(_json(content))
    for part in cast("Sequence[Any]", content) if isinstance(content, (list, tuple)) else ():
        if is_part(part) and part["type"] == "image" and part.get("data"):
            size -= max(0, len(part["data"]) - _IMAGE_CHARACTERS)
    return size


def max_output_tokens(request: Request) -> int | None:
    """Return the most tokens that the reply may have, if the settings say so."""
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        value = request.settings.get(name)
        if type(value) is int:
            return value
    return None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


async def converse(messages: Sequence[Message], options: ChatOptions, ctx: Stage) -> Answer:
    """Ask until there is an answer that can be used.

    Raises: ReplyError (AX652): no reply could be used, (AX805): the model would not answer;
    TurnLimit (AX653): too many turns with tools; and what the model raises.
    """
    texts = list(messages)
    acted: list[Message] = []
    faults: list[str] = []
    settings = dict(options.settings)
    turns = repairs = calls = 0
    specs = [tool.spec for tool in options.tools.values()]
    while True:
        calls += 1
        request = Request(
            messages=list(texts),
            tools=specs,
            settings=dict(settings),
            output=None if options.output is None else options.output.structure,
        )
        shown = _Shown(ctx.emit, options)
        reply = await think(options.model, request, ctx, f"model:{calls}", shown)
        on_reply = options.on_reply
        if on_reply is not None:
            reply = on_reply(reply, request.messages) or reply
        if reply.tool_calls:
            turns += 1
            check_turns(turns, options, faults)
            results = await act(reply.tool_calls, options.tools, ctx, turns, faults)
            new = [reply.message(), *results]
            texts += new
            acted += new
            if settings.get("tool_choice") == "required":  # or it could never answer
                settings["tool_choice"] = "auto"
            continue
        try:
            answer = await _answer(reply, options, ctx, f"output:{calls}")
        except ValueError as error:
            fault = _fault_to_repair(error, reply, repairs, options)
            repairs += 1
            shown.reset()
            text = f"Your reply could not be used: {fault}\nPlease answer again, in full."
            texts += [reply.message(), {"role": "user", "content": text}]
            continue
        if not answer.parts:
            shown.end(answer.fields)
        return replace(answer, acted=tuple(acted), shown=shown.count)


def check_turns(turns: int, options: ChatOptions, faults: Sequence[str]) -> None:
    """Raises: TurnLimit (AX653): so many turns with tools are too many; ``faults``: of tools."""
    if turns > options.max_turns:
        message = f"the model asked for tools more than {options.max_turns} times."
        if faults:
            message += f" The last error of a tool: {faults[-1]}"
        hint = "Raise max_turns, or find out why the model does not finish."
        raise TurnLimit("AX653", message, hint, options.where)


async def _answer(reply: Reply, options: ChatOptions, ctx: Stage, step: str) -> Answer:
    """Return what a reply answers. Raises: ValueError: what is wrong, for the model."""
    # what seems whole may have been repaired, and any text is prose
    if reply.finish == "length" and options.formatter.introduction:
        raise ValueError("it is not complete: make it shorter.")
    if reply.finish in _NO_ANSWER and options.asked:
        raise ValueError("it is no answer.")
    images = [dict(part) for part in reply.parts if is_part(part)]
    if images and isinstance(options.formatter, Prose):
        content = content_of(reply.text, images)
        fields = {options.asked[0] if options.asked else "message": content}
        parts = tuple(content) if isinstance(content, list) else (content,)
        return Answer(fields, content_text(content), extra=reply.extra, parts=parts)
    fields, value = await read(reply.text, options, ctx, step)
    return Answer(fields, reply.text, value=value, extra=reply.extra)


def _fault_to_repair(error: ValueError, reply: Reply, repairs: int, options: ChatOptions) -> str:
    """Return the fault of a reply, for the model, which is asked again.

    Raises: ReplyError (AX805, AX652): it is not.
    """
    fault = _fault(error, reply)
    if reply.finish in _NO_ANSWER:
        said = f': "{reply.text:.200}"' if reply.text else "."
        message = f"the model {_NO_ANSWER[reply.finish]}{said}"
        hint = "Asking again would not help; change what is asked."
        raise ReplyError("AX805", message, hint, options.where) from error
    if repairs >= options.max_repairs:
        last = fault.rstrip(".")
        message = f"no reply of {repairs + 1} could be used. The last fault: {last}."
        hint = "Make the task easier, or choose another formatter."
        raise ReplyError("AX652", message, hint, options.where) from error
    return fault


_LONG: Final = 100_000
"""Characters from which on a reply is read in a thread: the run may end meanwhile."""
_NO_ANSWER = {"refusal": "refused to answer", "filter": "was stopped by a content filter"}


async def read(
    text: str, options: ChatOptions, ctx: Stage, step: str
) -> tuple[dict[str, Any], Any]:
    """Return the fields of a reply, and the object of its type.

    Raises: ValueError: what is wrong, for the model.
    """
    parsing = partial(options.formatter.parse, text, tuple(options.asked))
    fields = await in_thread(parsing) if len(text) > _LONG else parsing()
    value: object = None
    if options.output is not None:
        fields, value = await options.output.read(fields, ctx, step)
    missing = [name for name in options.required if name not in fields]
    if len(missing) == 1:
        raise ValueError(f"the field {format_names(missing)} is missing.")
    if missing:
        raise ValueError(f"the fields {format_names(missing)} are missing.")
    return fields, value


def _fault(error: ValueError, reply: Reply) -> str:
    if isinstance(error, ValidationError):
        text = validation_text(error)
    else:
        message = getattr(error, "message", "") or str(error)
        text = f"{message} {getattr(error, 'hint', '')}".strip()
    return f"it broke off at the limit of its length. {text}" if reply.finish == "length" else text


async def act(
    calls: Sequence[ToolCall],
    tools: Mapping[str, Tool],
    ctx: Stage,
    turn: int,
    faults: list[str],
) -> list[Message]:
    """Return the messages with the results of ``calls``, in their order.

    What tools failed with is added to ``faults``, with its place in the user's own code.
    """
    results: list[dict[str, Any]] = [{}] * len(calls)
    pauses: list[Pause] = []

    async def do(at: int) -> None:
        try:
            results[at] = await _result(calls[at], tools, ctx, f"tool:{turn}:{at}:{calls[at].name}")
        except Pause as pause:  # the others end first, and are recorded
            pauses.append(pause)

    last = [
        at for at, call in enumerate(calls) if call.name in tools and _is_in_turn(tools[call.name])
    ]
    free = [at for at in range(len(calls)) if at not in last]
    if len(free) == 1:
        await do(free[0])
    elif free:
        try:
            async with asyncio.TaskGroup() as group:
                for at in free:
                    group.create_task(do(at))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
    for at in last:
        await do(at)
    if pauses:
        raise Pause(*(question for pause in pauses for question in pause.questions))
    for call, result in zip(calls, results, strict=True):
        if result["failed"]:
            place = f" (at {result['place']})" if "place" in result else ""
            faults.append(f"{call.name}: {str(result['content']).removeprefix('Error: ')}{place}")
        if "command" in result:
            take_command(result["command"], ctx)
    return [
        {"role": "tool", "name": call.name, "content": result["content"], "tool_call_id": call.id}
        for call, result in zip(calls, results, strict=True)
    ]


def _is_in_turn(tool: Tool) -> bool:
    """Return whether a call waits for the earlier ones: it may ask, or needs approval."""
    return tool.wants_ctx or tool.needs_approval is not False


async def _result(
    call: ToolCall, tools: Mapping[str, Tool], ctx: Stage, step: str
) -> dict[str, object]:
    tool = tools.get(call.name)
    ctx.emit(
        {
            "kind": "tool_call",
            "id": call.id,
            "name": call.name,
            "arguments": plain_data(call.arguments),
        }
    )
    answer = Verdict(call.arguments)
    if tool is not None and not call.fault:
        answer = await verdict(tool, call, ctx, step)

    async def run() -> dict[str, Any]:
        if tool is None:
            known = f"Available: {format_names(list(tools), 20)}." if tools else "There are none."
            hint = did_you_mean(call.name, tools) or known
            return _failed(f'there is no tool "{call.name}". {hint}')
        if fault := call.fault or answer.refusal:
            return _failed(fault)
        try:
            given = await tool(answer.arguments, ctx)
            result: dict[str, object] = {"failed": False}
            content = given
            if isinstance(given, Command):
                content, result["command"] = result_of(given.text), plain_command(given)
            if answer.is_edited:
                content = _as_edited(answer.arguments, content)
            content = await filed_result(content, getattr(ctx, "workspace", None))
            return {"content": content, **result}
        except Refused as error:
            return _failed(f"wrong arguments: {error}")
        except (RunError, LimitReached):  # the run's own business, not the model's
            raise
        except asyncio.CancelledError:
            if (me := asyncio.current_task()) is None or me.cancelling():
                raise
            return _failed("what the tool waited for was cancelled.")  # and not the call
        except Exception as error:  # noqa: BLE001  # the model receives each error of a tool
            failed = _failed(f"{type(error).__name__}: {error}".removesuffix(": "))
            return {**failed, "place": place} if (place := own_line(error)) else failed

    result: object
    if tool is not None and not tool.recorded:
        result = await run()
    else:
        result = await ctx.step(
            step,
            run,
            request=lambda: {"name": call.name, "arguments": plain_data(call.arguments)},
            effects="idempotent" if tool is None else tool.effects_of(plain_data(answer.arguments)),
            kind="tool",
        )
        # a person has said what came of a call that broke off
        if not isinstance(result, Mapping) or not {"content", "failed"} <= result.keys():
            result = {"content": result_of(result), "failed": False}
    data = cast("dict[str, Any]", result)
    if call.name == "retrieve_context":
        note_found(data["content"])
    ctx.emit({"kind": "tool_result", "id": call.id, "name": call.name, **data})
    return data


def _as_edited(arguments: Mapping[str, object], content: Any) -> str | list[dict[str, object]]:
    """Return the result of a call with other arguments than the model's, and name them."""
    message = f"[a person changed the arguments to {_json(plain_data(arguments))}]"
    if isinstance(content, str):
        return f"{message}\n{content}"
    return [{"type": "text", "text": message}, *content]


def _failed(text: str) -> dict[str, object]:
    return {"content": f"Error: {text}", "failed": True}
