"""``quorum``: a node fires as soon as enough of its incoming edges have brought something."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

__all__ = ["Quorum"]


class Quorum:
    """``quorum``: fires once so many edges are live, and never once that is impossible."""

    early = True
    per_token = False
    examples = ({"of": 1}, {"of": 2, "rest": "cancel"})

    class Config(BaseModel, extra="forbid", frozen=True):
        """The number of edges that is enough."""

        of: int = Field(ge=1, description="So many edges with a token are enough.")
        rest: Literal["ignore", "cancel"] = Field(
            default="ignore",
            description="What becomes of those that are still at work: their results are ignored, "
            "or they are cancelled where they lead nowhere else.",
        )

    def __init__(self, config: Config) -> None:
        self.config = config

    def __repr__(self) -> str:
        return f"Quorum(of={self.config.of}, rest={self.config.rest!r})"

    @property
    def rest(self) -> Literal["ignore", "cancel"]:
        """The treatment of firings that the join does not wait for: ``ignore`` or ``cancel``."""
        return self.config.rest

    def fires(self, live: int, dead: int, total: int, /) -> bool | None:
        """Return whether the node fires; None: that depends on further edges.

        >>> two = Quorum(Quorum.Config(of=2))
        >>> two.fires(1, 0, 3), two.fires(2, 0, 3), two.fires(1, 2, 3)
        (None, True, False)
        """
        if live >= self.config.of:
            return True
        return None if total - dead >= self.config.of else False
