"""The options for importing files of other systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from masfactory.adapters.model import Model, ModelResponseType, OpenAIModel

__all__ = ["ChatDevCompileOptions", "DifyCompileOptions", "LangflowCompileOptions"]


class _Fixed(Model):
    """A model that always says the same."""

    def __init__(self, text: str) -> None:
        super().__init__("stub")
        self.text = text

    def invoke(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None,
        settings: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        return {"type": ModelResponseType.CONTENT, "content": self.text}


@dataclass
class LlmCompileOptions:
    """The models that the nodes of an imported file call."""

    model_factory: Callable[[dict[str, Any]], Any] | None = None
    """From what the file says of a model to the model."""
    use_stub_llm: bool = True
    """True if a fixed text replaces all models."""
    llm_stub_text: str = "stub-llm-response"
    openai_api_key: str | None = None
    openai_base_url: str | None = None

    def resolve_model(self, model_config: Mapping[str, Any]) -> Any:
        """Give the model for what a file says of it."""
        if self.model_factory is not None:
            return self.model_factory(dict(model_config))
        if self.use_stub_llm:
            return _Fixed(self.llm_stub_text)
        name = model_config.get("name") or model_config.get("model_name") or "gpt-4o-mini"
        return OpenAIModel(str(name), self.openai_api_key, self.openai_base_url)


@dataclass
class ChatDevCompileOptions(LlmCompileOptions):
    """Options for ChatDev's files."""

    llm_stub_text: str = "stub-chatdev-response"


@dataclass
class LangflowCompileOptions(LlmCompileOptions):
    """Options for Langflow's files."""

    llm_stub_text: str = "stub-langflow-response"


@dataclass
class DifyCompileOptions(LlmCompileOptions):
    """Options for Dify's files; models are asked unless ``use_stub_llm`` is said."""

    use_stub_llm: bool = False
    tool_executor: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]] | None = None
    """From a tool's node and its inputs to its outputs."""
    http_client: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """From a request to its outputs."""
    knowledge_retriever: Callable[[dict[str, Any], str], str] | None = None
    """From a node and a query to a text."""
