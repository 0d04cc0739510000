"""``UserNode``: a person says something."""

from __future__ import annotations

import asyncio
from typing import Any

from axil import Question
from evofabric.core.graph import AsyncNode
from evofabric.core.graph.streaming import current_run
from evofabric.core.typing import UserMessage


class UserNode(AsyncNode):
    """A person whose words are appended to ``messages``.

    ``GraphEngine.run`` asks on the console; runs of ``GraphEngine.axil`` ask the channel that they
    are given, or pause.
    """

    prompt_message: str = "Please enter your input: "
    input_key: str = "user_input"

    async def __call__(self, state: Any) -> Any:
        del state
        ctx = current_run()
        try:
            if ctx is not None:
                said = await ctx.ask(Question(text=self.prompt_message))
            else:
                said = await asyncio.to_thread(input, self.prompt_message)
        except EOFError:
            said = ""
        text = str(said).strip()
        return {"messages": [UserMessage(content=text)] if text else []}
