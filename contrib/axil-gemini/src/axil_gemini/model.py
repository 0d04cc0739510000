"""``gemini``: the generateContent API, of Google's Gemini API.

The signatures of thoughts are kept with their parts in ``Reply.extra`` and sent back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Unpack, cast

from pydantic import Field, ValidationError

from axil import ConfigError, Problem
from axil_gemini.provided import KINDS, provided
from axil_gemini.sending import conversation, tool, tool_config
from axil_gemini.streamed import StreamedReply
from axil_models import (
    Emit,
    Forms,
    ModelError,
    Remote,
    RemoteModelConfig,
    Reply,
    Request,
    Service,
    Showing,
    Usual,
    check_modalities,
    reading_reply,
    service_config,
    structure_prompt,
    with_instruction,
)

if TYPE_CHECKING:
    from google.genai import Client
    from httpx2 import AsyncClient

    from axil.plugin import SecretLike
    from axil_gemini.keywords import GeminiModelKeywords

_USUAL: Final = Usual(
    host="generativelanguage.googleapis.com",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    url="GOOGLE_GEMINI_BASE_URL",
)
_REFUSED: Final = dict.fromkeys(
    ("messages", "contents", "tools", "system_instruction", "http_options", "stream"), ""
) | {
    "n": "A model gives one reply.",
    "candidate_count": "A model gives one reply.",
}
_OURS: Final = {"max_tokens": "max_output_tokens", "stop": "stop_sequences"}


Form = Literal["schema", "object", "prompt"]
_FORMS: Final[tuple[Form, ...]] = ("schema", "object", "prompt")


class Line(NamedTuple):
    """A client, and the connections that it was given."""

    client: Client
    lines: AsyncClient

    async def close(self) -> None:
        """Close both."""
        await self.client.aio.aclose()
        self.client.close()
        await self.lines.aclose()


class GeminiConfig(RemoteModelConfig):
    """A model of Google's."""

    structured_output: Literal["auto"] | Form = Field(
        default="auto",
        description="How a reply is held to a schema. schema: by the service; object: any JSON, "
        "shown the schema; prompt: only shown it; auto: the first of these that is not refused.",
    )


class GeminiModel(Remote):
    """``gemini``: a Gemini model.

    >>> GeminiModel("gemini-3-flash").modalities == {"text", "image", "file", "audio"}
    True
    """

    examples = ({"name": "a-model", "api_key": {"env": "GEMINI_API_KEY"}},)
    provider_tools = KINDS
    capabilities = ("speaks_generate", "seals", "not_refuses", "not_textual_arguments")

    Config = GeminiConfig
    service: Service[Line]

    def __init__(
        self,
        name: GeminiConfig | str | None = None,
        api_key: SecretLike | None = None,
        base_url: str | None = None,
        settings: Mapping[str, object] | None = None,
        **more: Unpack[GeminiModelKeywords],
    ) -> None:
        """Store the settings; the first call connects.

        Args:
            name: the model's name (``model_name`` and ``model`` will do).
            api_key: ``{"env": NAME}``, ``"${NAME}"``, or the key; without it ``GEMINI_API_KEY`` or
                ``GOOGLE_API_KEY``, by the first call.
            base_url: without it ``GOOGLE_GEMINI_BASE_URL``, else Google.
            settings: of every request; also as ``invoke_settings``.
            more: what else ``GeminiConfig`` has.
        Raises: ConfigError: all that is wrong with them.
        """
        self.config: GeminiConfig = service_config(
            GeminiConfig, name, api_key, base_url, {"settings": settings, **more}
        )
        self.modalities = frozenset(self.config.modalities or ("text", "image", "file", "audio"))
        self._forms = Forms[Form]()
        self.service = Service(
            self.config, _USUAL, self._make, lambda line: line.close(), self._meaning
        )

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the answer, streamed.

        Raises: ModelError (AX660); PartError (AX801): it cannot take a part; ConfigError (AX800,
        AX806).
        """
        check_modalities(request.messages, self.modalities, repr(self))
        chosen = self.config.structured_output
        forms = _FORMS if chosen == "auto" else (chosen,)
        return await self._forms.first_taken(
            request, forms, lambda form: self._asked_for(request, form, emit)
        )

    async def _asked_for(self, request: Request, form: Form, emit: Emit) -> Reply:
        """Return the answer to a request that asks for its structure in this form."""
        asked = self._asked(request, form)

        async def attempt(line: Line, show: Showing) -> Reply:
            reply = StreamedReply(show, request, self._origin(asked["model"]))
            models: Any = line.client.aio.models
            stream = await models.generate_content_stream(**_typed(asked))
            try:
                with reading_reply():
                    async for chunk in stream:
                        reply.take(chunk)
                    return reply.reply(self.config.prices)
            finally:
                await stream.aclose()

        return await self.service.call(attempt, emit)

    def _asked(self, request: Request, form: Form = "schema") -> dict[str, Any]:
        """Return the request as the API takes it."""
        settings = self.config.settings_for(request, _REFUSED)
        config = {
            _OURS.get(name, name): value for name, value in settings.items() if value is not None
        }
        name = config.pop("model", None) or self.config.name
        stop = config.get("stop_sequences")
        if isinstance(stop, str):
            config["stop_sequences"] = [stop]
        seconds = config.pop("timeout_seconds", self.config.timeout_seconds)
        config["http_options"] = {"timeout": int(seconds * 1000)}
        effort = config.pop("reasoning_effort", None)
        if effort is not None:
            config["thinking_config"] = {
                **(config.get("thinking_config") or {}),
                "thinking_level": str(effort).upper(),
            }
        choice = tool_config(config.pop("tool_choice", None))
        config.pop("parallel_tool_calls", None)  # the API has no such setting
        if request.tools:
            own, more = provided([each for each in request.tools if each.kind])
            functions = [tool(each) for each in request.tools if not each.kind]
            config = {**more, **config}
            declared = [{"function_declarations": functions}] if functions else []
            if own or declared:
                config["tools"] = [*own, *declared]
            if choice is not None:
                config["tool_config"] = choice
        messages = list(request.messages)
        if request.output is not None:
            if form != "prompt":
                config["response_mime_type"] = "application/json"
            if form == "schema":
                config["response_json_schema"] = dict(request.output.schema)
            else:
                messages = with_instruction(messages, structure_prompt(request.output))
        system, contents = conversation(messages, self._origin(name))
        if system:
            config["system_instruction"] = system
        config["automatic_function_calling"] = {"disable": True}
        return {"model": name, "contents": contents, "config": config}

    def _origin(self, name: str) -> str:
        return f"{self.service.address} {name}"

    def _make(self, key: str) -> Line:
        """Return a client, without retries, on connections that we close."""
        import httpx2
        from google.genai import Client, _api_client
        from google.genai.types import HttpOptions

        config = self.config
        lines = httpx2.AsyncClient(
            timeout=httpx2.Timeout(config.timeout_seconds, connect=config.connect_timeout_seconds)
        )
        version = None  # a variable of the environment may set it, but not for a file
        if self.service.is_of_a_file:
            version = getattr(_api_client, "GOOGLE_AI_API_DEFAULT_VERSION", "v1beta")
        options = HttpOptions(
            base_url=self.service.base_url,
            api_version=version,
            headers=config.headers or None,
            httpx_async_client=lines,
        )
        return Line(Client(api_key=key or "no-key", vertexai=False, http_options=options), lines)

    def _meaning(self, error: Exception) -> ModelError | None:
        from google.genai import errors

        if isinstance(error, errors.UnknownApiResponseError):
            return ModelError(f"{self.service.host} sent what is no JSON.", transient=True)
        if not isinstance(error, errors.APIError):
            return None
        given = cast("Any", error)
        headers = getattr(given.response, "headers", None)
        status = given.code if isinstance(given.code, int) and given.code else 500
        return self.service.refused(status, given.details or given.message, headers)


def _typed(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request as the SDK's own types, which know what each name is on the wire.

    Raises: ConfigError (AX806): a setting is unknown.
    """
    from google.genai import types

    try:
        config = types.GenerateContentConfig.model_validate_json(
            json.dumps(asked["config"], ensure_ascii=True)
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(key) for key in first["loc"])
        message, hint = first["msg"] + ".", "See GenerateContentConfig of google-genai."
        raise ConfigError(Problem("AX806", f"settings.{where}", message, hint)) from None
    contents = [
        types.Content.model_validate_json(json.dumps(each, ensure_ascii=True))
        for each in asked["contents"]
    ]
    return {**asked, "config": config, "contents": contents}
