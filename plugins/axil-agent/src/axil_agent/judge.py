"""``judge``: a model decides when a loop ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from axil.plugin import is_messages
from axil_agent.models import Chosen
from axil_agent.speakers import transcript
from axil_agent.template import places, rendered
from axil_agent.verdict import TRIES, decided
from axil_models import ModelLike, plain_data

if TYPE_CHECKING:
    from axil_agent.stage import Stage

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
    """``judge``: asks a model, once a round, whether a loop ends."""

    model_calls = TRIES
    """The most times that it may ask the model at each end of a round."""

    def __init__(self, model: ModelLike | None = None, prompt: str = "") -> None:
        """``prompt``: the condition; places for unknown fields stay as they are."""
        self.prompt = prompt
        self._model = Chosen(model, "the loop's model")

    async def decide(
        self, fields: Mapping[str, object], attributes: Mapping[str, object], ctx: Stage
    ) -> bool:
        """Return whether the loop ends. Raises: ReplyError (AX659): the model does not say."""
        unknown = {name: f"{{{name}}}" for name in places(self.prompt)}
        condition = rendered(self.prompt, {**unknown, **attributes, **fields})
        shown = {name: _shown(value) for name, value in fields.items()}
        user = f"CONDITION:\n{condition}\n\nANSWER:\n{shown!r}"
        messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": user}]
        return await decided(self._model.now(), messages, _WORDS, ctx, "judge")


def _shown(value: object) -> object:
    """Return a field as the model is shown it: of a conversation its transcript."""
    data = plain_data(value)
    return transcript(data) if data and is_messages(data) else data
