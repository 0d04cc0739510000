"""Programs in EvoFabric's vocabulary. Each gives plain data.

``programs.json`` holds what the real EvoFabric 0.1.4 gives for them; where it is installed,
``python programs.py programs.json`` writes that.

Without postponed annotations, which EvoFabric does not read.
"""

import asyncio
import json
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypedDict

from pydantic import BaseModel, Field, PrivateAttr

from evofabric.app.sop2workflow import WorkflowGenerator
from evofabric.core.agent import AgentNode
from evofabric.core.clients import ChatClientBase, EmbedClientBase, RerankClientBase
from evofabric.core.factory import (
    BaseComponent,
    ComponentFactory,
    deep_dump,
    fill_defaults,
    is_basemodel,
    is_typeddict,
    safe_convert_to_schema,
    safe_get_attr,
    safe_set_attr,
    strip_annotated,
)
from evofabric.core.graph import (
    AsyncNode,
    AsyncStreamNode,
    GraphBuilder,
    StateUpdater,
    StreamCtx,
    SyncNode,
    SyncStreamNode,
    callable_to_node,
    current_ctx,
    generate_state_schema,
    get_stream_writer,
    set_streaming_handler,
    stream_writer_env,
)
from evofabric.core.mem import ChatMem, MemBase, RetrievalMem, TaskMem
from evofabric.core.multi_agent import Swarm
from evofabric.core.tool import BaseTool, ToolController, ToolManager, parse_callable_schema
from evofabric.core.trace import trace_chat
from evofabric.core.typing import (
    MISSING,
    AssistantMessage,
    ChatStreamChunk,
    DBItem,
    Function,
    LLMChatResponse,
    SearchResult,
    StateMessage,
    SystemMessage,
    ToolCall,
    ToolInnerState,
    UserMessage,
    cast_state_message,
)
from evofabric.core.vectorstore import ChromaDB
from evofabric.logger import get_logger, set_logger


class Quiet:
    """A logger that says nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: None


set_logger(Quiet())


def extend(old: Any = MISSING, new: Any = MISSING) -> Any:
    kept = [] if old is MISSING else list(old)
    return kept + [each for each in ([] if new is MISSING else new) if each not in kept]


if not StateUpdater.registered("programs_extend"):
    StateUpdater.register("programs_extend")(extend)


class Chat(BaseModel):
    messages: Annotated[list[StateMessage], "append_messages"]
    topic: Annotated[str, "overwrite"] = "ferns"
    tags: Annotated[list[str], "programs_extend"] = []


class Plain(TypedDict):
    n: Annotated[int, "overwrite"]
    log: Annotated[list[str], "programs_extend"]


class Echo(ChatClientBase):
    """Answers with a count, and the last message."""

    prefix: str = "echo"
    _seen: list[Any] = PrivateAttr(default_factory=list)

    async def create_on_stream(self, messages: Any, **kwargs: Any) -> Any:
        self._seen.append([(each.role, str(each.content)) for each in messages])
        yield ChatStreamChunk(content="...")
        yield LLMChatResponse(content=f"{self.prefix} {len(messages)}: {messages[-1].content}")

    async def create(self, messages: Any, **kwargs: Any) -> LLMChatResponse:
        return LLMChatResponse(content=f"{self.prefix} {messages[-1].content}")


class Script(ChatClientBase):
    """Gives one answer after the other."""

    answers: list[Any]
    _told: list[Any] = PrivateAttr(default_factory=list)

    def _next(self, messages: Any, kwargs: Any) -> LLMChatResponse:
        tools = sorted(each["function"]["name"] for each in kwargs.get("tools") or ())
        self._told.append({"messages": [str(m.content) for m in messages], "tools": tools})
        answer = self.answers.pop(0)
        return answer if isinstance(answer, LLMChatResponse) else LLMChatResponse(content=answer)

    async def create_on_stream(self, messages: Any, **kwargs: Any) -> Any:
        yield self._next(messages, kwargs)

    async def create(self, messages: Any, **kwargs: Any) -> LLMChatResponse:
        return self._next(messages, kwargs)


def call(name: str, known: str = "c1", **arguments: Any) -> ToolCall:
    return ToolCall(id=known, function=Function(name=name, arguments=json.dumps(arguments)))


def shown(state: Any) -> list[Any]:
    messages = safe_get_attr(state, "messages")
    return [[each.role, each.content, each.node_name] for each in messages]


async def ran(builder: Any, inputs: Any, **options: Any) -> Any:
    return await builder.build(**options).run(inputs)


def chain(*nodes: tuple[str, Any], schema: Any = Chat) -> GraphBuilder:
    made = GraphBuilder(state_schema=schema)
    for name, node in nodes:
        made.add_node(name, node)
    made.set_entry_point(nodes[0][0])
    for (one, _), (other, _) in pairwise(nodes):
        made.add_edge(one, other)
    return made


def says(text: str) -> Any:
    return lambda state: {"messages": [AssistantMessage(content=text)]}


START = {"messages": [UserMessage(content="hi")]}


async def chain_of_messages() -> Any:
    return shown(await ran(chain(("a", says("one")), ("b", says("two"))), START))


async def whole_history_is_returned() -> Any:
    def more(state: Any) -> Any:
        new = [AssistantMessage(content="new")]
        return {"messages": list(state.messages) + new}

    return shown(await ran(chain(("a", more), ("b", more)), START))


async def messages_are_appended_in_place() -> Any:
    def more(state: Any) -> Any:
        state.messages.append(AssistantMessage(content="new"))
        return {"messages": state.messages}

    return shown(await ran(chain(("a", more), ("b", more)), START))


async def the_state_itself_is_returned() -> Any:
    def more(state: Any) -> Any:
        state.topic = "moss"
        state.messages.append(AssistantMessage(content="new"))
        return state

    state = await ran(chain(("a", more), ("b", says("end"))), START)
    return [shown(state), state.topic]


async def in_place_changes_alone_have_no_effect() -> Any:
    def lost(state: Any) -> Any:
        state.messages.append(AssistantMessage(content="lost"))
        state.topic = "lost"

    state = await ran(chain(("a", lost), ("b", says("end"))), START)
    return [shown(state), state.topic]


async def messages_as_mappings() -> Any:
    def more(state: Any) -> Any:
        assert all(each.msg_id for each in state.messages)
        return {"messages": [{"role": "assistant", "content": "said"}]}

    return shown(await ran(chain(("a", more)), {"messages": [{"role": "user", "content": "hi"}]}))


async def one_object_said_twice_stays_once() -> Any:
    constant = AssistantMessage(content="once")

    def twice(state: Any) -> Any:
        return {"messages": [constant]}

    return shown(await ran(chain(("a", twice), ("b", twice)), START))


async def a_typed_dict_as_the_schema() -> Any:
    def count(state: Any) -> Any:
        return {"n": state["n"] + 1, "log": [f"n{state['n']}"]}

    return await ran(chain(("a", count), ("b", count), schema=Plain), {"n": 4})


async def a_generated_schema() -> Any:
    schema = generate_state_schema([("n", "int", "overwrite"), ("seen", list, "programs_extend")])
    state = await ran(
        chain(("a", lambda state: {"n": state.n + 2, "seen": ["a"]}), schema=schema), {"n": 1}
    )
    return [state.n, state.seen, state.messages]


async def nodes_of_every_kind() -> Any:
    class Sync(SyncNode):
        text: str

        def __call__(self, state: Any) -> Any:
            return {"tags": [self.text]}

    class Async(AsyncNode):
        _n: int = PrivateAttr(default=2)

        async def __call__(self, state: Any) -> Any:
            return {"tags": [f"async{self._n}"]}

    class SyncStream(SyncStreamNode):
        def __call__(self, state: Any, stream_writer: Any) -> Any:
            stream_writer.put("half")
            return {"tags": ["syncstream"]}

    class AsyncStream(AsyncStreamNode):
        async def __call__(self, state: Any, stream_writer: Any) -> Any:
            stream_writer.put(current_ctx().node_name)
            return {"tags": ["asyncstream"]}

    def plain(state: Any, stream_writer: Any) -> Any:
        stream_writer.put({"n": 1})
        return {"tags": ["plain"]}

    heard: list[Any] = []
    set_streaming_handler(lambda each: heard.append([each["node_name"], each["payload"]]))
    nodes = [Sync(text="sync"), Async(), SyncStream(), AsyncStream(), plain]
    state = await ran(chain(*((f"n{i}", each) for i, each in enumerate(nodes))), {})
    set_streaming_handler(lambda each: None)
    return [state.tags, heard]


async def a_fork_meets_at_an_all_node() -> Any:
    made = GraphBuilder(state_schema=Chat)
    for name in "abc":
        made.add_node(name, says(name))
    made.add_node("d", says("d"), action_mode="all")
    made.set_entry_point("a")
    for source, target in ("ab", "ac", "bd", "cd"):
        made.add_edge(source, target)
    return shown(await ran(made, START))


async def an_any_node_works_for_each() -> Any:
    made = GraphBuilder(state_schema=Chat)
    for name in "abcd":
        made.add_node(name, says(name), action_mode="any")
    made.set_entry_point("a")
    for source, target in ("ab", "ac", "bd", "cd"):
        made.add_edge(source, target)
    return [each[1] for each in shown(await ran(made, START))].count("d")


async def states_are_merged_by_a_strategy() -> Any:
    made = GraphBuilder(state_schema=Chat)
    for name in "abc":
        made.add_node(name, lambda state, name=name: {"tags": [name]})

    def merge(states: Any) -> Any:
        return {"tags": [each.tags[-1] for each in states], "topic": "merged"}

    made.add_node("d", says("d"), action_mode="all", multi_input_merge_strategy={"all": merge})
    made.set_entry_point("a")
    for source, target in ("ab", "ac", "bd", "cd"):
        made.add_edge(source, target)
    state = await ran(made, {})
    return [state.tags, state.topic, shown(state)]


async def a_filter_trims_the_history() -> Any:
    made = chain(("a", says("a")), ("b", says("b")))
    made.add_node("c", says("c"))
    made.add_edge("b", "c", state_filter=lambda state: {"messages": state.messages[-1:]})
    return shown(await ran(made, START))


async def a_trimmed_branch_meets_a_whole_one() -> Any:
    made = GraphBuilder(state_schema=Chat)
    for name in "abc":
        made.add_node(name, says(name))
    made.add_node("d", says("d"), action_mode="all")
    made.set_entry_point("a")
    made.add_edge("a", "b", state_filter=lambda state: {"messages": state.messages[-1:]})
    for source, target in ("ac", "bd", "cd"):
        made.add_edge(source, target)
    return sorted(each[1] for each in shown(await ran(made, START)))


async def a_router_with_a_filter() -> Any:
    made = GraphBuilder(state_schema=Chat)
    for name in "abc":
        made.add_node(name, says(name))
    made.set_entry_point("a")
    made.add_condition_edge(
        "a", lambda state: [("b", lambda s: {"messages": s.messages[-1:]}), "c"], ["b", "c"]
    )
    return sorted(each[1] for each in shown(await ran(made, START)))


async def a_loop_with_a_router() -> Any:
    def route(state: Any) -> str:
        return "end" if len(state.messages) > 4 else "a"

    made = chain(("a", says("a")), ("b", says("b")))
    made.add_condition_edge("b", route, {"a", "end"})
    return shown(await ran(made, START))


async def turns_are_counted() -> Any:
    nodes = [(name, says(name)) for name in "abc"]
    found = {}
    for turns in (1, 2, 3, 4, 5, 0):
        state = await ran(chain(*nodes), START, max_turn=turns)
        found[turns] = [each[1] for each in shown(state)]
    return sorted(found.items())


async def a_graph_within_a_graph() -> Any:
    inner = chain(("i", says("i")), ("j", says("j"))).build()
    return [each[1] for each in shown(await ran(chain(("a", says("a")), ("in", inner)), START))]


async def an_agent_and_its_prompt() -> Any:
    client = Echo(prefix="model")
    agent = AgentNode(client=client, system_prompt="Be brief.")
    state = await ran(chain(("agent", agent)), START)
    return [shown(state), client._seen]


async def templates_of_messages() -> Any:
    class Form(BaseModel):
        name: str

    client = Script(answers=[json.dumps({"name": "Ann"})])
    agent = AgentNode(
        client=client,
        output_schema=Form,
        output_msg_format="Hello, {{name}}.",
        input_msg_format="Write about {{state.topic}}.",
    )
    state = await ran(chain(("agent", agent)), START)
    return [shown(state), client._told[0]["messages"][1:]]


async def an_agent_with_tools_in_a_loop() -> Any:
    def add(a: int, b: int = 1) -> int:
        """Add numbers.

        Args:
            a: the one.
            b: the other.
        """
        return a + b

    async def broken() -> str:
        """Fail."""
        raise LookupError("gone")

    calls = [call("add", "1", a=2), call("broken", "2"), call("absent", "3")]
    client = Script(answers=[LLMChatResponse(content="", tool_calls=calls), "done"])
    made = chain(("agent", AgentNode(client=client, tool_manager=ToolManager(tools=[add, broken]))))
    made.add_condition_edge(
        "agent", lambda s: "agent" if s.messages[-1].role == "tool" else "end", ["agent", "end"]
    )
    return [shown(await ran(made, START)), client._told[0]["tools"]]


async def a_tool_with_inner_state() -> Any:
    def note(text: str, inner_state: ToolInnerState) -> int:
        """Note a text."""
        inner_state.state["notes"].append(text)
        return len(inner_state.state["notes"])

    manager = ToolManager(tools=[(note, ToolInnerState(state={"notes": []}))])
    first = await manager.call_tools([call("note", text="fern"), call("note", text="moss")])
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "state.json")
        await manager.save_state(path)
        other = ToolManager(tools=[(note, ToolInnerState(state={"notes": []}))])
        await other.load_state(path)
    again = await other.call_tools([call("note", text="oak")])
    listed = await manager.list_tools()
    return [
        [each.content for each in first],
        again[0].content,
        list(listed[0]["function"]["parameters"]["properties"]),
        (await other.dump_state())["note"]["state"],
    ]


async def tools_are_switched_on_and_off() -> Any:
    def read() -> str:
        """Read."""
        return "r"

    def write() -> str:
        """Write."""
        return "w"

    controller = ToolController(
        default_mode="deactivate", rules=[{"mode": "activate", "pattern": "re*"}]
    )
    manager = ToolManager(tools=[read, write], tool_controller=controller)

    def names(listed: Any) -> Any:
        return [each["function"]["name"] for each in listed]

    found = [names(await manager.list_tools())]
    controller.activate_tool("write")
    controller.deactivate_tool("read")
    found.append(names(await manager.list_tools()))
    found.append([controller.check_tool_status(name) for name in ("read", "write", "other")])
    found.append([rule.model_dump() for rule in controller.rules])
    return found


async def tools_of_a_file() -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mine.py"
        path.write_text(
            'def load(path: str) -> str:\n    """Load."""\n    return path\n'
            'def save(path: str) -> str:\n    """Save."""\n    return path\n'
        )
        manager = ToolManager()
        manager.add_python_file_tools([str(path)], include_pattern_list=[["l*"]])
        manager.add_callable_tools([BaseTool(func=len, name="length", description="Measure.")])
        listed = [each["function"]["name"] for each in await manager.list_tools()]
        (result,) = await manager.call_tools([call("load", path="x")])
        manager.delete_tools(["load"])
        try:
            manager.find_tools(["load"])
        except KeyError:
            listed.append("gone")
    return [listed, result.content, result.success]


async def schemas_of_functions() -> Any:
    def find(text: str, limit: int = 3, *, exact: bool = False, secret: str = "") -> list[str]:
        """Find texts.

        Args:
            text: what is sought.
            limit: how many.
        """
        return [text] * limit

    schema, left = parse_callable_schema(find, exclude_params=["secret"])
    tool = BaseTool(func=partial(find, exact=True), name="search", exclude_params=["secret"])
    told = schema["function"]
    return [
        told["name"],
        sorted(told["parameters"]["properties"]),
        told["parameters"]["required"][:1],
        told["parameters"]["properties"]["text"]["type"],
        list(left),
        tool.get_tool_schema()["function"]["name"],
        await tool(text="x", limit=2),
    ]


async def a_swarm_hands_over() -> Any:
    handed = LLMChatResponse(
        content="", tool_calls=[call("handoff", target_agent="writer", info="Write.")]
    )
    triage = Script(answers=[handed])
    writer = Script(answers=["still at it", "FINISHED: ferns"])
    swarm = Swarm(
        agents={"triage": AgentNode(client=triage), "writer": AgentNode(client=writer)},
        state_schema=Chat,
        entry_point_agent="triage",
        edges=[("triage", "writer")],
    )
    swarm.add_agent("spare", AgentNode(client=Script(answers=[])))
    swarm.remove_agent("spare")
    state = await swarm.build().run(START)
    return [shown(state), triage._told[0]["tools"], writer._told[0]["tools"]]


class Hash(EmbedClientBase):
    """Vectors of the letters that a text has."""

    def embed_query(self, text: str, **kwargs: Any) -> list[float]:
        return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]

    def embed_documents(self, texts: list[str], **kwargs: Any) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


async def a_store_of_vectors() -> Any:
    store = ChromaDB(collection_name="programs", embedding=Hash(), top_k=2)
    await store.clear_db()
    known = await store.add_texts([DBItem(text="ferns"), DBItem(text="zzz", ids="z")])
    await store.add_texts(["moss"], metadatas=[{"kind": "plant"}], ids=["m"])
    found = await store.similarity_search("fern")
    kinds = await store.similarity_search("moss", k=1, filter={"kind": "plant"})
    await store.delete_by_ids(["z"])
    return [len(known), found[0].text, kinds[0].text, kinds[0].id, store.get_vector_count()]


class Last(RerankClientBase):
    """The other way round."""

    async def rank(self, query: str, texts: list[str], **kwargs: Any) -> list[int]:
        return list(range(len(texts)))[::-1]


async def an_agent_with_documents() -> Any:
    store = ChromaDB(collection_name="documents", embedding=Hash(), top_k=2)
    await store.clear_db()
    memory = RetrievalMem(vectorstore=store, reranker=Last())
    await memory.add_texts(["ferns grow", "zz"])
    client = Echo()
    agent = AgentNode(client=client, memory=memory)
    await ran(chain(("agent", agent)), {"messages": [UserMessage(content="ferns")]})
    return client._seen


async def a_memory_of_ones_own() -> Any:
    class Notes(MemBase):
        notes: list[str] = Field(default_factory=list)

        async def retrieval_update(self, messages: Any, **kwargs: Any) -> Any:
            return [UserMessage(content=f"known: {self.notes}"), *messages]

        async def add_messages(self, messages: Any, **kwargs: Any) -> None:
            self.notes.append(str(messages[-1].content))

        async def clear(self) -> None:
            self.notes.clear()

    memory = Notes()
    agent = AgentNode(client=Echo(), memory=[memory])
    return [shown(await ran(chain(("a", agent), ("b", agent)), START)), memory.notes]


async def a_memory_of_facts() -> Any:
    store = ChromaDB(collection_name="facts", embedding=Hash(), top_k=3)
    await store.clear_db()
    client = Script(
        answers=[
            'Here: ["ferns are green"]',
            "['moss is old']",
            '[{"id": "0", "text": "ferns are very green", "event": "UPDATE"}]',
        ]
    )
    memory = ChatMem(vectorstore=store, chat_client=client, zh_mode=False)
    await memory.add_messages([UserMessage(content="Ferns.")])
    added = [each.text for each in await store.similarity_search("ferns")]
    await memory.add_messages([UserMessage(content="More.")])
    changed = [each.text for each in await store.similarity_search("ferns")]
    told = await memory.retrieval_update([UserMessage(content="ferns?")])
    return [added, changed, told[0].content, told[-1].content]


async def a_memory_of_attempts() -> Any:
    store = ChromaDB(collection_name="attempts", embedding=Hash(), top_k=3)
    await store.clear_db()

    async def judged(messages: Any) -> Any:
        return True, 0.5, "fine"

    memory = TaskMem(
        vectorstore=store,
        chat_client=Echo(prefix="summary"),
        eval_fuc=judged,
        user_summary_prompt="Sum up: ",
        zh_mode=False,
    )
    await memory.add_messages(
        [UserMessage(content="try", msg_id="t"), AssistantMessage(content="x")]
    )
    told = await memory.retrieval_update([UserMessage(content="again")])
    return [
        store.get_vector_count(),
        told[0].content.split(":")[0],
        "score: 0.5" in told[0].content,
    ]


SKETCH = """```yaml
nodes:
  - {name: intake, type: sop, duty: asks, instruction: Ask., next_node_routing_rule: {work: known}}
  - {name: work, type: sop, duty: works, instruction: Work., next_node_routing_rule: {end: done}}
global_instruction: Be kind.
entry_point: intake
```"""


async def a_workflow_of_a_procedure() -> Any:
    def stamp(text: str) -> str:
        """Stamp a text."""
        return text

    completed = [
        "tools: [stamp]\nmemories: []\nnext_node_routing_rule: {work: known}",
        "tools: []\nmemories: []\nnext_node_routing_rule: {end: done}",
    ]
    with TemporaryDirectory() as folder:
        generator = WorkflowGenerator(
            sop="Ask, then work.",
            graph_generation_client=Script(answers=[SKETCH]),
            graph_node_complete_client=Script(answers=completed),
            graph_run_client=Script(answers=["Noted. ::TO::work::", "Done. ::TO::end::"]),
            tools=[ToolManager(tools=[stamp])],
            memory_list_mode="all",
            output_dir=folder,
        )
        engine = await generator.generate()
    return shown(await engine.run(START))


async def components_by_name() -> Any:
    class ProgramsPart(BaseComponent):
        size: int = 2

    made = ComponentFactory.create("ProgramsPart", size="5")
    try:
        ComponentFactory.create("NoSuchPart")
    except ValueError:
        unknown = True
    return [made.size, ComponentFactory.is_registered("ProgramsPart"), unknown]


async def helpers_of_states() -> Any:
    holder: Any = Chat(messages=[])
    safe_set_attr(holder, "topic", "moss")
    given: Any = {"n": 1}
    safe_set_attr(given, "n", 2)
    return [
        holder.topic,
        given,
        safe_get_attr(given, "no", "none"),
        deep_dump({"a": Chat(messages=[])}),
        fill_defaults(Plain),
        fill_defaults(Chat, extra={"topic": "x"}),
        [is_typeddict(Plain), is_basemodel(Chat), strip_annotated(Annotated[int, "x"]).__name__],
        safe_convert_to_schema({"topic": "t"}, Chat).topic,
    ]


async def words_of_places_and_messages() -> Any:
    heard: list[Any] = []
    set_streaming_handler(heard.append)
    outer = stream_writer_env(StreamCtx(node_name="n", meta={"a": 1}))
    with outer, stream_writer_env(StreamCtx(tool_name="t", meta={"b": 2})):
        get_stream_writer().put("x")
    set_streaming_handler(lambda each: None)
    message = cast_state_message({"role": "system", "content": "s"})
    found = SearchResult.from_db_item(DBItem(text="t", ids="i"), score=0.5)
    return [
        heard,
        isinstance(message, SystemMessage) and bool(message.msg_id),
        found.model_dump(),
        found.to_db_item().model_dump(),
        callable(trace_chat(len)),
        callable(get_logger().info),
    ]


async def a_function_as_a_node_object() -> Any:
    async def waits(state: Any) -> Any:
        return {"tags": ["waited"]}

    nodes = [callable_to_node(waits), callable_to_node(lambda state: {"tags": ["plain"]})]
    kinds = [isinstance(nodes[0], AsyncNode), isinstance(nodes[1], SyncNode)]
    return [kinds, (await ran(chain(("a", nodes[0]), ("b", nodes[1])), {})).tags]


async def what_the_state_has_not_is_left_out() -> Any:
    state = await ran(chain(("a", lambda state: {"tags": ["a"], "nope": 1})), {"other": 2, **START})
    return [state.tags, hasattr(state, "nope"), shown(state)]


async def a_failure_and_its_cause() -> Any:
    def fail(state: Any) -> Any:
        raise LookupError("gone")

    try:
        await ran(chain(("a", fail)), START)
    except RuntimeError as error:
        return ["a" in str(error), type(error.__cause__).__name__, str(error.__cause__)]


def unique(old: Any = MISSING, new: Any = MISSING) -> Any:
    mine = old if isinstance(old, list) else []
    return mine + [each for each in (new if isinstance(new, list) else []) if each not in mine]


if not StateUpdater.registered("tests_unique"):
    StateUpdater.register("tests_unique")(unique)


class Case(BaseModel):
    text: Annotated[str, "overwrite"] = ""
    score: Annotated[int, "overwrite"] = 0
    trail: Annotated[list, "tests_unique"] = []


class Ticket(TypedDict):
    kind: Annotated[str, "overwrite"]
    trail: Annotated[list, "tests_unique"]


async def a_desk_sends_a_case_on_with_less_of_it() -> Any:
    made = GraphBuilder(state_schema=Ticket)
    made.add_node("sort", lambda state: {"kind": "bill", "trail": ["sort"]})
    for name in ("bill", "repair"):
        made.add_node(name, lambda state, name=name: {"trail": [name]})
    made.add_node("close", lambda state: {"trail": [f"close {state['kind']}"]})
    for name in ("bill", "repair"):
        made.add_edge(name, "close")
    made.set_entry_point("sort")
    made.add_condition_edge(
        "sort",
        lambda state: [(state["kind"], lambda s: {**s, "trail": s["trail"][-1:]})],
        ["bill", "repair"],
    )
    return dict(await ran(made, {"trail": ["I paid twice."], "kind": ""}))


async def a_graph_within_shows_its_words() -> Any:
    class Loud(AsyncStreamNode):
        mark: str = "!"

        async def __call__(self, state: Any, stream_writer: Any) -> Any:
            for word in state.text.split():
                stream_writer.put(word.upper())
            return {"text": state.text.upper() + self.mark, "trail": ["loud"]}

    heard: list[Any] = []
    set_streaming_handler(lambda chunk: heard.append(chunk["payload"]))
    within = chain(("loud", Loud(mark="?")), schema=Case).build()
    made = chain(
        ("strip", lambda state: {"text": state.text.strip(), "trail": ["strip"]}),
        ("within", within),
        ("after", lambda state: {"trail": ["after"]}),
        schema=Case,
    )
    state = await ran(made, {"text": " two words "})
    set_streaming_handler(lambda chunk: None)
    return [state.text, sorted(state.trail), heard]


async def judges_are_merged_by_the_best() -> Any:
    made = GraphBuilder(state_schema=Case)
    made.add_node("begin", lambda state: {})
    made.add_node(
        "pick",
        lambda state: {"trail": ["pick"]},
        action_mode="all",
        multi_input_merge_strategy={"judges": lambda states: max(states, key=lambda s: s.score)},
    )
    made.set_entry_point("begin")
    for name, score in (("one", 3), ("two", 9), ("three", 5)):
        made.add_node(name, lambda state, name=name, score=score: {"score": score, "trail": [name]})
        made.add_edge("begin", name)
        made.add_edge(name, "pick", group="judges")
    engine = made.build(timeout=30)
    states = [await engine.run({}), await engine.run({"score": 1})]
    return [[state.score, state.trail] for state in states]


async def a_search_by_two_is_written_once() -> Any:
    made = GraphBuilder(state_schema=Case)
    made.add_node("plan", lambda state: {"text": f"plan {state.text}"})
    made.add_node("web", lambda state: {"trail": ["web"]})
    made.add_node("papers", lambda state: {"trail": ["papers"]})
    made.add_node("write", lambda state: {"text": ", ".join(sorted(state.trail))}, "all")
    made.set_entry_point("plan")
    for name in ("web", "papers"):
        made.add_edge("plan", name)
        made.add_edge(name, "write")
    state = await ran(made, {"text": "ferns"})
    return [state.text, sorted(state.trail)]


async def a_loop_goes_round_more_than_a_hundred_times() -> Any:
    made = chain(
        ("step", lambda state: {"score": state.score + 1}),
        ("look", lambda state: {"text": str(state.score)}),
        schema=Case,
    )
    made.add_condition_edge("look", lambda s: "step" if s.score < 130 else "end", ["step", "end"])
    return (await ran(made, {})).text


PROGRAMS = {
    name: each
    for name, each in list(globals().items())
    if asyncio.iscoroutinefunction(each) and each.__module__ == __name__ and name != "ran"
}


if __name__ == "__main__":
    results = {}
    for name, program in PROGRAMS.items():
        try:
            results[name] = asyncio.run(program())
        except Exception as error:  # noqa: BLE001  # it is what the program gives
            results[name] = {"error": f"{type(error).__name__}: {error}"}
    Path(sys.argv[1]).write_text(
        json.dumps(results, indent=1, ensure_ascii=False, default=repr, sort_keys=True) + "\n"
    )
