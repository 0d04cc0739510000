"""Tools of other libraries, as objects of their shapes: they are used, or refused with a reason."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, create_model

from axil_models import Refused, Tool, ToolError, held_tools, tool_of


class Args(BaseModel):
    a: int
    b: int = 2


class LangChain:
    """As ``StructuredTool`` of LangChain."""

    name, description, return_direct = "add", "Adds.", False
    args_schema: Any = Args
    tool_call_schema: Any = Args

    def __init__(self, **changed: Any) -> None:
        vars(self).update(changed)

    async def ainvoke(self, given: dict[str, Any]) -> Any:
        made = Args.model_validate(given)
        return made.a + made.b


class About:
    """As ``ToolMetadata`` of LlamaIndex."""

    name, description, return_direct = "add", "Adds.", False

    def get_parameters_dict(self) -> dict[str, Any]:
        return Args.model_json_schema()


class Output:
    """As ``ToolOutput``."""

    def __init__(self, content: str, is_error: bool = False) -> None:
        self.content, self.is_error = content, is_error


class LlamaIndex:
    """As ``FunctionTool`` of LlamaIndex: callable, with any arguments."""

    requires_context = False

    def __init__(self, **changed: Any) -> None:
        self.metadata = About()
        vars(self).update(changed)

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise AssertionError("the synchronous way")

    async def acall(self, **named: Any) -> Output:
        made = Args.model_validate(named)
        return Output(str(made.a + made.b), is_error=made.a < 0)


class FunctionSchema:
    """As ``FunctionSchema`` of Pydantic AI."""

    json_schema = Args.model_json_schema()
    validator = TypeAdapter(dict[str, int]).validator

    async def call(self, arguments: dict[str, Any], ctx: Any) -> Any:
        return arguments["a"] + arguments.get("b", 2)


class PydanticAI:
    """As ``Tool`` of Pydantic AI."""

    name, description, takes_ctx, prepare, args_validator = "add", "Adds.", False, None, None
    requires_approval, timeout = False, 5.0

    def __init__(self, **changed: Any) -> None:
        self.function_schema = FunctionSchema()
        vars(self).update(changed)


@pytest.mark.parametrize("kind", [LangChain, LlamaIndex, PydanticAI])
def test_a_tool_of_another_library_is_described_called_and_checks_its_arguments(kind: Any):
    tool = tool_of(kind())
    assert (tool.name, tool.description, tool.needs_approval) == ("add", "Adds.", False)
    assert tool.parameters["properties"]["a"] == {"type": "integer"}
    assert tool.parameters["required"] == ["a"]
    assert asyncio.run(tool({"a": 1})) == "3"
    with pytest.raises(Refused, match="a: Input should be a valid integer"):
        asyncio.run(tool({"a": "one"}))


class Command:
    """As ``Command`` of LangGraph."""

    goto, update, graph = "next", {}, None


class Graph:
    """As a compiled graph of LangGraph."""

    async def ainvoke(self, given: Any) -> Any:
        return given


class OfAgents:
    """As ``FunctionTool`` of the OpenAI Agents SDK."""

    name = "add"

    async def on_invoke_tool(self, ctx: Any, given: str) -> Any:
        return given


class Anything:
    def __call__(self, *args: Any, **named: Any) -> Any:
        return args, named


def direct() -> About:
    made = About()
    made.return_direct = True  # type: ignore[assignment]
    return made


WITH_STATE = create_model("WithState", a=(int, ...), state=(dict[str, Any], ...))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (LangChain(args_schema=WITH_STATE), "would have to give it state"),
        (LangChain(return_direct=True), "return_direct"),
        (LangChain(name="add numbers"), "a name is letters"),
        (LangChain(tool_call_schema="a, b"), "described by a str"),
        (LlamaIndex(requires_context=True), "a workflow of LlamaIndex"),
        (LlamaIndex(metadata=direct()), "return_direct"),
        (PydanticAI(takes_ctx=True), "RunContext"),
        (PydanticAI(prepare=print), "prepare"),
        (OfAgents(), "the context of another framework"),
        (Graph(), "nothing of its arguments"),
        (Anything(), "any arguments"),
        (lambda **named: named, "any arguments"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(given: Any, reason: str):
    if getattr(given, "__name__", "") == "<lambda>":
        given.__name__ = "anything"
    with pytest.raises(ToolError, match=reason) as refused:
        tool_of(given)
    assert refused.value.id == "AX984"


def test_approval_that_a_tool_asks_for_is_kept():
    assert tool_of(PydanticAI(requires_approval=True)).needs_approval is True


def test_a_command_of_another_framework_is_an_error_and_no_text():
    class Going(LangChain):
        async def ainvoke(self, given: dict[str, Any]) -> Any:
            return Command()

    with pytest.raises(TypeError, match="Command of LangGraph"):
        asyncio.run(tool_of(Going())({"a": 1}))


def test_an_error_that_a_tool_gives_as_its_output_is_raised():
    with pytest.raises(RuntimeError, match="-1"):
        asyncio.run(tool_of(LlamaIndex())({"a": -1, "b": 0}))


def test_kits_hold_their_tools():
    class Toolkit:
        def get_tools(self) -> list[Any]:
            return [LangChain()]

    class Spec:
        def to_tool_list(self) -> list[Any]:
            return [LlamaIndex()]

    class FunctionToolset:
        tools: Any = {"add": PydanticAI()}  # noqa: RUF012  # as there

        async def get_tools(self, ctx: Any) -> Any:
            raise AssertionError("it needs a RunContext")

    for kit in (Toolkit(), Spec(), FunctionToolset()):
        [tool] = held_tools(kit)
        assert isinstance(tool, Tool)
        assert tool.name == "add"


def test_a_kit_that_has_to_be_awaited_is_refused():
    class Client:
        async def get_tools(self) -> list[Any]:
            return []

    with pytest.raises(ToolError, match="Await it, and give the list"):
        held_tools(Client())


def test_a_toolset_of_ours_is_left_as_it_is():
    class Ours:
        async def tools(self) -> list[Any]:
            return []

    ours = Ours()
    assert held_tools(ours) == [ours]
    assert held_tools("web") == ["web"]
