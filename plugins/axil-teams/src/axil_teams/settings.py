"""Settings that teams have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field

from axil.plugin import refers_to
from axil_teams.transcript import Gives, Hears


def member(about: str, **more: Any) -> Any:
    """Return the field of one member: a node."""
    return Field(
        description=f"{about}: a node {{type, config}}, or an object of Python.",
        json_schema_extra=refers_to("graph"),
        **more,
    )


def members(about: str, **more: Any) -> Any:
    """Return the field of several members, by name."""
    return Field(
        description=f"{about}, by name: nodes {{type, config}}, or objects of Python.",
        json_schema_extra=refers_to("graph", path="/*"),
        **more,
    )


def literal(text: str) -> dict[str, Any]:
    """Return a member for the examples of the kit, which says one thing."""
    return {"type": "literal", "config": {"content": text}}


class Settings(BaseModel, extra="forbid", frozen=True):
    """Strict settings."""


class Talk(Settings, frozen=True):
    """The settings of teams that talk."""

    hears: Hears = Field(
        default="all",
        description="The messages that a member gets: all; new: those since its last turn; last: "
        "the last turn.",
    )
    gives: Gives = Field(default="answer", description="The output: the answer or the transcript.")

    @property
    def talk(self) -> dict[str, Any]:
        """The settings as ``conversation`` takes them."""
        return {"hears": self.hears, "gives": self.gives}


class Stopped(Talk, frozen=True):
    """The settings of teams that a phrase may end."""

    stop: str | Callable[[str], bool] | None = Field(
        default=None,
        description="A phrase that ends the conversation; in Python also a function of the last "
        "message.",
        json_schema_extra={"type": "string"},
    )
