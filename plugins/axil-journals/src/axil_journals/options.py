"""Options of commands: ``axil run --prompts``."""

from __future__ import annotations

from typing import Any

from axil import ConfigError, Problem


class KeepPrompts:
    """keep what models are asked in the journal: "off", "digests" or "whole" """

    metavar = "HOW"

    def prepare(self, value: str, launch: Any) -> None:
        """Set how much is kept. Raises: ConfigError (AX131): there is no such amount."""
        if value not in ("off", "digests", "whole"):
            found = f'--prompts expects "off", "digests" or "whole", found "{value}".'
            raise ConfigError(Problem("AX131", "--prompts", found, "Choose one of them."))
        launch.running["prompts"] = value

    def keep(self, value: str) -> str:
        """Return the amount: a run that is resumed goes on to keep as much."""
        return value

    resume = prepare
