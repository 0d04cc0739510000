"""``anthropic``: the Messages API.

A reply that holds more than text and tool calls (thinking, with its signature) is kept in
``Reply.extra`` and sent back unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from pydantic import Field

from axil_anthropic.batch import AnthropicBatches
from axil_anthropic.provided import KINDS, provided
from axil_anthropic.sending import EXTRA, conversation, marked, tool, tool_choice, with_text
from axil_anthropic.streamed import StreamedReply, joined
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
    current_batches,
    parameters_of_sdk,
    reading_reply,
    sdk_arguments,
    service_config,
    structure_prompt,
    with_instruction,
)

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

    from axil.plugin import SecretLike
    from axil_anthropic.keywords import AnthropicModelKeywords

_USUAL: Final = Usual(
    host="api.anthropic.com", keys=("ANTHROPIC_API_KEY",), url="ANTHROPIC_BASE_URL"
)
_REFUSED: Final = dict.fromkeys(("messages", "system", "tools", "stream", "output_format"), "") | {
    "n": "A model gives one reply."
}
_MAX_TOKENS: Final = 8192
_CONTINUED: Final = 16
"""The most requests that continue a turn that the service pauses."""


Form = Literal["auto", "schema", "prompt"]


class AnthropicConfig(RemoteModelConfig):
    """A model of Anthropic's."""

    structured_output: Form = Field(
        default="auto",
        description="How a reply is held to a schema. schema: by the service; "
        "prompt: only shown the schema; auto: schema where the service takes it, else prompt.",
    )
    prompt_cache: Literal["auto", "off"] = Field(
        default="auto",
        description="auto: where an agent goes on from a request (it has tools, or it has replied "
        "before), the service is asked to cache what the next one begins with; off: never.",
    )


class AnthropicModel(Remote):
    """``anthropic``: a Claude model.

    >>> AnthropicModel("claude-sonnet-5").modalities == {"text", "image", "file"}
    True
    """

    examples = ({"name": "a-model", "api_key": {"env": "ANTHROPIC_API_KEY"}},)
    capabilities = ("speaks_messages", "seals")
    provider_tools = KINDS

    Config = AnthropicConfig
    service: Service[AsyncAnthropic]

    def __init__(
        self,
        name: AnthropicConfig | str | None = None,
        api_key: SecretLike | None = None,
        base_url: str | None = None,
        settings: Mapping[str, object] | None = None,
        **more: Unpack[AnthropicModelKeywords],
    ) -> None:
        """Store the settings; the first call connects.

        Args:
            name: the model's name (``model_name`` and ``model`` will do).
            api_key: ``{"env": NAME}``, ``"${NAME}"``, or the key; without it ``ANTHROPIC_API_KEY``,
                looked up by the first call.
            base_url: without it ``ANTHROPIC_BASE_URL``, else Anthropic.
            settings: of every request; also as ``invoke_settings``.
            more: what else ``AnthropicConfig`` has.
        Raises: ConfigError: all that is wrong with them.
        """
        self.config: AnthropicConfig = service_config(
            AnthropicConfig, name, api_key, base_url, {"settings": settings, **more}
        )
        self.modalities = frozenset(self.config.modalities or ("text", "image", "file"))
        self._forms = Forms[Form]()
        self.service = Service(
            self.config, _USUAL, self._make, lambda client: client.close(), self._meaning
        )

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the answer, streamed.

        Raises: ModelError (AX660); PartError (AX801): it cannot take a part; ConfigError (AX800,
        AX806).
        """
        check_modalities(request.messages, self.modalities, repr(self))
        chosen = self.config.structured_output
        forms: tuple[Form, ...] = ("auto", "prompt") if chosen == "auto" else (chosen,)
        return await self._forms.first_taken(
            request, forms, lambda form: self._asked_for(request, form, emit)
        )

    async def _asked_for(self, request: Request, form: Form, emit: Emit) -> Reply:
        """Return the answer to a request that asks for its structure in this form."""
        asked = self._with_schema(request, form, self._asked(request, form))
        whole, paused = await self._answered(asked, emit)
        for _ in range(_CONTINUED):
            if whole.finish != "pause_turn":
                break
            said = {"role": "assistant", "content": whole.extra[EXTRA]["content"]}
            going_on = {**asked, "messages": [*asked["messages"], said]}
            if paused:
                going_on["container"] = paused
            reply, paused = await self._answered(going_on, emit)
            whole = joined(whole, reply)
        return whole

    async def _answered(self, asked: dict[str, Any], emit: Emit) -> tuple[Reply, str]:
        """Return the answer, and the container in which the service continues it."""
        if (batches := current_batches()) is not None:
            container = ""

            def read(body: Mapping[str, Any], show: Showing) -> Reply:
                nonlocal container
                whole = StreamedReply(show, self._origin(asked))
                whole.take_whole(body)
                container = whole.container
                return whole.reply(self.config.prices)

            reply = await batches.reply(AnthropicBatches(self.service), asked, emit, read)
            return reply, container

        async def attempt(client: AsyncAnthropic, show: Showing) -> tuple[Reply, str]:
            create: Any = client.messages.create
            reply = StreamedReply(show, self._origin(asked))
            given = sdk_arguments(asked, parameters_of_sdk(create))
            async with await create(stream=True, **given) as stream:
                body = await self.service.whole_of(stream.response)
                with reading_reply():
                    if body is not None:
                        reply.take_whole(body)
                    else:
                        async for event in stream:
                            reply.take(event)
                    return reply.reply(self.config.prices), reply.container

        return await self.service.call(attempt, emit)

    def without_batches(self) -> str:
        """Return the reason why it cannot be asked in batches; empty: it can."""
        return ""

    def _asked(self, request: Request, form: Form = "auto") -> dict[str, Any]:
        """Return the request as the API takes it, but for the form of the reply."""
        asked = self.config.settings_for(request, _REFUSED)
        asked["model"] = asked.get("model") or self.config.name
        asked["max_tokens"] = asked.get("max_tokens") or _MAX_TOKENS
        asked["timeout"] = asked.pop("timeout_seconds", None)
        stop = asked.pop("stop", None)
        if stop is not None:
            asked["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
        effort = asked.pop("reasoning_effort", None)
        if effort is not None:
            asked["output_config"] = {**(asked.get("output_config") or {}), "effort": effort}
        choice = tool_choice(asked.pop("tool_choice", None), asked.pop("parallel_tool_calls", None))
        if request.tools:
            own, more = provided([each for each in request.tools if each.kind])
            given: Mapping[str, str] = asked.get("extra_headers") or {}
            headers: dict[str, str] = {**more.pop("extra_headers", {}), **given}
            asked |= {**more, **({"extra_headers": headers} if headers else {})}
            asked["tools"] = [*own, *(tool(each) for each in request.tools if not each.kind)]
            asked["tool_choice"] = choice
        messages = list(request.messages)
        if request.output is not None and form == "prompt":
            messages = with_instruction(messages, structure_prompt(request.output))
        system, asked["messages"] = conversation(messages, self._origin(asked))
        if system:
            asked["system"] = system
        is_continued = bool(request.tools) or any(m.get("role") == "assistant" for m in messages)
        if self.config.prompt_cache == "auto" and is_continued and "cache_control" not in asked:
            asked = marked(asked)
        return asked

    def _origin(self, asked: Mapping[str, Any]) -> str:
        return f"{self.service.address} {asked['model']}"

    def _with_schema(self, request: Request, form: Form, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the request with the reply's schema, as the SDK transforms it."""
        if request.output is None or form == "prompt":
            return asked
        from anthropic import transform_schema

        try:
            schema = transform_schema(dict(request.output.schema))
        except ValueError as error:
            if form == "schema":
                message = f"the service cannot take the schema {request.output.name}: {error}"
                hint = "Change the schema, or set structured_output: prompt."
                raise ModelError(message, transient=False, hint=hint) from error
            schema_text = structure_prompt(request.output)
            return {**asked, "system": with_text(asked.get("system", ""), schema_text)}
        bound = {"format": {"type": "json_schema", "schema": schema}}
        return {**asked, "output_config": {**(asked.get("output_config") or {}), **bound}}

    def _make(self, key: str) -> AsyncAnthropic:
        """Return a client, with retries of its own switched off."""
        from anthropic import AsyncAnthropic, Timeout

        config = self.config
        client = AsyncAnthropic(
            api_key=key or "no-key",
            base_url=self.service.base_url,
            timeout=Timeout(config.timeout_seconds, connect=config.connect_timeout_seconds),
            max_retries=0,
            default_headers=config.headers or None,
        )
        return self.service.explicit(client, _custom_headers=dict(config.headers))

    def _meaning(self, error: Exception) -> ModelError | None:
        import anthropic

        return self.service.sdk_meaning(anthropic, error)
