"""``fern.rounds``: says in which round of its loop a message came."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from axil import Out

__all__ = ["Rounds"]


class Rounds:
    """``fern.rounds``: passes on what came, marked with ``round`` (from 1) and ``last``."""

    inline = True
    examples = ({"most": 3}, {"most": 2, "label": "Round {round}: "})

    class Config(BaseModel, extra="forbid", frozen=True):
        """The number of rounds."""

        most: int = Field(ge=1, description="The round whose messages are marked as the last ones.")
        label: str = Field(
            default="", description="Put before each text: {round} stands for the round."
        )

    def __init__(self, config: Config) -> None:
        self.config = config

    def run(self, messages: list[dict[str, Any]], local: dict[str, Any]) -> Out:
        """Return one round. ``local`` is what the node keeps for itself in this run."""
        count = local["round"] = local.get("round", 0) + 1
        label = self.config.label.replace("{round}", str(count))
        marks = {"round": count, "last": count >= self.config.most}
        return Out(
            [
                {**m, **marks, "content": f"{label}{m['content']}" if label else m["content"]}
                for m in messages
            ]
        )
