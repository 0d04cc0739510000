"""``Model``, and what the models of providers have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, cast

import axil
import axil_models
from masfactory.adapters.token_usage_tracker import TokenUsageTracker
from masfactory.errors import Unsupported
from masfactory.utils.apart import apart

__all__ = ["Model", "ModelCapabilities", "ModelResponseType", "Provided"]


class ModelResponseType(Enum):
    """The kind of a model's answer."""

    CONTENT = "content"
    TOOL_CALL = "tool_call"


@dataclass(frozen=True)
class ModelCapabilities:
    """The content that a model takes beside text."""

    image_input: bool = False
    pdf_input: bool = False
    image_sources: frozenset[str] = frozenset()
    pdf_sources: frozenset[str] = frozenset()


class Model:
    """The base of models of your own: ``invoke`` gives ``{"type": ModelResponseType, "content":
    …}``.

    Any object with such an ``invoke``, and any model of axil, can stand in its place.
    """

    __node_template_scope__ = "shared"

    def __init__(
        self,
        model_name: str | None = None,
        invoke_settings: Mapping[str, Any] | None = None,
        *args: Any,
        capabilities: ModelCapabilities | None = None,
        **kwargs: Any,
    ) -> None:
        del args, kwargs  # MASFactory takes them and does nothing with them
        self._model_name = model_name
        self.invoke_settings: dict[str, Any] = dict(invoke_settings or {})
        self._capabilities = capabilities or ModelCapabilities()
        self._token_tracker = TokenUsageTracker(model_name or "")

    @property
    def model_name(self) -> str | None:
        """The model's name."""
        return self._model_name

    @property
    def description(self) -> str | None:
        """The model's name, for messages."""
        return self._model_name

    @property
    def capabilities(self) -> ModelCapabilities:
        """The content that it takes beside text."""
        return self._capabilities

    @property
    def token_tracker(self) -> TokenUsageTracker:
        """Its usage so far."""
        return self._token_tracker

    def invoke(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None,
        settings: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Answer; subclasses say how."""
        raise NotImplementedError

    def generate_images(self, prompt: str, **kwargs: Any) -> list[dict[str, Any]]:
        """Make images; subclasses may say how."""
        raise Unsupported(
            f"{type(self).__name__}.generate_images",
            "Call the provider's SDK in a CustomNode, and give its result as an ImageAsset.",
        )


class Provided(Model):
    """A model of a provider: one of axil's adapters, which is made by the first use."""

    extra: ClassVar[str] = ""
    """The distribution that has the adapter."""

    def __init__(
        self,
        model_name: str,
        api_key: str | None = None,
        base_url: str | None = None,
        invoke_settings: Mapping[str, Any] | None = None,
        capability_overrides: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Connect to nothing; ``kwargs`` are settings of axil's adapter."""
        reported = dict(capability_overrides or {})
        super().__init__(
            model_name,
            invoke_settings,
            capabilities=ModelCapabilities(
                image_input=bool(reported.get("image_input", True)),
                pdf_input=bool(reported.get("pdf_input", True)),
            ),
        )
        self.base_url = base_url or None
        self._api_key, self._more = api_key or None, kwargs
        self._core: Any = None

    def adapter(self) -> Any:
        """Give the class of axil's adapter."""
        raise NotImplementedError

    @property
    def core(self) -> Any:
        """The adapter of axil. Raises: ImportError: it is not installed."""
        if self._core is None:
            try:
                adapter = self.adapter()
            except ImportError as error:
                raise ImportError(
                    f"{type(self).__name__}: {error.name} is not installed. Install {self.extra}."
                ) from error
            self._core = adapter(
                self.model_name,
                api_key=self._api_key,
                base_url=self.base_url,
                settings=self.invoke_settings or None,
                **self._more,
            )
        return self._core

    @property
    def modalities(self) -> frozenset[str]:
        """The content that the adapter takes."""
        return frozenset(getattr(self.core, "modalities", ("text",)))

    async def reply(self, request: axil_models.Request, emit: Any, /) -> axil_models.Reply:
        """Answer a request of axil's agents, and count what it used."""
        reply = cast("axil_models.Reply", await self.core.reply(request, emit))
        self._token_tracker.accumulate(reply.usage.input_tokens, reply.usage.output_tokens)
        return reply

    async def __aenter__(self) -> Provided:
        enter = getattr(self.core, "__aenter__", None)
        if enter is not None:
            await enter()
        return self

    async def __aexit__(self, *failure: Any) -> None:
        leave = getattr(self.core, "__aexit__", None)
        if leave is not None:
            await leave(*failure)

    async def close(self) -> None:
        """Close the adapter's connections."""
        close = getattr(self._core, "close", None)
        if close is not None:
            await close()

    def invoke(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None,
        settings: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Ask once, and wait for the answer."""

        request = axil_models.Request(
            messages=messages, tools=tool_specs(tools), settings={**(settings or {}), **kwargs}
        )

        async def once() -> axil_models.Reply:
            async with self:
                return await self.reply(request, unheard)

        return answer_of(cast("axil_models.Reply", apart(lambda: axil.run_sync(once()))))


def unheard(chunk: Any) -> None:
    """Take what a model shows while it answers, and do nothing with it."""
    del chunk


def tool_specs(tools: Sequence[Mapping[str, Any]] | None) -> tuple[axil_models.ToolSpec, ...]:
    """Read tools as a provider's API has them, or as ``{"name", "description", "parameters"}``."""
    specs: list[axil_models.ToolSpec] = []
    for tool in tools or ():
        given: Mapping[str, Any] = tool.get("function") or tool
        specs.append(
            axil_models.ToolSpec(
                name=str(given["name"]),
                description=str(given.get("description") or ""),
                parameters=given.get("parameters") or {"type": "object", "properties": {}},
            )
        )
    return tuple(specs)


def answer_of(reply: axil_models.Reply) -> dict[str, Any]:
    """Give a reply of axil's models as MASFactory's models answer."""
    if not reply.tool_calls:
        return {"type": ModelResponseType.CONTENT, "content": reply.text, "raw_response": reply}
    calls = [
        {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}
        for call in reply.tool_calls
    ]
    return {
        "type": ModelResponseType.TOOL_CALL,
        "content": calls,
        "assistant_message": reply.message(),
        "raw_response": reply,
    }


def reply_of(answer: Mapping[str, Any]) -> axil_models.Reply:
    """Give what a model of MASFactory's kind answered as a reply of axil's."""
    kind = answer.get("type")
    if str(getattr(kind, "value", kind)) == ModelResponseType.CONTENT.value:
        return axil_models.Reply(text=str(answer.get("content") or ""), finish="stop")
    calls: list[axil_models.ToolCall] = []
    for number, call in enumerate(cast("Sequence[Mapping[str, Any]]", answer.get("content") or ())):
        given: Any = call.get("arguments") or {}
        arguments = json.loads(given) if isinstance(given, str) else dict(given)
        name, known = str(call.get("name") or ""), str(call.get("id") or f"call_{number}")
        calls.append(axil_models.ToolCall(id=known, name=name, arguments=arguments))
    return axil_models.Reply(tool_calls=tuple(calls), finish="tools")
