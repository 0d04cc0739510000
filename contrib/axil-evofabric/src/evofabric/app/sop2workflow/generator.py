"""``WorkflowGenerator``: two questions to a model make a workflow of a procedure."""

from __future__ import annotations

import asyncio
from pathlib import Path
from string import Template
from typing import Any, Literal, cast

import yaml
from pydantic import Field, field_validator

from evofabric.app.sop2workflow.descriptions import (
    GraphDescription,
    GraphDespEdge,
    GraphDespNode,
    SopBreakdownGraphDesp,
    SopBreakdownNodeDesp,
    WorkflowGeneratorBase,
    extract_text_between,
    generate_condition_router_function_call,
    user_feedback_router,
)
from evofabric.core.agent import AgentNode
from evofabric.core.graph import GraphBuilder, GraphEngine, generate_state_schema
from evofabric.core.tool import ToolController
from evofabric.core.typing import UserMessage

_BREAKDOWN = """Break the procedure below down into the nodes of a workflow. Answer in YAML:
nodes: [{name, type: sop or connect, duty, instruction, next_node_routing_rule: {node: when}}],
global_instruction: what all nodes follow, entry_point: the first node. The nodes user (asks the
person) and end (the end) exist: lead to them, do not list them.

Procedure:
$SOP
"""
_COMPLETION = """Complete one node of a workflow. Answer in YAML:
tools: [names], memories: [names], next_node_routing_rule: {node: when}.

What all nodes follow: $global_instruction
The node:
$node_desp
The other nodes:
$other_nodes
Tools:
$tool_lists
Memories:
$rag_modules
"""
_DUTIES = {
    "user": "Asks the person.",
    "end": "Ends the workflow, once all that was wished is done.",
}


def _completion(given: Any) -> dict[str, Any]:
    """Read how a node is completed. Raises: TypeError, KeyError: it is not said."""
    return {
        "tools": list(given.get("tools") or ()),
        "memories": list(given.get("memories") or ()),
        "rules": dict(given["next_node_routing_rule"]),
    }


class WorkflowGenerator(WorkflowGeneratorBase):
    """Makes a workflow of a procedure: a model sketches its nodes, then completes each of them.

    What it answered is kept in ``output_dir`` as YAML, and read from there the next time.
    """

    graph_generation_client: Any
    graph_node_complete_client: Any
    graph_run_client: Any
    retry: int = 5
    """The number of times that an answer which cannot be read is asked for."""
    output_dir: str | None = None
    tools: list[Any] = Field(default_factory=list[Any])
    """A manager of tools, or several."""
    memories: dict[str, tuple[str, Any]] = Field(default_factory=dict[str, tuple[str, Any]])
    state_schema: list[tuple[str, Any, str]] | None = None
    addition_global_instruction: str = ""
    user_node: Any = None
    fallback_node: str | None = "end"
    auto_self_loop: bool = True
    sop_disassembly_prompt: str = _BREAKDOWN
    node_completion_prompt: str = _COMPLETION
    tool_list_mode: Literal["all", "select"] = "all"
    memory_list_mode: Literal["all", "select"] = "all"
    skeleton_file_name: str = "_skeleton.yaml"
    reserved_nodes: list[str] = Field(default_factory=lambda: ["start", "end", "user"])
    exit_function_name: str | None = None
    build_kwargs: dict[str, Any] = Field(default_factory=dict[str, Any])

    @field_validator("tools", mode="before")
    @classmethod
    def _several(cls, given: Any) -> Any:
        return list(cast("Any", given)) if isinstance(given, (list, tuple)) else [given]

    async def generate(self) -> GraphEngine:
        """Give the workflow. Raises: ValueError: the model gave nothing that can be read."""
        kept = self._path("_graph_desp_dsv3.yaml")
        known = self.load_yaml(kept)
        if known is None:
            sketch = await self._sketched()
            nodes = [each for each in sketch.nodes if each.name not in self.reserved_nodes]
            done = await asyncio.gather(*(self._completed(each, sketch) for each in nodes))
            made = GraphDescription(
                nodes=[node for node, _ in done],
                edges=[edge for _, edge in done],
                entry_point=sketch.entry_point,
                global_instruction=sketch.global_instruction,
            )
            self.dump_yaml(made.model_dump(), kept)
            known = made.model_dump()
        return self._built(GraphDescription.model_validate(known))

    def _path(self, name: str) -> str | None:
        return str(Path(self.output_dir) / name) if self.output_dir else None

    async def _asked(self, client: Any, text: str, kept: str | None, model: Any) -> Any:
        """Give what a model answers, as data; an answer that is kept is not asked for again."""
        known, said = self.load_yaml(kept), ""
        for attempt in range(max(self.retry, 1)):
            if known is None:
                said = (await client.create(messages=[UserMessage(content=text)])).content
                said = extract_text_between(said, "```yaml", "```") or said
            try:
                found = model(yaml.safe_load(said) if known is None else known)
            except (yaml.YAMLError, LookupError, ValueError, TypeError) as error:
                if known is not None or attempt + 1 >= self.retry:
                    raise ValueError(
                        f"a model's description of the workflow cannot be read: {error}. Correct "
                        f"{kept or 'the procedure'}."
                    ) from error
                continue
            self.dump_yaml(known if known is not None else yaml.safe_load(said), kept)
            return found
        raise AssertionError

    async def _sketched(self) -> SopBreakdownGraphDesp:
        text = Template(self.sop_disassembly_prompt).safe_substitute(SOP=self.sop)
        return await self._asked(
            self.graph_generation_client,
            text,
            self._path("_sop_breakdown.yaml"),
            SopBreakdownGraphDesp.model_validate,
        )

    async def _completed(
        self, node: SopBreakdownNodeDesp, sketch: SopBreakdownGraphDesp
    ) -> tuple[GraphDespNode, GraphDespEdge]:
        told = [tool["function"] for each in self.tools for tool in await each.list_tools()]
        text = Template(self.node_completion_prompt).safe_substitute(
            global_instruction=sketch.global_instruction,
            node_desp=yaml.safe_dump(node.model_dump(), allow_unicode=True),
            other_nodes="\n".join(
                f"{each.name}: {each.duty}" for each in sketch.nodes if each.name != node.name
            ),
            tool_lists="\n".join(f"{each['name']}: {each['description']}" for each in told)
            or "No tools",
            rag_modules="\n".join(f"{name}: {each[0]}" for name, each in self.memories.items())
            or "No memory modules",
        )
        found = await self._asked(
            self.graph_node_complete_client,
            text,
            self._path(f"_{node.name}.yaml"),
            _completion,
        )
        duties = {**_DUTIES, **{each.name: each.duty for each in sketch.nodes}}
        ways = "\n".join(
            f"- ::TO::{target}:: when: {when} ({duties.get(target, target)})"
            for target, when in found["rules"].items()
        )
        instruction = (
            f"You are the node {node.name} of a workflow. All nodes follow: "
            f"{sketch.global_instruction}\n\n{node.instruction}\n\nTo hand over, say what you "
            f"have, then one of these:\n{ways}\n"
        )
        return (
            GraphDespNode(
                name=node.name,
                tools=found["tools"],
                memories=found["memories"],
                instruction=instruction,
                sop=node.instruction,
            ),
            GraphDespEdge(source=node.name, possible_targets=list(found["rules"])),
        )

    def _built(self, made: GraphDescription) -> GraphEngine:
        graph = GraphBuilder(state_schema=generate_state_schema(self.state_schema))
        nodes = [each for each in made.nodes if each.name not in ("start", "end")]
        for node in nodes:
            graph.add_node(node.name, self._agent(node), action_mode="any")
        asks = [edge.source for edge in made.edges if "user" in edge.possible_targets]
        if self.user_node is not None and asks:
            graph.add_node("user", self.user_node, action_mode="any")
        known = {node.name for node in nodes} | {"end"}
        known |= {"user"} if self.user_node is not None and asks else set()
        fallback = self.fallback_node or "end"
        for edge in made.edges:
            targets = [each for each in edge.possible_targets if each in known]
            targets += [edge.source] if self.auto_self_loop else []
            targets = list(dict.fromkeys([*targets, fallback]))
            route = generate_condition_router_function_call(
                edge.source, targets, fallback, self.exit_function_name
            )
            ways = list(dict.fromkeys([*targets, edge.source, "end"]))
            graph.add_condition_edge(edge.source, route, ways)
        if "user" in known:
            graph.add_condition_edge("user", user_feedback_router, asks)
        graph.set_entry_point(made.entry_point)
        return graph.build(**self.build_kwargs)

    def _agent(self, node: GraphDespNode) -> AgentNode:
        managers = self.tools
        if self.tool_list_mode == "select":
            rules: list[Any] = [{"mode": "activate", "pattern": name} for name in node.tools]
            managers = [each.model_copy() for each in managers]
            for each in managers:
                each.set_tool_controller(ToolController(default_mode="deactivate", rules=rules))
        chosen = self.memories if self.memory_list_mode == "all" else node.memories
        return AgentNode(
            client=self.graph_run_client,
            system_prompt=f"{node.instruction}\n{self.addition_global_instruction}",
            tool_manager=managers,
            memory=[self.memories[name][1] for name in chosen],
        )
