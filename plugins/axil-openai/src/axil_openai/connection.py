"""The way to OpenAI, and to services that speak as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from axil.plugin import did_you_mean, format_names
from axil_models import ModelError, Service, ServiceConfig, Usual
from axil_openai.profiles import PROFILES, Profile, profile_at

if TYPE_CHECKING:
    from openai import AsyncOpenAI

USUAL: Final = Usual(host="api.openai.com", keys=("OPENAI_API_KEY",), url="OPENAI_BASE_URL")
_NO_KEY: Final = "no-key"


class OpenAIConfig(ServiceConfig):
    """The address of a service with OpenAI's interface, and how it is called."""

    organization: str | None = Field(default=None, description="The organization that pays.")
    project: str | None = Field(default=None, description="The project that pays.")
    query: dict[str, str] = Field(
        default_factory=dict[str, str], description="Further query parameters, as api-version."
    )
    profile: str | None = Field(
        default=None,
        description="The service: deepseek, mistral, ollama, … It gives the address, the variable "
        "of the key, and what is sent; without it base_url decides.",
    )

    @field_validator("profile")
    @classmethod
    def _is_known(cls, given: str | None) -> str | None:
        if given is not None and given not in PROFILES:
            hint = did_you_mean(given, PROFILES) or f"Known: {format_names(list(PROFILES), 30)}."
            raise ValueError(f'there is no profile "{given}". {hint}')
        return given

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        profile = PROFILES.get(self.profile or "")
        if profile is not None and not profile.place and not self.base_url:
            message = f"{profile.title} has another address for each customer"
            raise ValueError(f"{message}; give base_url, as {profile.example}")
        return self


def _usual(profile: str | None) -> Usual:
    """Return the defaults of a profile; without one, OpenAI's."""
    known = PROFILES.get(profile or "openai")
    if known is None or known.name == "openai":
        return USUAL
    host = urlsplit(known.place).hostname or ""
    return Usual(host=host, keys=known.keys, place=known.place)


class Connection(Service["AsyncOpenAI"]):
    """Clients for a config, and what the service's errors mean."""

    config: OpenAIConfig

    def __init__(self, config: OpenAIConfig) -> None:
        usual = _usual(config.profile)
        super().__init__(config, usual, self._make, lambda client: client.close(), self._meaning)

    @property
    def profile(self) -> Profile:
        """The profile that the config names, else that of the host."""
        return PROFILES.get(self.config.profile or "") or profile_at(self.host)

    def _make(self, key: str) -> AsyncOpenAI:
        """Return a client, with retries of its own switched off."""
        from openai import AsyncOpenAI, Timeout

        from axil_openai.whole import whole_client

        config = self.config
        client = AsyncOpenAI(
            api_key=key or _NO_KEY,
            base_url=self.base_url,
            organization=config.organization,
            project=config.project,
            timeout=Timeout(config.timeout_seconds, connect=config.connect_timeout_seconds),
            max_retries=0,
            http_client=whole_client(),
            default_headers=config.headers or None,
            default_query=dict[str, object](config.query) or None,
        )
        return self.explicit(
            client,
            organization=config.organization,
            project=config.project,
            _custom_headers=dict(config.headers),
        )

    def _meaning(self, error: Exception) -> ModelError | None:
        import openai

        return self.sdk_meaning(openai, error)
