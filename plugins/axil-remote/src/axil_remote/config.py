"""Settings of agents that speak A2A."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from axil.plugin import Effects, NetAddress, Secret


class A2AConfig(BaseModel):
    """The way to an agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: NetAddress = Field(
        min_length=1, description="The address below which it has its agent card."
    )
    token: Secret | None = Field(None, description="A bearer token.")
    headers: dict[str, Secret] = Field(
        default_factory=dict[str, Secret], description="Headers of each request."
    )
    effects: Effects = Field(
        "external", description="The effect of sending a message again, after a run broke off."
    )
    timeout_seconds: float = Field(
        300.0, gt=0, allow_inf_nan=False, description="The longest time to wait for an answer."
    )

    @model_validator(mode="after")
    def _is_an_address(self) -> A2AConfig:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the url does not begin with http:// or https:// and a host")
        return self


class A2AToolConfig(A2AConfig):
    """An agent as a tool."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The name of the tool.")
    description: str = Field(min_length=1, description="Its purpose, for the model.")
