"""``UserNode``: a person says something."""

from __future__ import annotations

from typing import Any

from axil import Question
from evofabric.core.graph.nodes import Asking
from evofabric.core.typing import UserMessage


class UserNode(Asking):
    """A person whose words are appended to ``messages``.

    ``GraphEngine.run`` asks on the console; runs of ``GraphEngine.axil`` ask the channel that they
    are given, or pause.
    """

    def __init__(
        self, prompt_message: str = "Please enter your input: ", input_key: str = "user_input"
    ) -> None:
        self.prompt_message, self.input_key = prompt_message, input_key

    async def fire(self, state: Any, ctx: Any) -> Any:
        said = await ctx.ask(Question(text=self.prompt_message))
        return {"messages": [UserMessage(content=str(said))]}
