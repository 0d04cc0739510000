"""Nodes that end loops: they send nothing until a count or a time is reached, then a message.

Neither stops anything by itself: a loop ends where an edge of theirs leads out of it. Count and
start time are kept in ``local``: they belong to the run, survive rounds and resume, and are never
shared between runs.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from axil import Out
from axil.plugin import message
from axil_control.messages import forwarded, send_nothing

SECONDS: Final = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0}


class LoopCounter:
    """``loop_counter``: sends its message at the Nth firing, and nothing before."""

    inline = gives_one = True
    writes = frozenset[str]()
    model_calls = 0

    class Config(BaseModel, extra="forbid", frozen=True):
        """The conditions under which ``loop_counter`` sends, and its message."""

        max_iterations: int = Field(
            default=10, ge=1, description="The firing at which the message is sent."
        )
        reset_on_emit: bool = Field(
            default=True,
            description="Count from zero again after sending; false: send at every later firing.",
        )
        message: str | None = Field(
            default=None, description='The text sent; empty: "Loop limit reached (N)".'
        )

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    @property
    def sends_at(self) -> int:
        """The firing before which it sends nothing."""
        return self.config.max_iterations

    @property
    def text(self) -> str:
        """The only text that it gives."""
        return self.config.message or f"Loop limit reached ({self.config.max_iterations})"

    def run(self, local: dict[str, Any]) -> Any:
        config = self.config
        count = local.get("count", 0) + 1
        reached = count >= config.max_iterations
        local["count"] = 0 if reached and config.reset_on_emit else count
        if not reached:
            return send_nothing()
        return [message(self.text, "assistant")]


class LoopTimer:
    """``loop_timer``: sends its message once the time is up, counted from its own first firing.

    It looks at the clock only when it fires; it interrupts nothing. As a gate (``passthrough``) it
    forwards what comes, sends its message instead at the first firing past the limit, and forwards
    again ever after.
    """

    inline = True
    writes = frozenset[str]()
    model_calls = 0

    class Config(BaseModel, extra="forbid", frozen=True):
        """The conditions under which ``loop_timer`` sends, and its message."""

        max_duration: float = Field(
            default=60.0,
            gt=0,
            allow_inf_nan=False,
            description="How long, in units of duration_unit.",
        )
        duration_unit: Literal["seconds", "minutes", "hours"] = Field(
            default="seconds", description="The unit of max_duration."
        )
        reset_on_emit: bool = Field(
            default=True,
            description="Start the clock again at each sending; false: send at every later "
            "firing. A gate sends once either way.",
        )
        message: str | None = Field(
            default=None, description='The text sent; empty: "Time limit reached (D unit)".'
        )
        passthrough: bool = Field(
            default=False,
            description="Forward what comes before the limit and after the message, as a gate.",
        )

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    def run(self, payloads: list[Any], local: dict[str, Any], ctx: Any) -> Any:
        config = self.config
        now = ctx.now()
        start = local.setdefault("start", now)
        reached = now - start >= config.max_duration * SECONDS[config.duration_unit]
        if config.passthrough:
            if not reached or local.get("sent"):
                return Out(forwarded(payloads))
            local["sent"] = True
        elif not reached:
            return send_nothing()
        elif config.reset_on_emit:
            local["start"] = now
        return [
            message(
                config.message
                or f"Time limit reached ({config.max_duration} {config.duration_unit})",
                "assistant",
            )
        ]
