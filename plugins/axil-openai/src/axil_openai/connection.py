"""The way to OpenAI, and to services that speak as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from axil_models import ModelError, Service, ServiceConfig, Usual

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


class Connection(Service["AsyncOpenAI"]):
    """Clients for a config, and what the service's errors mean."""

    def __init__(self, config: Any) -> None:
        super().__init__(config, USUAL, self._make, lambda client: client.close(), self._meaning)

    @property
    def is_openai(self) -> bool:
        """True if it is OpenAI itself, or Azure's."""
        return self.is_at_its_makers or self.host.endswith(".azure.com")

    def _make(self, key: str) -> AsyncOpenAI:
        """Return a client, with retries of its own switched off."""
        from openai import AsyncOpenAI, Timeout

        from axil_openai.whole import whole_client

        config: Any = self.config
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
