"""The channel that asks a person on the console."""

from __future__ import annotations

import asyncio
from typing import Any

from axil import Question


class Console:
    """A channel of axil that prints a question and reads a line."""

    async def ask(self, question: Question) -> Any:
        """Give what was typed. Raises: EOFError: there is no more input."""
        return await asyncio.to_thread(input, str(question.text))
