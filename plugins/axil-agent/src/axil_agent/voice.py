"""An agent that talks with a person: turns by voice, with the tools, approvals, budget and journal
of any agent.

Each turn is a step: what was heard, what was said, and what it took. So a run that was killed in a
call goes on where it was, on a new line. Without one the call has ended: a tool that was asked for
is still called, and the agent says no more. No audio is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from typing import Any, Final, Literal, cast

from axil.plugin import Message, MeterReservation
from axil_agent.commands import leads_elsewhere
from axil_agent.converse import Answer, ChatOptions, act, asked, check_turns
from axil_agent.formatters import Prose
from axil_agent.stage import Stage
from axil_models import Reply, Request, Talk, TalkingModel, Usage, current_line

_HUNG_UP = "hung_up"
_TURN_SECONDS: Final = 60
"""The time that a person speaks, as it is reserved for the transcript."""
_TOKENS_A_SECOND: Final = 4
"""The tokens of a transcript."""


First = Literal["", "agent", "person"]
"""The side that speaks first; empty: it is no conversation by voice."""


async def who_speaks_first(options: ChatOptions, ctx: Stage) -> First:
    """Return who speaks first, where an agent talks: there is a line, its model can, and its reply
    is prose.

    It is recorded, so that a run goes on as it began.
    """
    if not (hasattr(options.model, "talking") and isinstance(options.formatter, Prose)):
        return ""

    async def look() -> First:
        line = current_line()
        if line is None or not line.is_open:
            return ""
        first: First = "agent" if line.agent_begins else "person"
        line.agent_begins = True  # the next agent has been spoken to
        return first

    return await ctx.step("talks", look)


async def talk(
    messages: Sequence[Message], options: ChatOptions, first: First, ctx: Stage
) -> Answer:
    """Talk until the person hangs up, or a tool leads elsewhere; the answer is what was said.

    Raises: TurnLimit (AX653): too many turns with tools, one behind the other; and what the model
    raises.
    """
    texts = list(messages)
    is_asked = first == "agent"
    said: list[str] = []
    unheard: dict[Any, tuple[int, int]] = {}
    """The places in ``texts`` and ``said`` of what has no text yet."""
    faults: list[str] = []
    calls = turns = 0
    specs = [tool.spec for tool in options.tools.values()]
    async with AsyncExitStack() as stack:
        conversation: Talk | None = None
        writing: MeterReservation | None = None

        async def ended(reply: Reply) -> dict[str, object]:
            """Count what was written down, late texts too, and return the reply with them."""
            if writing is not None and conversation is not None:
                late = await conversation.written()
                reply = replace(reply, parts=(*late, *reply.parts))
            for part in reply.parts:
                if writing is not None and part.get("usage"):
                    Usage(**part["usage"]).settle(writing, part["model"])
            return reply.plain()

        async def turn() -> dict[str, object]:
            nonlocal conversation, writing
            line = current_line()
            if line is None or not line.is_open:
                return await ended(Reply(finish=_HUNG_UP))
            model = options.model
            if conversation is None:
                opened = cast("TalkingModel", model).talking(line)
                conversation = await stack.enter_async_context(opened)
            if not is_asked:
                if conversation.transcriber:
                    writing = await ctx.reserve(
                        model=[conversation.transcriber],
                        output_tokens=_TURN_SECONDS * _TOKENS_A_SECOND,
                        audio_seconds=_TURN_SECONDS,
                    )
                with writing or nullcontext():
                    if not await conversation.listen(request, ctx.emit):
                        return await ended(Reply(finish=_HUNG_UP))
            return await ended(await asked(model, request, ctx, name, ctx.emit, conversation.reply))

        while True:
            calls += 1
            name = f"model:{calls}"
            request = Request(messages=list(texts), tools=specs, settings=dict(options.settings))
            recorded = await ctx.step(name, turn, request=request.plain, kind="model")
            reply = Reply.read(recorded)
            has_ended = reply.finish == _HUNG_UP
            if options.on_reply is not None and not has_ended:
                reply = options.on_reply(reply, request.messages) or reply
            for part in reply.parts:
                if part.get("type") != "heard":
                    continue
                at, line_at = unheard.pop(part.get("id"), (len(texts), len(said)))
                if part.get("id") and at == len(texts):
                    unheard[part["id"]] = at, line_at
                texts[at : at + 1] = [{"role": "user", "content": part["text"]}]
                said[line_at : line_at + 1] = [f"user: {part['text']}"]
            if has_ended:
                break
            texts.append(reply.message())
            if reply.text:
                said.append(f"assistant: {reply.text}")
            is_asked = bool(reply.tool_calls)
            turns = turns + 1 if is_asked else 0
            check_turns(turns, options, faults)
            if is_asked:
                texts += await act(reply.tool_calls, options.tools, ctx, calls, faults)
                if leads_elsewhere(ctx.local):
                    break
    text = "\n".join(said)
    return Answer({options.asked[0] if options.asked else "message": text}, text)
