"""Langflow's flows. What a component gives is a field of the state, and edges only trigger.

Components that help another, such as tools, models and embeddings, become its settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from axil_importers.draft import Draft, Step, literal
from axil_importers.errors import ImportProblem, damaged
from axil_importers.http import Request, can_be_sent, request
from axil_importers.imported import Imported
from axil_importers.models import USUAL_MODEL, model_of, tool_of
from axil_importers.parts import agent, ask, call, keyword, retrieve

Data = Mapping[str, Any]
_HELPING: Final = frozenset(
    {"tools", "llm", "model", "agent_llm", "embedding", "embedding_model", "embeddings",
     "external_memory", "vectorstore", "vector_store", "base_retriever"}
)  # fmt: skip
_HELPS: Final = frozenset(
    {"component_as_tool", "model_output", "embeddings", "vectorstoreconnection", "api_build_tool"}
)
_PLACE: Final = re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w ]*)\}")
_DOUBLE: Final = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_STORES: Final = re.compile(
    r"astra|chroma|faiss|pinecone|qdrant|weaviate|milvus|pgvector|vectorstore|knowledge"
    r"|opensearch|elasticsearch|supabase|mongo.*vector|redis|memorybase|retriever",
    re.I,
)
_SOURCES: Final = re.compile(r"^(File|Directory|SplitText|.*Embeddings?)", re.I)
_TYPES: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_MODEL: Final = re.compile(r"(Model|ModelComponent|ChatOpenAI|LLM)$")
_JUDGED: Final = {
    "equals": "{0} == {1}",
    "not equals": "not ({0} == {1})",
    "contains": "{1} in {0}",
    "greater than": "{0} > {1}",
    "greater than or equal": "{0} >= {1}",
    "less than": "{0} < {1}",
    "less than or equal": "{0} <= {1}",
}


class Langflow:
    """``langflow``: a flow as Langflow exports it."""

    def recognises(self, document: Any) -> bool:
        """Return whether it has data with nodes, which have components, and edges."""
        data: Any = cast("Data", document).get("data") if isinstance(document, Mapping) else None
        if not isinstance(data, Mapping):
            return False
        nodes: Any = cast("Data", data).get("nodes")
        return isinstance(nodes, list) and isinstance(cast("Data", data).get("edges"), list)

    def read(self, document: Any, name: str) -> Imported:
        """Return the workflow. Raises: ImportProblem (AX988)."""
        if not self.recognises(document):
            fault = "the file has no data with nodes and edges."
            raise ImportProblem("AX988", fault, "Export the flow again.")
        given = cast("Data", document)
        draft = Draft.of(given, name)
        with damaged(draft):
            return _Flow(cast("Data", given["data"]), draft).imported()


class _Edge:
    """An edge from an output of a component to an input of another."""

    def __init__(self, given: Data) -> None:
        data = cast("Mapping[str, Data]", given.get("data") or {})
        source: Data = data.get("sourceHandle") or {}
        target: Data = data.get("targetHandle") or {}
        self.source, self.target = str(given["source"]), str(given["target"])
        self.output = str(source.get("name") or "")
        self.input = str(target.get("fieldName") or "")
        self.is_help = self.input in _HELPING or self.output in _HELPS


class _Flow:
    """One flow being imported."""

    def __init__(self, data: Data, draft: Draft) -> None:
        self.draft = draft
        given = cast("list[Data]", data["nodes"])
        self.nodes: dict[str, Data] = {}
        self.steps: dict[str, Step] = {}
        for at, each in enumerate(given):
            inner = cast("Data", each["data"])
            if each.get("type") == "noteNode" or inner.get("type") in ("note", "noteNode"):
                text = str(cast("Data", inner.get("node") or {}).get("description") or "")
                draft.notes += [text.strip()] if text.strip() else []
                continue
            id = str(each["id"])
            self.nodes[id] = {"type": each.get("type") or "component", **inner}
            place = f'data.nodes[{at}] "{self.title(id)}"'
            self.steps[id] = draft.step(place, self.kind(id))
        edges = [_Edge(each) for each in cast("list[Data]", data["edges"])]
        self.edges = [e for e in edges if e.source in self.nodes and e.target in self.nodes]
        self.heads: dict[str, str] = {}

    # ------------------------------------------------------------------ what components hold

    def kind(self, id: str) -> str:
        """Return the type of a component."""
        return str(self.nodes[id].get("type"))

    def title(self, id: str) -> str:
        """Return what people call a component."""
        inner = self.nodes[id]
        node = cast("Data", inner.get("node") or {})
        return str(inner.get("display_name") or node.get("display_name") or inner.get("type"))

    def setting(self, id: str, *names: str) -> Any:
        """Return the first of several settings that has a value."""
        node = cast("Data", self.nodes[id].get("node") or {})
        template = cast("Data", node.get("template") or {})
        for name in names:
            given: Any = template.get(name)
            value = cast("Data", given).get("value") if isinstance(given, Mapping) else None
            if value not in (None, "", [], {}):
                return value
        return None

    def field(self, id: str) -> str:
        """Return the field that holds what a component gives."""
        return self.draft.field("node", id, wanted=self.title(id))

    def sources(self, id: str, *inputs: str) -> list[str]:
        """Return the paths of what comes to inputs of a component; without names, to any."""
        found = [
            self.path(each.source)
            for each in self.edges
            if each.target == id and not each.is_help and (not inputs or each.input in inputs)
        ]
        return list(dict.fromkeys(found))

    def path(self, id: str, seen: frozenset[str] = frozenset()) -> str:
        """Return the field of a component; of one that only passes on, that of the one before."""
        if self.kind(id) == "ConditionalRouter" and id not in seen:
            wanted = ("input_text", "message", "true_case_message")
            for each in self.edges:
                if each.target == id and each.input in wanted:
                    return self.path(each.source, seen | {id})
        return self.field(id)

    def text(self, id: str, *names: str) -> str:
        """Return an input, of edges or as a setting, as a text with places."""
        paths = self.sources(id, *names)
        if paths:
            return "\n".join("{" + each + "}" for each in paths)
        value = self.setting(id, *names)
        if isinstance(value, list):
            value = "\n".join(str(each) for each in cast("list[Any]", value))
        return literal("" if value is None else str(value))

    def helpers(self, id: str) -> list[_Edge]:
        """Return the edges of what helps a component."""
        return [each for each in self.edges if each.target == id and each.is_help]

    def is_helper(self, id: str) -> bool:
        """Return whether a component only helps others."""
        out = [each for each in self.edges if each.source == id]
        return bool(out) and all(each.is_help for each in out)

    # ------------------------------------------------------------------ the graph

    def imported(self) -> Imported:
        """Return the workflow file and the findings."""
        draft = self.draft
        connected = {e.source for e in self.edges} | {e.target for e in self.edges}
        steps = [n for n in self.nodes if not self.is_helper(n) and n in connected]
        if not self.edges:
            steps = list(self.nodes)
        names = {each: draft.name(self.title(each)) for each in steps}
        for id, name in names.items():
            self.heads[id] = name
            _convert(self, id, name)
        for id, step in self.steps.items():
            if id not in names and not step.became and not step.findings()[0].reason:
                reason = "nothing is connected with it"
                reason = "what it helps does not need it here" if self.is_helper(id) else reason
                step.leave(reason, "Connect it, or forget it.")
        for each in self.edges:
            if each.source in names and each.target in names and not each.is_help:
                when = _condition(self, each)
                draft.edge(names[each.source], self.heads[each.target], when)
        writes = {str(each["id"]): each.get("push", []) for each in draft.nodes}
        ends = {(str(each["from"]), str(each["to"])) for each in draft.edges}
        inner = [e for e in self.edges if not e.is_help and {e.source, e.target} <= names.keys()]
        for id, name in names.items():
            is_first = all(each.target != id for each in inner)
            if is_first and ("@entry", name) not in ends:
                draft.edge("@entry", self.heads[id])
            is_last = all(each.source != id for each in inner)
            if is_last and (name, "@exit") not in ends:
                field = self.field(id)
                keys = {field: f"what {self.title(id)} gives"} if field in writes[name] else {}
                draft.edge(name, "@exit", keys=keys)
        return draft.imported()


def _condition(flow: _Flow, edge: _Edge) -> str:
    """Return when an edge is taken."""
    id = edge.source
    if flow.kind(id) != "ConditionalRouter":
        return ""
    left = flow.sources(id, "input_text")
    right = flow.sources(id, "match_text")
    value = str(flow.setting(id, "match_text") or "").replace('"', "'").replace("\\", "/")
    operator = str(flow.setting(id, "operator") or "equals")
    step = flow.steps[id]
    if operator not in _JUDGED:
        step.approximate(f'"{operator}" is asked as "contains"', "Correct its out-edges.")
        operator = "contains"
    asked = _JUDGED[operator].format(
        f"state.{left[0]}" if left else '""', f"state.{right[0]}" if right else f'"{value}"'
    )
    return asked if edge.output == "true_result" else f"not ({asked})"


def _convert(flow: _Flow, id: str, name: str) -> None:
    kind = flow.kind(id)
    known: Convert | None = _KINDS.get(kind)
    if known is None:
        if _STORES.search(kind):
            known = _store
        elif _MODEL.search(kind):
            known = _agent
        elif _SOURCES.match(kind):
            known = _file if kind.startswith(("File", "Directory")) else _ingest
        else:
            known = _other
    known(flow, id, name)


Convert = Callable[[_Flow, str, str], None]


def _assign(flow: _Flow, id: str, name: str, value: Any) -> None:
    field = flow.field(id)
    flow.draft.node(name, "assign", {"fields": {field: value}}, [field])
    flow.steps[id].became = f"assign {name}"


def _input(flow: _Flow, id: str, name: str) -> None:
    """Add an input of the run."""
    wanted = "chat_input" if flow.kind(id) == "ChatInput" else flow.title(id)
    given = flow.draft.field("@in", wanted, wanted=wanted)
    _assign(flow, id, name, {"path": given})
    label = "What the user says." if flow.kind(id) == "ChatInput" else flow.title(id)
    flow.draft.edge("@entry", name, keys={given: label})
    if flow.setting(id, "files"):
        flow.steps[id].approximate("its files are not taken", "Put them into the workspace.")


def _fixed(flow: _Flow, id: str, name: str) -> None:
    """Add a text: what comes, or the one that was written."""
    if not flow.sources(id) and not flow.setting(id, "input_value"):
        _input(flow, id, name)
        return
    _assign(flow, id, name, flow.text(id, "input_value"))


def _output(flow: _Flow, id: str, name: str) -> None:
    """Add the answer to the user, and the way to the exit."""
    paths = flow.sources(id)
    _assign(flow, id, name, {"path": paths[0]} if len(paths) == 1 else flow.text(id, "input_value"))
    flow.draft.edge(name, "@exit", keys={flow.field(id): "What the user is told."})


def _prompt(flow: _Flow, id: str, name: str) -> None:
    """Add a text with places."""
    template = str(flow.setting(id, "template") or "")
    is_double = bool(flow.setting(id, "use_double_brackets"))
    parts: list[str] = []
    end = 0
    for place in (_DOUBLE if is_double else _PLACE).finditer(template):
        parts.append(literal(template[end : place.start()]))
        parts.append(flow.text(id, place[1]) if place[1] else literal(place[0][0]))
        end = place.end()
    _assign(flow, id, name, "".join(parts) + literal(template[end:]))


def _agent(flow: _Flow, id: str, name: str) -> None:
    """Add an agent with the settings that its helpers give."""
    step, field = flow.steps[id], flow.field(id)
    config: dict[str, Any] = {"model": _model(flow, id, step)}
    tools: list[Any] = []
    for each in flow.helpers(id):
        _help(flow, each, config, tools)
    if flow.setting(id, "add_current_date_tool"):
        tools.append("current_time")
    if tools:
        config["tools"] = [each for at, each in enumerate(tools) if each not in tools[:at]]
    if flow.kind(id) == "Agent" and flow.setting(id, "n_messages"):
        config["memories"] = ["history"]
    turns = flow.setting(id, "max_iterations")
    if isinstance(turns, int):
        config["max_turns"] = max(1, turns)
    temperature = flow.setting(id, "temperature")
    if isinstance(temperature, int | float):
        config["model_settings"] = {"temperature": temperature}
    schema = flow.setting(id, "output_schema")
    is_typed = flow.kind(id) == "StructuredOutput" or any(
        each.source == id and each.output == "structured_response" for each in flow.edges
    )
    config["output"] = {field: _typed(schema) if is_typed and schema else "The answer."}
    system = [flow.text(id, "system_prompt", "system_message")]
    if is_typed:
        system.append(flow.text(id, "format_instructions"))
    prompt = flow.text(id, "input_value", "df", "input")
    texts = {"system": "\n".join(each for each in system if each), "prompt": prompt}
    flow.heads[id] = agent(flow.draft, name, texts, config, [field])
    step.became = f"agent {name}"
    if flow.kind(id) == "BatchRunComponent":
        step.approximate("it is asked once for all rows", "Put it into a map, to ask for each.")


def _typed(schema: Any) -> Any:
    rows = [cast("Data", each) for each in cast("list[Any]", schema) if isinstance(each, Mapping)]
    properties: dict[str, Any] = {}
    for row in rows:
        one = {"type": _TYPES.get(str(row.get("type")), "string")}
        if str(row.get("multiple")).lower() == "true":
            one = {"type": "array", "items": one}
        described = str(row.get("description") or "")
        properties[str(row.get("name"))] = {**one, "description": described}
    return {"type": "object", "properties": properties}


def _model(flow: _Flow, id: str, step: Step) -> dict[str, Any]:
    given = flow.setting(id, "model", "agent_llm")
    named = flow.setting(id, "model_name", "model_id")
    if isinstance(given, list) and given and isinstance(given[0], Mapping):
        first = cast("Data", given[0])
        return model_of(str(first.get("provider") or ""), str(first.get("name") or ""), step)
    if isinstance(given, str) and given not in ("Custom", "connect_other_models"):
        provider = given if named or flow.setting(id, "agent_llm") else ""
        return model_of(provider, str(named or given), step)
    own = str(flow.setting(id, "provider") or flow.kind(id).removesuffix("Model"))
    if named:
        return model_of(own.removesuffix("Component"), str(named), step)
    if any(each.input in ("model", "llm", "agent_llm") for each in flow.helpers(id)):
        return {"type": "openai", "name": USUAL_MODEL}
    return model_of("", "", step)


def _help(flow: _Flow, edge: _Edge, config: dict[str, Any], tools: list[Any]) -> None:
    """Take what helps an agent: a tool, a model, a memory."""
    id = edge.source
    step, kind = flow.steps[id], flow.kind(id)
    if edge.input in ("model", "llm", "agent_llm") or edge.output == "model_output":
        config["model"] = _model(flow, id, step)
    elif edge.input == "external_memory":
        config["memories"] = ["history"]
        step.approximate(f"{kind} is the history of the run", "Run it with --thread.")
    elif _STORES.search(kind):
        config["retrievers"] = [keyword()]
        step.approximate("the export does not hold the knowledge", "Put texts into documents.")
    elif kind in ("MCP", "MCPTools"):
        if not _mcp(flow, id, step, tools):
            return
    elif kind == "Agent" or (known := _known_tool(kind)) is None:
        step.leave(f"the agent lacks the tool {kind}", "Add yours, or an MCP server, to its tools.")
        return
    else:
        tools.append(known)
    step.became = f"part of {flow.title(edge.target)}"


def _mcp(flow: _Flow, id: str, step: Step, tools: list[Any]) -> bool:
    """Take an MCP server by its address; False: it has none."""
    held = cast("Data", flow.setting(id, "mcp_server") or {})
    config = cast("Data", held.get("config") or {})
    url = str(config.get("url") or "")
    if not url.startswith(("http://", "https://")):
        step.leave("the MCP server is started by a program", "Add the tool mcp with its command.")
        return False
    tool = flow.setting(id, "tool")
    server = {"type": "mcp", "url": url}
    tools.append({**server, "allow": [str(tool)]} if tool else server)
    if config.get("headers"):
        step.approximate(
            "its headers and its login are not taken", "Write token: {env: NAME} to the tool mcp."
        )
    return True


def _known_tool(kind: str) -> str | None:
    known = tool_of(_plain(kind))
    return known[0] if known else None


def _plain(kind: str) -> str:
    """Return the name of a component as names of tools are written."""
    if kind in ("URLComponent", "URL", "URLTool"):
        return "webscraper"
    if "WebSearch" in kind or "SearchAPI" in kind or "SearchComponent" in kind:
        return "google_search"
    if kind == "CurrentDate":
        return "current_time"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind)


def _parser(flow: _Flow, id: str, name: str) -> None:
    """Add a text that is made of keys of what comes."""
    step, paths = flow.steps[id], flow.sources(id)
    path = paths[0] if paths else ""
    pattern = str(flow.setting(id, "pattern", "template") or "")
    if not path or not pattern or flow.setting(id, "mode") == "Stringify":
        _assign(flow, id, name, "{" + path + "}" if path else "")
        return
    parts: list[str] = []
    end = 0
    for place in _PLACE.finditer(pattern):
        parts.append(literal(pattern[end : place.start()]))
        key = place[1]
        inside = path if key in ("text", "data") else f"{path}.{key}"
        parts.append("{" + inside + "}" if key else literal(place[0][0]))
        end = place.end()
    _assign(flow, id, name, "".join(parts) + literal(pattern[end:]))
    source = next((e.source for e in flow.edges if e.target == id), "")
    if flow.kind(source) not in ("Agent", "StructuredOutput", "ChatInput") if source else False:
        step.approximate("of a list of rows one text is made", "Put it into a map, for each row.")


def _combine(flow: _Flow, id: str, name: str) -> None:
    """Add a text of two."""
    sign = str(flow.setting(id, "delimiter") or " ")
    _assign(flow, id, name, f"{flow.text(id, 'text1')}{literal(sign)}{flow.text(id, 'text2')}")


def _passing(flow: _Flow, id: str, name: str) -> None:
    """Add what comes, as it is."""
    paths = flow.sources(id)
    _assign(flow, id, name, {"path": paths[0]} if paths else {"value": ""})


def _router(flow: _Flow, id: str, name: str) -> None:
    """Add a node whose out-edges have conditions."""
    flow.draft.node(name, "passthrough", {})
    flow.steps[id].became = f"passthrough {name}"


def _store(flow: _Flow, id: str, name: str) -> None:
    """Add a search; a store that is only filled is left."""
    query = flow.text(id, "search_query", "query", "search_input", "lexical_terms")
    if not query and flow.sources(id):
        _ingest(flow, id, name)
        return
    retrieve(flow.draft, flow.steps[id], name, flow.field(id), query or "{chat_input}")


def _ingest(flow: _Flow, id: str, name: str) -> None:
    """Add what comes: documents of a provider are cut and kept by itself."""
    _passing(flow, id, name)
    flow.steps[id].approximate(
        "texts are not cut or kept by it", "Name the files in paths of the provider that searches."
    )


def _file(flow: _Flow, id: str, name: str) -> None:
    """Add a file of the workspace, as text."""
    step, field = flow.steps[id], flow.field(id)
    named = flow.setting(id, "path", "file_path", "file_path_str")
    path = cast("Any", named)[0] if isinstance(named, list) else named
    given = literal(str(path).rpartition("/")[2]) if path else ""
    if not given:
        wanted = flow.draft.field("@in", "file", wanted="file")
        given = "{" + wanted + "}"
        flow.draft.edge("@entry", name, keys={wanted: "The path of the file in the workspace."})
    config = {"tool": {"type": "load_file"}, "arguments": {"path_or_id": given}, "field": field}
    flow.draft.node(name, "call_tool", config, [field])
    step.became = f"call_tool {name}"
    step.approximate(
        "the file is read from the workspace, as text", "Give its path, and --workspace DIR."
    )


def _save(flow: _Flow, id: str, name: str) -> None:
    """Add the writing of a file in the workspace."""
    step, field = flow.steps[id], flow.field(id)
    ending = str(flow.setting(id, "local_format", "file_format") or "txt")
    path = f"{flow.setting(id, 'file_name') or 'output'}.{ending}"
    arguments = {"path": literal(path), "content": flow.text(id, "input")}
    config = {"tool": {"type": "write_file"}, "arguments": arguments, "field": field}
    flow.draft.node(name, "call_tool", config, [field])
    step.became = f"call_tool {name}, the tool write_file"
    step.approximate("the file is written in the workspace, as text", "Give --workspace DIR.")


def _http(flow: _Flow, id: str, name: str) -> None:
    """Add a request."""
    step, field = flow.steps[id], flow.field(id)
    asked = Request(
        method=str(flow.setting(id, "method") or "GET").upper(),
        url=flow.text(id, "url_input", "urls", "url").partition("\n")[0].strip(),
        headers=_table(flow.setting(id, "headers")),
    )
    body = _table(flow.setting(id, "body"))
    if body and asked.method != "GET":
        asked.body = {"object": dict(body)}
    if can_be_sent(asked):
        request(flow.draft, step, name, field, asked)
        if flow.setting(id, "curl_input"):
            step.approximate("its curl command is not read", "Compare it with the settings.")
        return
    given = {key: flow.text(id, key) for key in ("url_input", "method", "body")}
    flow.heads[id] = ask(flow.draft, step, name, (flow.kind(id), field), given)


def _table(given: Any) -> list[tuple[str, str]]:
    if not isinstance(given, list):
        return []
    rows = [cast("Data", each) for each in cast("list[Any]", given) if isinstance(each, Mapping)]
    return [(str(r["key"]), literal(str(r.get("value") or ""))) for r in rows if r.get("key")]


def _history(flow: _Flow, id: str, name: str) -> None:
    """Add an empty text in the place of earlier messages."""
    _assign(flow, id, name, {"value": ""})
    flow.steps[id].approximate(
        "earlier messages are not put into prompts here",
        "Give the agent memories: [history], and run it with --thread.",
    )


def _other(flow: _Flow, id: str, name: str) -> None:
    """Add a tool that is known here; else a question to a person."""
    kind, step, field = flow.kind(id), flow.steps[id], flow.field(id)
    paths = flow.sources(id)
    given = "\n".join("{" + each + "}" for each in paths)
    if not given:
        given = flow.text(id, "urls", "query", "input_value", "search_query")
    if call(flow.draft, step, name, (_plain(kind), field), given):
        return
    flow.heads[id] = ask(flow.draft, step, name, (kind, field), {"with": given})


_KINDS: Final[Mapping[str, Convert]] = {
    "ChatInput": _input,
    "Webhook": _input,
    "TextInput": _fixed,
    "ChatOutput": _output,
    "TextOutput": _output,
    **dict.fromkeys(("Prompt", "Prompt Template", "PromptComponent"), _prompt),
    **dict.fromkeys(
        ("Agent", "LanguageModelComponent", "StructuredOutput", "StructuredOutputComponent",
         "BatchRunComponent"),
        _agent,
    ),
    **dict.fromkeys(("parser", "ParserComponent", "ParseData", "ParseDataFrame"), _parser),
    "CombineText": _combine,
    **dict.fromkeys(("TypeConverterComponent", "MessagetoData", "Pass"), _passing),
    "ConditionalRouter": _router,
    **dict.fromkeys(("SaveToFile", "SaveToFileComponent"), _save),
    **dict.fromkeys(("APIRequest", "APIRequestComponent"), _http),
    **dict.fromkeys(("Memory", "MessageHistory", "ChatMemory"), _history),
}  # fmt: skip
