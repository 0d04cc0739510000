"""``VibeGraph``: a graph that a model designs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import axil_agent
from masfactory.adapters.model.chosen import askable
from masfactory.aml.design import graph_design_to_aml_document
from masfactory.aml.model import AmlError
from masfactory.components.graphs.graph import Graph
from masfactory.components.graphs.root_graph import RootGraph
from masfactory.components.vibe.compiler import compile_aml, load_cached_aml
from masfactory.core.message import ParagraphMessageFormatter, TwinsFieldTextFormatter
from masfactory.core.node import Keys, Node
from masfactory.core.node_template import template_defaults
from masfactory.utils.apart import apart
from masfactory.utils.hook import masf_hook

TRIES = 3
_GUIDE = """\
You design workflows of agents as AML, which is XML. Answer with one document and nothing else:

<aml version="0.2" kind="graph" id="workflow"><definitions>
<agents><agent id="writer"><instructions>You write.</instructions>
<prompt_template>Topic: {{topic}}</prompt_template></agent></agents>
<graphs><graph id="root" kind="root">
<nodes><agent id="draft" ref="#writer"/></nodes>
<edges><edge from="entry" to="draft"><keys><field name="topic" description="what about"/></keys>\
</edge>
<edge from="draft" to="exit"><keys><field name="text" description="the text"/></keys></edge></edges>
</graph></graphs></definitions></aml>

Every node has an id. Other nodes: <custom_node id="join"/> passes its input on;
<logic_switch id="way"/>, whose edges have if="len(message['text']) > 9";
<agent_switch id="way"/>, whose edges have match="a sentence";
<loop id="rounds" max_iterations="3"><terminate if="'DONE' in message['text']"/><nodes>…</nodes>
<edges>…</edges></loop>, whose edges begin and end at "controller". An edge carries the fields among
its keys, and each is a field that its sender has or is asked for."""


class VibeGraph(Graph):
    """A graph that ``build_model`` designs from ``build_instructions`` when it is built.

    The design is AML, kept in ``build_cache_path``: what is there is not asked for again, so a
    person may edit it. The nodes ask ``invoke_model``.
    """

    def __init__(
        self,
        name: str,
        invoke_model: Any = None,
        *,
        build_instructions: str,
        build_model: Any,
        build_workflow: Any = None,
        build_cache_path: str | Path | None = None,
        invoke_tools: Sequence[Callable[..., Any]] | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the graph.

        Args:
            build_workflow: a template of a graph that designs instead of ``build_model`` alone: it
                is given ``build_instructions``, and gives ``aml`` or ``graph_design``.
        """
        super().__init__(name, pull_keys, push_keys, attributes)
        self._cache = None if build_cache_path is None else Path(build_cache_path)
        self._workflow = build_workflow
        self.invoke_model, self.build_model = invoke_model, build_model
        self.build_instructions, self.invoke_tools = build_instructions, list(invoke_tools or ())

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Read the design, or ask for it, and make the graph.

        Raises: AmlError: it cannot be made a graph, after three tries.
        """
        if not self.nodes:
            self._design()
        super().build()

    def _design(self) -> None:
        if self._cache is not None and self._cache.is_file():
            self._compile(self.kept(self._cache))
            return
        fault = ""
        for attempt in range(TRIES):
            text = self._asked(fault) if self._workflow is None else self._worked(fault)
            try:
                trial = Graph(self.name)
                _compile_into(trial, text, self)
            except AmlError as error:
                fault = f"Your last document could not be used: {error}"
                if attempt == TRIES - 1:
                    raise AmlError(
                        f'VibeGraph "{self.name}": none of {TRIES} documents could be used. The '
                        f"last one: {error} Give another build_model, or the document in "
                        "build_cache_path."
                    ) from error
                continue
            if self._cache is not None:
                self._cache.parent.mkdir(parents=True, exist_ok=True)
                self._cache.write_text(text, "utf-8")
            self._compile(text)
            return

    def kept(self, cache: Path) -> str | Path:
        """Give the design that a file keeps."""
        return load_cached_aml(cache) if cache.suffix == ".json" else cache

    def _worked(self, fault: str) -> str:
        """Return what the workflow of one's own designs."""
        wanted = {
            "build_instructions": self.build_instructions,
            "user_demand": self.build_instructions,
            "user_advice": "",
            "system_advice": fault,
        }
        asked = dict.fromkeys(wanted, "")
        root = RootGraph(
            f"{self.name}_vibe_build",
            nodes=[("workflow", self._workflow)],
            edges=[("entry", "workflow", asked), ("workflow", "exit", {"aml": ""})],
        )
        with template_defaults(model=self.build_model):
            root.build()
        design: Any = root.invoke(wanted)[0]["aml"]
        if isinstance(design, str) and "<aml" in design:
            return design
        return graph_design_to_aml_document(design, document_id=f"{self.name}.vibe_cache")

    def _compile(self, text: str | Path) -> None:
        _compile_into(self, text, self)

    def _asked(self, fault: str) -> str:
        agent = axil_agent.SingleAgent(
            askable(self.build_model),
            instructions=_GUIDE,
            prompt_template="{wanted}\n{fault}",
            formatters=[ParagraphMessageFormatter(), TwinsFieldTextFormatter()],
            name=f"{self.name}_designer",
            hide_unused_fields=True,
            output_keys=["aml"],
        )
        fields = {"wanted": self.build_instructions, "fault": fault}
        said = str(apart(lambda: agent.invoke(fields))["aml"])
        begin, end = said.find("<aml"), said.rfind("</aml>")
        return said[begin : end + len("</aml>")] if 0 <= begin < end else said


def _compile_into(graph: Graph, text: str | Path, vibe: VibeGraph) -> None:
    compile_aml(target_graph=graph, aml=text, model=vibe.invoke_model, tools=vibe.invoke_tools)
