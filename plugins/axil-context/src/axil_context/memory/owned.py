"""The settings of memories that are kept apart by their owner."""

from __future__ import annotations

from pydantic import Field

from axil_models import Owner, ProviderSettings


class OwnedSettings(ProviderSettings):
    """The owner of a memory."""

    namespace: list[Owner] = Field(
        default_factory=list[Owner], description="Kept apart for each: run, session, agent, user."
    )
    user_field: str = Field(
        "user", description="The attribute or input that holds the user's name."
    )
