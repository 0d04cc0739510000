"""``handoff``: the tool with which an agent lets another member of its team go on."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from axil_models import Command, Tool


class Handoff:
    """``handoff``: writes the field ``next`` of the team, which names who speaks next."""

    examples = ({"to": "billing"},)

    class Config(BaseModel, extra="forbid", frozen=True):
        """The member that gets the turn."""

        to: str = Field(min_length=1, description="The name of the member.")
        description: str = Field(
            default="",
            description="The description of the member for the model; empty: only the name.",
        )

    def __init__(self, config: Config) -> None:
        self.to = config.to
        self._about = config.description or f"Hand over to {config.to}, which answers next."

    async def tools(self) -> Sequence[Tool]:
        """Return the tool ``transfer_to_NAME``."""
        name = "transfer_to_" + "".join(c if c.isalnum() or c in "_-" else "_" for c in self.to)
        reason = {"type": "string", "description": "The reason, and the task of the next member."}
        return [
            Tool(
                name=name,
                description=self._about,
                parameters={"type": "object", "properties": {"reason": reason}},
                call=self._transfer,
            )
        ]

    def _transfer(self, reason: str = "") -> Command:
        return Command(f"{self.to} answers next. Say what it should know.", write={"next": self.to})
