"""The shared part of the models of both APIs: settings, the connection, one streamed call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from axil_models import (
    Emit,
    Forms,
    Modality,
    Remote,
    Reply,
    Request,
    Showing,
    check_modalities,
    current_batches,
    service_config,
)
from axil_openai.batch import OpenAIBatches
from axil_openai.connection import Connection
from axil_openai.profiles import Form
from axil_openai.requests import ModelConfig, forms_for

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from axil.plugin import SecretLike
    from axil_openai.keywords import StreamedModelKeywords


class StreamedModel(Remote, ABC):
    """The base of models of the service: a subclass writes the request and reads the stream."""

    examples = ({"name": "a-model", "api_key": {"env": "OPENAI_API_KEY"}},)

    Config = ModelConfig
    service: Connection

    carried: ClassVar[tuple[Modality, ...]]
    """The modalities that the API can carry."""
    batch_path: ClassVar[str]
    """The path that requests in batches are for."""

    def __init__(
        self,
        name: ModelConfig | str | None = None,
        api_key: SecretLike | None = None,
        base_url: str | None = None,
        settings: Mapping[str, object] | None = None,
        **more: Unpack[StreamedModelKeywords],
    ) -> None:
        """Store the settings; the first call connects.

        Args:
            name: the model's name (``model_name`` and ``model`` will do).
            api_key: ``{"env": NAME}``, ``"${NAME}"``, or the key; without it ``OPENAI_API_KEY``,
                looked up by the first call.
            base_url: without it ``OPENAI_BASE_URL``, else OpenAI.
            settings: of every request; also as ``invoke_settings``.
            more: what else ``ModelConfig`` has.
        Raises: ConfigError: all that is wrong with them.
        """
        self.config: ModelConfig = service_config(
            ModelConfig, name, api_key, base_url, {"settings": settings, **more}
        )
        self.service = Connection(self.config)
        takes = self.service.profile.takes or self.carried
        self.modalities = frozenset(self.config.modalities or set(takes) & set(self.carried))
        self._known: frozenset[str] = frozenset()
        self._forms = Forms[Form]()

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the answer, streamed.

        Raises: ModelError (AX660); PartError (AX801): it cannot take a part; ConfigError (AX800,
        AX806, AX808).
        """
        check_modalities(request.messages, self.modalities, repr(self))
        chosen = self.config.structured_output
        forms = forms_for(request, self.service.profile) if chosen == "auto" else (chosen,)
        return await self._forms.first_taken(
            request, forms, lambda form: self._asked_for(request, form, emit)
        )

    async def _asked_for(self, request: Request, form: Form, emit: Emit) -> Reply:
        """Return the answer to a request that asks for its structure in this form."""
        asked = self._asked(request, form)
        if (batches := current_batches()) is not None:
            api = OpenAIBatches(self.service, self.batch_path, str(asked["model"]))
            return await batches.reply(
                api, asked, emit, lambda whole, show: self._read_whole(whole, asked, show)
            )

        async def attempt(client: AsyncOpenAI, show: Showing) -> Reply:
            return await self._attempt(client, asked, show)

        return await self.service.call(attempt, emit)

    def without_batches(self) -> str:
        """Return the reason why it cannot be asked in batches; empty: it can."""
        profile = self.service.profile
        if profile.is_own:
            return ""
        named = profile.title or f"{self.service.address} (it has none without profile: openai)"
        return f'axil knows no batch API of {named}, where the model "{self.name}" is.'

    @abstractmethod
    def _read_whole(
        self, whole: Mapping[str, Any], asked: Mapping[str, Any], show: Showing
    ) -> Reply:
        """Return the reply that came in one piece."""

    @abstractmethod
    def _asked(self, request: Request, form: Form = "prompt") -> dict[str, Any]:
        """Return the request as the API takes it; ``form``: of its structure, if it has one."""

    @abstractmethod
    async def _attempt(self, client: AsyncOpenAI, asked: Mapping[str, Any], show: Showing) -> Reply:
        """Send a request, and return the reply that was read from its stream."""
