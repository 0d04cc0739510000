"""Programs give what the real EvoFabric gives; each public name works, or says what to use."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from evofabric.absent import Unsupported

HERE = Path(__file__).parent


def programs() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("evofabric_programs", HERE / "programs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.PROGRAMS


PROGRAMS = programs()
REAL = json.loads((HERE / "programs.json").read_text(encoding="utf-8"))
WORKS = {
    "app.sop2workflow": "GraphDescription GraphDespEdge GraphDespNode SopBreakdownGraphDesp "
    "SopBreakdownNodeDesp WorkflowGenerator WorkflowGeneratorBase extract_text_between "
    "generate_condition_router_function_call user_feedback_router",
    "core.agent": "AgentNode UserNode",
    "core.clients": "ChatClientBase EmbedClientBase OpenAIChatClient OpenAIEmbedClient "
    "RerankClientBase",
    "core.factory": "BaseComponent ComponentFactory FactoryTypeAdapter deep_dump fill_defaults "
    "is_basemodel is_dataclass is_typeddict safe_convert_to_schema safe_get_attr safe_set_attr "
    "strip_annotated",
    "core.graph": "AsyncNode AsyncStreamNode GraphBuilder GraphEngine NodeBase StateUpdater "
    "StreamCtx StreamWriter SyncNode SyncStreamNode callable_to_node current_ctx "
    "generate_state_schema get_stream_writer set_streaming_handler stream_writer_env",
    "core.mem": "ChatMem CognitiveMem DEFAULT_UPDATE_MEMORY_PROMPT_EN "
    "DEFAULT_UPDATE_MEMORY_PROMPT_ZH FACT_RETRIEVAL_PROMPT_EN FACT_RETRIEVAL_PROMPT_ZH "
    "FEAT_DEFINE_PROMPT_EN FEAT_DEFINE_PROMPT_ZH MemBase RetrievalMem TASK_SUMMARY_PROMPT_EN "
    "TASK_SUMMARY_PROMPT_ZH TaskMem",
    "core.multi_agent": "Swarm",
    "core.tool": "BaseTool McpToolManager ToolController ToolManager ToolManagerBase "
    "parse_callable_schema",
    "core.trace": "trace_chat",
    "core.typing": "ActiveToolPattern AssistantMessage ChatStreamChunk ChatUsage "
    "CodeExecDockerConfig DBItem DEFAULT_EDGE_GROUP DeactivateToolPattern EmbedResponse EmbedUsage "
    "Function GraphMode LLMChatResponse MCPConfig MISSING McpServerLink NodeActionMode "
    "PromptRequest RerankResponse RerankUsage ResourceRequest STREAM_CHUNK SearchResult "
    "SpecialNode SseLink State StateBaseMessage StateDelta StateMessage StateSchema StdioLink "
    "StreamableHttpLink SystemMessage TOOL_EXCLUDE_PRESERVED_PARAMS ToolCall ToolCallResult "
    "ToolControlPattern ToolInnerState ToolManagerState ToolMessage UserMessage cast_state_message",
    "core.vectorstore": "ChromaDB DBBase VectorDB",
    "logger": "get_logger set_logger",
}
REFUSED = {
    "app": "kernel_evolve rethinker",
    "core.clients": "FlagRerankModel PanguClient SentenceTransformerEmbed",
    "core.factory": "FunctionSerializerCloudPickle FunctionSerializerProto StateSchemaSerializable "
    "dump_schema_annotated_info get_func_serializer load_schema_annotated_info "
    "register_deserialize_modules set_func_serializer",
    "core.graph": "ConditionEdgeSpec EdgeSpec EdgeSpecBase GraphEngineDebugger GraphNodeSpec "
    "RunTimeTask RuntimeTaskTree StateCkpt TreeNode",
    "core.tool": "CodeSandbox McpSessionController",
    "plugin_manager": "PluginTypeDict init_plugins load_plugins",
}


@pytest.mark.third
@pytest.mark.parametrize("name", sorted(REAL))
def test_a_program_gives_what_it_gives_on_the_real_one(name):
    if "ChromaDB(" in inspect.getsource(PROGRAMS[name]):
        pytest.importorskip("chromadb")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = asyncio.run(PROGRAMS[name]())
    assert json.loads(json.dumps(found, default=repr)) == REAL[name]


def test_all_programs_are_compared():
    assert set(PROGRAMS) == set(REAL)


@pytest.mark.parametrize("module", sorted(WORKS))
def test_a_public_name_works(module):
    found = importlib.import_module(f"evofabric.{module}")
    assert [name for name in WORKS[module].split() if not hasattr(found, name)] == []
    assert set(found.__all__) == set(WORKS[module].split())


@pytest.mark.parametrize("module", sorted(REFUSED))
def test_a_name_that_axil_has_in_another_way_says_so(module):
    found = importlib.import_module(f"evofabric.{module}")
    for name in REFUSED[module].split():
        with pytest.raises(Unsupported, match=rf"{name}: axil does not .+\. \w"):
            getattr(found, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(found, "nothing")  # noqa: B009  # it is asked for, not used
