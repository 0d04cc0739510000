"""Blocks of context: how they are asked for, compared, filtered and kept."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from axil.plugin import signature_of, with_article
from axil_models.context import ContextBlock, ContextQuery
from axil_models.errors import ContextError
from axil_models.parts import checked_part
from axil_models.threads import call_async


def provider_label(provider: object) -> str:
    """Return the label of a provider."""
    return str(getattr(provider, "context_label", None) or type(provider).__name__)


def named_providers(providers: Sequence[object]) -> list[tuple[str, object]]:
    """Return the providers with names that differ: those that share a label are numbered,
    ``DOCS#1``.
    """
    labels = [provider_label(provider) for provider in providers]
    seen: dict[str, int] = {}
    result: list[tuple[str, object]] = []
    for label, provider in zip(labels, providers, strict=True):
        number = seen[label] = seen.get(label, 0) + 1
        result.append((f"{label}#{number}" if labels.count(label) > 1 else label, provider))
    return result


def takes_context(provider: Any) -> bool:
    """Return whether a provider is given the context of the firing."""
    try:
        return "ctx" in signature_of(provider.get_blocks).parameters
    except (TypeError, ValueError):  # its failure is named where it is asked
        return False


async def blocks_of(
    provider: Any, query: ContextQuery, top_k: int, where: str = "", ctx: object = None
) -> list[ContextBlock]:
    """Ask a provider for its blocks and return them, best first.

    Raises: ContextError (AX658): it failed, or gave something else.
    """
    try:
        takes = signature_of(provider.get_blocks).parameters
        named: dict[str, Any] = {"top_k": top_k} if len(takes) > 1 else {}
        if "ctx" in takes:
            named["ctx"] = ctx
        given = await call_async(provider.get_blocks, query, **named)
        if isinstance(given, (str, Mapping)):
            kind = "text" if isinstance(given, str) else "mapping"
            raise TypeError(f"get_blocks gave {with_article(kind)}; expected a list of blocks")
        return sorted((block_of(each) for each in given or ()), key=_rank)[:top_k]
    except Exception as error:  # a provider is code of others: its failure is named
        cause = f"{type(error).__name__}: {error}".removesuffix(": ")
        message = f'the context provider "{provider_label(provider)}" failed ({cause}).'
        raise ContextError("AX658", message, where=where) from error


def _rank(block: ContextBlock) -> tuple[bool, float]:
    """Return where a block comes; one without a score, or with one that is no number, at the
    end.
    """
    score = block.score
    return (True, 0.0) if score is None or math.isnan(score) else (False, -score)


def block_of(given: object) -> ContextBlock:
    """Return a block from a block, a mapping, a text, or anything with a ``text``.

    Raises: PartError (AX802, AX803): its part is malformed or too large.
    """
    if isinstance(given, str):
        return ContextBlock(given)
    block = given if isinstance(given, ContextBlock) else ContextBlock(**_block(given))
    if not isinstance(cast("object", block.text), str):
        raise TypeError(f"the text of a context block is {block.text!r:.60}; expected a text")
    return block if block.part is None else replace(block, part=checked_part(block.part))


def _block(given: object) -> dict[str, Any]:
    names = ("text", "uri", "chunk_id", "score", "title", "metadata", "dedupe_key", "part")
    if isinstance(given, Mapping):
        has = cast("Mapping[str, Any]", given)
    else:
        has = {n: getattr(given, n) for n in names if hasattr(given, n)}
    if "text" not in has and has.get("part") is None:
        raise TypeError(f"{given!r:.60} is not a context block: it has no text")
    return {"text": "", **{name: has[name] for name in names if has.get(name) is not None}}


def block_identity(block: ContextBlock) -> str:
    """Return the key that equal blocks share."""
    if block.dedupe_key:
        return f"key:{block.dedupe_key}"
    if block.uri:
        return f"uri:{block.uri}#{block.chunk_id}" if block.chunk_id else f"uri:{block.uri}"
    held = block.text if block.part is None else f"{block.text}\n{sorted(block.part.items())}"
    digest = hashlib.sha1(held.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    return f"text:{digest.hexdigest()}"


def with_provider(blocks: Iterable[ContextBlock], provider: str) -> list[ContextBlock]:
    """Return the blocks with the provider's name in their metadata, which is a copy."""
    return [replace(block, metadata={**block.metadata, "provider": provider}) for block in blocks]


def fits_filters(metadata: Mapping[str, object], filters: Mapping[str, object]) -> bool:
    """Return whether a block with ``metadata`` is one that ``filters`` ask for.

    >>> fits_filters({"lang": "en", "n": 1}, {"lang": "en"}), fits_filters({}, {"lang": "en"})
    (True, False)
    """
    return all(name in metadata and metadata[name] == value for name, value in filters.items())


def block_data(block: ContextBlock) -> dict[str, object]:
    """Return a block as plain data that ``ContextBlock(**…)`` takes, without score and key."""
    data = {name: getattr(block, name) for name in ("text", "uri", "chunk_id", "title")}
    data["metadata"] = dict(block.metadata)
    return data if block.part is None else {**data, "part": dict(block.part)}


def block_key(block: ContextBlock) -> tuple[str, str]:
    """Return the key by which an index knows a block.

    Raises: ContextError (AX892): it has neither ``uri`` nor ``chunk_id``.
    """
    if not block.uri and not block.chunk_id:
        message = f"a block for an index has neither uri nor chunk_id: {block.text!r:.60}."
        raise ContextError("AX892", message, "Give it one of them.")
    return block.uri or "", block.chunk_id or ""
