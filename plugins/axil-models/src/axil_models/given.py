"""The types of arguments that refer to components: an object of the kind, the name of an installed
one, or ``{type: …, …}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Protocol, TypeAlias

from pydantic import GetCoreSchemaHandler

from axil.plugin import Body, BodyRules
from axil_models.context import ContextProvider, Index
from axil_models.embedders import Embedder
from axil_models.formats import Formatter
from axil_models.requests import Model
from axil_models.rerankers import Reranker
from axil_models.stores import Store
from axil_models.tools import Tool, Toolset


class _AsGiven:
    def __get_pydantic_core_schema__(self, _: object, handler: GetCoreSchemaHandler) -> object:
        return handler(object)

    def __repr__(self) -> str:
        return "as_given"


as_given = _AsGiven()
"""The mark, in ``Annotated``, of a type that only type checkers hold a field of a ``Config`` to: a
component is checked where it is made or used.
"""


class Invokes(Protocol):
    """A model as MASFactory has it: ``invoke(messages, tools, settings)``."""

    @property
    def invoke(self) -> Callable[..., object]: ...


class Node(Protocol):
    """An agent or another node, as a tool."""

    def adapted(self, rules: BodyRules) -> Body: ...


class Recalls(Protocol):
    """A memory that keeps the conversation itself."""

    @property
    def recall(self) -> Callable[..., object]: ...


class Inserts(Protocol):
    """A memory that receives turns."""

    @property
    def insert(self) -> Callable[[str, str], object]: ...  # not as a list has it


class Notes(Protocol):
    """A provider of notes."""

    @property
    def notes(self) -> Callable[..., object]: ...


class Learns(Protocol):
    """A memory that learns from turns."""

    @property
    def learn(self) -> Callable[..., object]: ...


class Dumps(Protocol):
    """A formatter as MASFactory has it, with ``dump``."""

    @property
    def dump(self) -> Callable[..., object]: ...


class Formats(Protocol):
    """A formatter as MASFactory has it, with ``format``."""

    @property
    def format(self) -> Callable[..., object]: ...


class LangChainTool(Protocol):
    """A tool of LangChain or LangGraph."""

    @property
    def tool_call_schema(self) -> object: ...
    @property
    def ainvoke(self) -> Callable[..., object]: ...


class LlamaIndexTool(Protocol):
    """A tool of LlamaIndex."""

    @property
    def metadata(self) -> object: ...
    @property
    def call(self) -> Callable[..., object]: ...


class PydanticAITool(Protocol):
    """A tool of Pydantic AI."""

    @property
    def function_schema(self) -> object: ...
    @property
    def takes_ctx(self) -> object: ...


class Kit(Protocol):
    """Several tools of another library: ``get_tools`` of LangChain and Pydantic AI."""

    @property
    def get_tools(self) -> Callable[..., object]: ...


class ToolSpecKit(Protocol):
    """Several tools of LlamaIndex."""

    @property
    def to_tool_list(self) -> Callable[..., object]: ...


Foreign: TypeAlias = LangChainTool | LlamaIndexTool | PydanticAITool | Kit | ToolSpecKit
"""Tools of other libraries."""
Use: TypeAlias = str | Mapping[str, object]
"""A component by its name, or as ``{type: …, …}``."""
ModelLike: TypeAlias = Annotated[Model | Invokes | Use, as_given]
"""A model, one of MASFactory's kind, or the use of an adapter."""
ToolLike: TypeAlias = Annotated[
    Callable[..., object] | Tool | Toolset | Node | Foreign | Use, as_given
]
"""A function, a tool of axil or of another library, a toolset, an agent, or the use of one."""
ContextLike: TypeAlias = Annotated[
    ContextProvider | Toolset | Recalls | Inserts | Notes | Learns | Use, as_given
]
"""A memory or a retriever of an agent, or the use of one."""
ProviderLike: TypeAlias = Annotated[ContextProvider | Use, as_given]
"""A context provider, or the use of one."""
IndexLike: TypeAlias = Annotated[Index | Use, as_given]
"""A provider whose blocks can be put and deleted, or the use of one."""
FormatterLike: TypeAlias = Annotated[Formatter | Dumps | Formats | type[object] | Use, as_given]
"""A formatter, one of MASFactory's kind, or the use of one."""
EmbedderLike: TypeAlias = Annotated[Embedder | Use, as_given]
"""An embedder, or the use of one."""
RerankerLike: TypeAlias = Annotated[Reranker | Use, as_given]
"""A reranker, or the use of one."""
StoreLike: TypeAlias = Annotated[Store | Use, as_given]
"""A store of vectors, or the use of one."""
