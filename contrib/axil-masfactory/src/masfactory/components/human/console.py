"""The channel that asks a person on the console."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from axil import Question

END = "$END"


class Console:
    """A channel of axil that prints a question and reads lines up to ``$END``."""

    async def ask(self, question: Question) -> Any:
        """Give what was typed, or that it was confirmed.

        Raises: EOFError: the input ended before ``$END``.
        """
        text = await asyncio.to_thread(_asked, str(question.text))
        return True if question.kind == "approval" else text


def _asked(text: str) -> str:
    sys.stdout.write(f"{text}\n(end with a line {END})\n")
    lines: list[str] = []
    while (line := input()).strip() != END:
        lines.append(line)
    return "\n".join(lines)
