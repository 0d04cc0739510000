"""``judge``: a model decides when a loop ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axil_agent.models import Chosen
from axil_agent.template import places, rendered
from axil_agent.verdict import decided

_SYSTEM = (
    "You decide whether a loop ends. You are given a condition and what there is so far. "
    "Answer with one word: STOP if the condition is met, CONTINUE if it is not."
)
_WORDS = {
    "stop": True,
    "continue": False,
    "yes": True,
    "no": False,
    "terminate": True,
    "met": True,
    "unmet": False,
}


class Judge:
    """``judge``: asks a model whether a loop ends.

    ``Loop(model=…, terminate_condition_prompt=…)`` asks it once a round.
    """

    def __init__(self, model: Any = None, prompt: str = "") -> None:
        """``prompt``: the condition; it may have places for fields and attributes, unknown ones
        stay as they are.
        """
        self.prompt = prompt
        self._model = Chosen(model, "the loop's model")

    async def decide(
        self, fields: Mapping[str, Any], attributes: Mapping[str, Any], ctx: Any
    ) -> bool:
        """Return whether the loop ends.

        Raises: ReplyError (AX659): the model would not say; and what the model raises.
        """
        known = {**attributes, **fields}
        standing = {name: f"{{{name}}}" for name in places(self.prompt)}
        condition = rendered(self.prompt, {**standing, **known})
        user = f"CONDITION:\n{condition}\n\nANSWER:\n{dict(fields)!r}"
        messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": user}]
        return await decided(self._model.now(), messages, _WORDS, ctx, "judge")
