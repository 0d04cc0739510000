"""Context of memories and retrievers: put into the prompt (passive), or asked for by the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

from axil.plugin import did_you_mean, format_names
from axil_agent.citations import HEADING, SOURCES, note_sources, numbers_from, source_of
from axil_agent.stage import Stage
from axil_models import (
    ContextBlock,
    ContextError,
    ContextQuery,
    Part,
    PartNumbers,
    Refused,
    Tool,
    as_text,
    block_identity,
    blocks_of,
    estimated_tokens,
    named_providers,
    on_clock,
    part_label as named_part,
    plain_data,
    provider_label,
    takes_context,
    text_part,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPolicy:
    """The bounds on how much context goes into a prompt."""

    per_provider: int = 8
    """The number of blocks that each provider is asked for."""
    total: int = 8
    """Blocks in all; of equals the first."""
    budget_tokens: int | None = None
    """The tokens of the blocks' texts in all, as ``tokens_of`` counts; a block that does not fit is
    left out. None: no limit.
    """
    tokens_of: Callable[[str], int] = estimated_tokens
    failures: Literal["raise", "report"] = "raise"
    """``report``: a provider that fails is reported, and the agent continues without it."""
    cite: bool = False
    """True: blocks are numbered, and those that the answer names are the node's field
    ``citations``.
    """


def is_provider(given: object) -> bool:
    """Return whether an object can be among an agent's memories or retrievers."""
    names = ("get_blocks", "recall", "notes", "learn", "insert", "tools")
    return not isinstance(given, type) and any(hasattr(given, name) for name in names)


def is_passive(provider: object) -> bool:
    """Return whether a provider's blocks go into the prompt."""
    return all(getattr(provider, name, True) for name in ("passive", "supports_passive"))


def is_active(provider: object) -> bool:
    """Return whether the model may query the provider."""
    return getattr(provider, "active", False) and getattr(provider, "supports_active", True)


_TASK = ("input", "task", "task_description", "question", "query", "message", "content", "text")


def query_text(inputs: Mapping[str, object], rendered: str) -> str:
    """Return the text to search context for: a field that holds the task, else the message, else
    all fields.

    >>> query_text({"n": 1, "question": "why?"}, "Say: why?"), query_text({"n": 1}, "Say 1.")
    ('why?', 'Say 1.')
    """
    for name in _TASK:
        value = inputs.get(name)
        if value is not None and (text := as_text(value).strip()):
            return text
    if rendered.strip():
        return rendered
    if len(inputs) == 1:
        return as_text(next(iter(inputs.values())))
    return as_text(dict(inputs)) if inputs else ""


Labelled = tuple[str, ContextBlock]


def composed(
    found: Sequence[tuple[str, Sequence[ContextBlock]]], policy: ContextPolicy
) -> list[Labelled]:
    """Return the blocks that are shown: by provider, each once, within the policy's limits."""
    seen: set[str] = set()
    chosen: list[Labelled] = []
    left = policy.budget_tokens
    for label, blocks in found:
        for block in blocks:
            key = block_identity(block)
            if len(chosen) >= policy.total or key in seen or not (block.text.strip() or block.part):
                continue
            seen.add(key)
            if left is not None:
                cost = policy.tokens_of(block.text)
                if cost > left:
                    continue
                left -= cost
            chosen.append((label, block))
    return chosen


def rendered(
    blocks: Sequence[Labelled],
    name: Callable[[Part], str] = named_part,
    *,
    cite: bool = False,
    first: int = 1,
) -> str:
    """Return the blocks as text, with ``name(part)`` for what is none; empty: there is none.

    ``cite``: with numbers, from ``first`` on.

    >>> fern = ContextBlock("a fern", part={"type": "image", "url": "https://example.org/fern.png"})
    >>> rendered([("DOCS", ContextBlock("axils are angles")), ("ALBUM", fern)])
    '[Context]\\n(DOCS) axils are angles\\n(ALBUM) [image: fern.png] a fern'
    """
    lines: list[str] = [HEADING if cite else "[Context]"] if blocks else []
    for number, (label, block) in enumerate(blocks, first):
        text = block.text
        if block.part is not None:
            text = f"{name(dict(block.part))} {text}".rstrip()
        lines.append(f"[{number}] ({label}) {text}" if cite else f"({label}) {text}")
    return "\n".join(lines)


async def passive_context(
    providers: Sequence[object],
    query: ContextQuery,
    policy: ContextPolicy,
    ctx: Stage,
    where: str = "",
    numbering: PartNumbers | None = None,
) -> str:
    """Return the blocks of passive providers for the query, as text; a recorded step.

    Providers are asked side by side, those that take ``ctx`` one after another, behind them.
    ``numbering`` names and holds the images, files and recordings; without it they are not sent.
    """
    some = [
        (label, provider)
        for label, provider in named_providers(providers)
        if is_passive(provider) and hasattr(provider, "get_blocks")
    ]
    if not some:
        return ""

    async def ask(label: str, provider: object) -> tuple[str, list[ContextBlock]]:
        blocks: list[ContextBlock] = []
        try:
            with on_clock(getattr(ctx, "clock", None)):
                blocks = await blocks_of(provider, query, policy.per_provider, where, ctx)
        except ContextError as error:
            if policy.failures == "raise":
                raise
            ctx.emit({"kind": "context_failed", "provider": label, "error": str(error)})
        return provider_label(provider), blocks

    async def look() -> object:
        last = [at for at, (_, provider) in enumerate(some) if takes_context(provider)]
        free = [at for at in range(len(some)) if at not in last]
        found: dict[int, tuple[str, list[ContextBlock]]] = {}
        if len(free) > 1:
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = {at: group.create_task(ask(*some[at])) for at in free}
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None
            found, free = {at: task.result() for at, task in tasks.items()}, []
        for at in (*free, *last):
            found[at] = await ask(*some[at])
        chosen = composed([found[at] for at in range(len(some))], policy)
        if all(block.part is None for _, block in chosen) and not policy.cite:
            return rendered(chosen)
        return [
            {
                "label": label,
                "text": block.text,
                "part": None if block.part is None else dict(block.part),
                **({"source": source_of(number, label, block)} if policy.cite else {}),
            }
            for number, (label, block) in enumerate(chosen, 1)
        ]

    seen = await ctx.step("context", look)
    if isinstance(seen, str):
        return seen
    blocks = [
        (str(each["label"]), ContextBlock(each["text"], part=each["part"]))
        for each in cast("list[dict[str, Any]]", seen)
    ]
    if policy.cite:
        note_sources([each["source"] for each in cast("list[dict[str, Any]]", seen)])
    return rendered(blocks, named_part if numbering is None else numbering, cite=policy.cite)


def active_tools(
    providers: Sequence[object], base: ContextQuery, ctx: Any = None, *, cite: bool = False
) -> list[Tool]:
    """Return the two tools with which a model asks active providers; none without providers.

    ``cite``: the blocks are numbered on from those that it was shown before.
    """
    sources = dict(named_providers([provider for provider in providers if is_active(provider)]))
    if not sources:
        return []

    async def list_context_sources() -> dict[str, object]:
        return {
            "sources": [
                {"name": n, "label": provider_label(p), "type": type(p).__name__}
                for n, p in sources.items()
            ]
        }

    async def retrieve_context(
        source: str, query: str = "", top_k: int = 8, ctx: Any = ctx
    ) -> object:
        provider = sources.get(source)
        if provider is None:
            same = [name for name in sources if name.startswith(f"{source}#")]
            if same:
                raise Refused(f'"{source}" is ambiguous: {format_names(same)}.')
            known = f"{did_you_mean(source, sources)} Available: {format_names(list(sources), 20)}."
            raise Refused(f'there is no context source "{source}". {known}')
        asked = query.strip() or base.query_text
        blocks = await blocks_of(provider, replace(base, query_text=asked), top_k, ctx=ctx)
        numbering = PartNumbers()
        label, first = provider_label(provider), numbers_from()
        labelled = [(label, block) for block in blocks]
        shown = rendered(labelled, numbering, cite=cite, first=first)
        data: dict[str, object] = {
            "provider": source,
            "query": asked,
            "blocks": [_block_data(block, numbering) for block in blocks],
            "rendered": shown,
        }
        if cite:
            data[SOURCES] = [source_of(n, label, each) for n, each in enumerate(blocks, first)]
        if not numbering.parts:
            return data
        return [text_part(json.dumps(data, ensure_ascii=False, default=str)), *numbering.parts]

    return [
        Tool(
            name="list_context_sources",
            description="List the sources of context that can be searched.",
            parameters={"type": "object", "properties": {}},
            call=list_context_sources,
            validate=lambda arguments: ((), {}),
        ),
        Tool(
            name="retrieve_context",
            description="Search one source of context.",
            parameters={
                "type": "object",
                "properties": {
                    "source": {
                        "type": "string",
                        "description": "The name of the source.",
                        "enum": list(sources),
                    },
                    "query": {
                        "type": "string",
                        "description": "What to look for; empty: the task.",
                    },
                    "top_k": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 50,
                        "default": 8,
                        "description": "How many blocks.",
                    },
                },
                "required": ["source", "query"],
            },
            call=retrieve_context,
            validate=_asked,
            wants_ctx=cite,  # numbers go on from those of the call before
        ),
    ]


def _block_data(block: ContextBlock, name: Callable[[Part], str]) -> dict[str, object]:
    data = cast("dict[str, object]", plain_data(asdict(replace(block, part=None))))
    del data["part"]
    return data if block.part is None else {**data, "part": name(dict(block.part))}


def _asked(arguments: Mapping[str, object]) -> tuple[Sequence[object], Mapping[str, object]]:
    """``query`` was ``query_text`` in MASFactory, and models trained on its prompts write it so."""
    given = dict(arguments)
    query = given.pop("query", given.pop("query_text", ""))
    given.pop("query_text", None)
    source, top_k = given.pop("source", None), given.pop("top_k", 8)
    if not isinstance(source, str) or not isinstance(query, str):
        raise Refused("source and query are texts.")
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= 50:
        raise Refused("top_k is a whole number from 1 to 50.")
    if given:
        raise Refused(f"unknown: {format_names(sorted(given))}.")
    return (), {"source": source, "query": query, "top_k": top_k}
