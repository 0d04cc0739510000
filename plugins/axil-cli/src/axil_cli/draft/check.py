"""``draft_check``: checks a drafted workflow file, and says what is wrong with it."""

from __future__ import annotations

import os
from typing import Any

from pydantic import BaseModel, Field

from axil.plugin import (
    Grants,
    Message,
    current_grants,
    default_registry,
    message,
    text_of,
)
from axil_cli.draft.files import draft_of


class DraftCheck:
    """Check the workflow file in the last message; send its drawing, or what is to be mended.

    The message has more keys: ``fine`` says whether the file passes, ``file`` is its text,
    ``summary`` its drawing and wants, or the findings.
    """

    examples = ({"name": "team.yaml", "model": "scripted"},)

    class Config(BaseModel, extra="forbid", frozen=True):
        """The settings of the check."""

        name: str = Field(
            default="team.yaml",
            description="The path of the file that is drafted: beside this file, or in a "
            "folder that this file may read.",
        )
        model: Any = Field(default="scripted", description="The value of its variable MODEL.")
        allow: list[str] = Field(
            default=[],
            description="Grants of the draft, as for axil run: read, net:HOST …; each has to be a "
            "grant of this file.",
        )

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()
        self._allow = frozenset(Grants.of(self.config.allow).words)
        self._name = self.config.name
        if (own := current_grants()) is not None:
            # checking a draft makes its components: it may do what this file may, and no more
            folder, name = os.path.split(self.config.name)
            self._name = os.path.join(own.path(folder or ".", "read", "name"), name)
            for word in sorted(self._allow):
                own.need(word, f"a draft that is checked may do what needs --allow {word}.")

    def run(self, messages: list[Message]) -> list[Message]:
        """Return the draft's drawing, or the prompt to mend it."""
        draft = draft_of(
            text_of(messages[-1]) if messages else "",
            name=self._name,
            model=self.config.model,
            registry=default_registry(),
            allow=self._allow,
        )
        said = draft.report() if draft.is_fine else draft.repair()
        return [message(said, fine=draft.is_fine, file=draft.text, summary=draft.summary())]


__all__ = ["DraftCheck"]
