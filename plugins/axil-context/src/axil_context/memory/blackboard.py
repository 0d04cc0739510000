"""``context:blackboard``: notes that the agents of one run leave for each other, in its state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from pydantic import Field

from axil import ConfigError, Problem
from axil_models import (
    ContextBlock,
    ContextQuery,
    ProviderSettings,
    Turn,
    decoded_settings,
    fits_filters,
    plain_data,
    turn_id,
    turn_text,
)

if TYPE_CHECKING:
    from axil_context.keywords import BlackboardKeywords


class BlackboardConfig(ProviderSettings):
    """The place of the notes, and how many count."""

    share: str = Field(
        "blackboard",
        min_length=1,
        description="The attribute that holds the notes; agents with one name share them.",
    )
    remember: Literal["turn", "reply"] = Field(
        "reply", description="The content of a note: the reply, or the task and the reply."
    )
    max_items: int = Field(
        1000,
        ge=1,
        description="Notes that count, the newest; others fall off unless the field only grows.",
    )


class Blackboard:
    """Notes in the state, the newest ``top_k`` of them shown, oldest first."""

    capabilities = ("not_searches",)

    Config = BlackboardConfig

    def __init__(
        self, config: BlackboardConfig | None = None, **settings: Unpack[BlackboardKeywords]
    ) -> None:
        """``settings``: those of ``BlackboardConfig``. Raises: ConfigError."""
        self.config = decoded_settings(BlackboardConfig, config, settings)
        self.share = self.config.share
        self.context_label = self.config.context_label or "blackboard"
        self.passive, self.active = self.config.passive, self.config.active

    def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return the newest notes, oldest first.

        Raises: ConfigError (AX916): the attribute holds something else.
        """
        known = self.keep(_notes(query.attributes.get(self.share), self.share))
        shown = [self._block(note) for note in known]
        fitting = [block for block in shown if fits_filters(block.metadata, query.filters)]
        return fitting[-top_k:] if top_k > 0 else []

    def _block(self, note: Mapping[str, object]) -> ContextBlock:
        by, text = str(note.get("by") or ""), str(note.get("text") or "")
        about = {name: note[name] for name in ("by", "node", "turn") if name in note}
        shown = f"{by}: {text}" if by else text
        metadata = {**about, "provider": self.context_label}
        return ContextBlock(shown, f"state:{self.share}", _id(note), metadata=metadata)

    def notes(self, turn: Turn, /) -> list[dict[str, object]]:
        """Return the note that a turn leaves; none, if nothing was said."""
        text = turn_text(turn, self.config.remember)
        if not text.strip():
            return []
        return [
            {
                "id": turn_id(turn),
                "by": turn.role_name,
                "node": turn.query.node_name,
                "turn": turn.number,
                "text": text,
            }
        ]

    def keep(self, notes: Sequence[Mapping[str, object]], /) -> list[dict[str, object]]:
        """Return the newest ``max_items``, each once."""
        known: dict[str, dict[str, object]] = {}
        for note in notes:
            known.setdefault(_id(note), dict(note))
        return list(known.values())[-self.config.max_items :]

    def __repr__(self) -> str:
        return f"Blackboard(share={self.share!r})"


def _id(note: Mapping[str, object]) -> str:
    """Return the name of a note; of one that has none, a digest of it."""
    if note.get("id"):
        return str(note["id"])
    text = json.dumps(plain_data(note), sort_keys=True, default=str)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def _notes(value: object, share: str) -> Sequence[Mapping[str, object]]:
    if value is None:
        return ()
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    notes = cast("Sequence[Any]", value if is_list else ())
    if not is_list or not all(isinstance(note, Mapping) for note in notes):
        message = f'expected a list of notes in "{share}", found {value!r:.60}.'
        hint = "Give the blackboard an attribute of its own."
        raise ConfigError(Problem("AX916", f"blackboard.{share}", message, hint))
    return notes
