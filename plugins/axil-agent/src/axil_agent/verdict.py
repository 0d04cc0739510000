"""A yes or a no from a model, read by words: "eyes" is no yes, "I would not stop" is no stop."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from axil.plugin import Message
from axil_agent.converse import think
from axil_agent.errors import ReplyError
from axil_agent.stage import Stage
from axil_models import Model, Request

TRIES: Final = 3
"""The number of times that an answer is asked for until one can be read."""
_WORD = re.compile(r"[^\W\d_]+")
_NEGATIONS = frozenset({"not", "never", "cannot", "t", "nor", "without", "if", "unless"})
"""The ``t`` is that of "don't"."""
_THOUGHT = re.compile(r"<(think|thinking)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)


def verdict(text: str, words: Mapping[str, bool]) -> bool | None:
    """Return the verdict of the text: its first or its last word, else the only verdict in it;
    None: it is unclear.

    >>> words = {"yes": True, "no": False}
    >>> [verdict(text, words) for text in ("YES.", "Answer: **no**", "eyes", "yes and no",
    ...     "<think>no</think>yes")]
    [True, False, None, None, True]
    """
    texts = [word.casefold() for word in _WORD.findall(_THOUGHT.sub("", text))]
    found = [words[word] for word in texts if word in words]
    if not found:
        return None
    ends = [words[word] for word in (texts[0], texts[-1]) if word in words]
    is_negated = not _NEGATIONS.isdisjoint(texts)
    if texts[0] in words or (ends and not is_negated):
        return ends[0] if len(set(ends)) == 1 else None
    return found[0] if len(set(found)) == 1 and len(texts) <= 12 and not is_negated else None


async def decided(
    model: Model,
    messages: Sequence[Message],
    words: Mapping[str, bool],
    ctx: Stage,
    name: str,
    where: str = "",
) -> bool:
    """Ask until the answer is one of ``words``; three times at most. Raises: ReplyError (AX659)."""
    texts = list(messages)
    asked = " or ".join(word.upper() for word in list(words)[:2])
    text = ""
    for attempt in range(TRIES):
        reply = await think(model, Request(messages=list(texts)), ctx, f"{name}:{attempt}")
        text = reply.text
        answer = verdict(text, words)
        if answer is not None:
            return answer
        again = f"Please answer with one word: {asked}."
        texts += [reply.message(), {"role": "user", "content": again}]
    message = f'the model was asked for {asked} and answered "{text:.80}".'
    raise ReplyError("AX659", message, "Ask more clearly, or another model.", where)
