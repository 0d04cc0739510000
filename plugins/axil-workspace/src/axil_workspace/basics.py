"""Tools of time and people, through the run's clock and its channel: ``basics``, and each by its
own name.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Any, ClassVar

from pydantic import Field

from axil_workspace.toolset import Tools, ToolsConfig, one_of


class Basics(Tools):
    """``basics``: the time, waiting, and asking a person."""

    class Config(ToolsConfig, frozen=True):
        """The tools, and their time limit."""

        sleep_seconds: int | float = Field(
            default=3600, ge=0, allow_inf_nan=False, description="The longest wait of sleep."
        )

    provides: ClassVar = ("current_time", "sleep", "ask_user")

    def current_time(self, ctx: Any) -> Any:
        """Say what date and time it is, and how many seconds the run has taken."""
        now = datetime.datetime.now().astimezone()
        return {
            "now": now.isoformat(sep=" ", timespec="seconds"),
            "seconds_since_start": round(ctx.now(), 3),
        }

    async def sleep(
        self, ctx: Any, seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    ) -> str:
        """Wait.

        Args:
            seconds: how long
        """
        waits = min(seconds, self.config.sleep_seconds)
        await ctx.sleep(waits)
        return f"Waited {waits:g} seconds."

    async def ask_user(
        self, ctx: Any, instruction: Annotated[str, "the question to the person"]
    ) -> str:
        """Ask the person for whom this is done, and give their answer."""
        return str(await ctx.ask(instruction))


# Each tool as a component of its own, with the same config.
current_time = one_of(Basics, "current_time")
sleep = one_of(Basics, "sleep")
ask_user = one_of(Basics, "ask_user")
