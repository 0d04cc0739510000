"""Modules of MASFactory that this distribution has under another name, or not at all.

Importing one of the first gives the names of the module that has them. Of the second, importing
works and every name raises ``Unsupported``, which says what to use.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from masfactory.errors import Unsupported

_SKILL = "masfactory.skills.skill"
_BLUEPRINT = "masfactory.compatibility.blueprint"
SAME = {
    "masfactory.aml.versions": "masfactory.aml",
    "masfactory.aml.v0_2": "masfactory.aml",
    "masfactory.aml.v0_2.document": "masfactory.aml",
    "masfactory.aml.v0_2.graph_design": "masfactory.aml",
    "masfactory.skills.skill_set": _SKILL,
    "masfactory.compatibility.common": _BLUEPRINT,
    "masfactory.compatibility.common.blueprint": _BLUEPRINT,
    "masfactory.compatibility.common.builder": _BLUEPRINT,
    "masfactory.compatibility.common.aml_export": _BLUEPRINT,
    "masfactory.compatibility.common.graph_design_export": _BLUEPRINT,
    "masfactory.compatibility.common.workflow_parse": _BLUEPRINT,
    "masfactory.compatibility.common.llm_options": "masfactory.compatibility.options",
    "masfactory.compatibility.paths": _BLUEPRINT,
    "masfactory.compatibility.chatdev.api": "masfactory.compatibility",
    "masfactory.compatibility.chatdev.graph": "masfactory.compatibility",
    "masfactory.compatibility.dify.api": "masfactory.compatibility",
    "masfactory.compatibility.dify.options": "masfactory.compatibility.options",
    "masfactory.compatibility.langflow.api": "masfactory.compatibility",
}
"""Modules, and those that have their names."""

_READ = "The files are read by masfactory.compatibility; a node of a graph does the rest."
_CONTEXT = "How much context comes into a prompt says axil_agent.Agent(context=ContextPolicy(…))."
_DESIGN = "VibeGraph designs by build_model; give a workflow of your own as build_workflow."
_WATCH = "Watch a run by graph.axil.stream; visualizer.serialize draws a graph."
REFUSED = {
    "masfactory.adapters.context.composer": _CONTEXT,
    "masfactory.adapters.context.policy": _CONTEXT,
    "masfactory.adapters.context.renderer": _CONTEXT,
    "masfactory.adapters.model.common": "Models of axil read messages and assets themselves.",
    "masfactory.components.agents.request_context": "Agent.observe gives the request.",
    "masfactory.skills.parser": "Read a skill by masfactory.skills.load_skill.",
    "masfactory.components.vibe.vibe_workflow": _DESIGN,
    "masfactory.compatibility.chatdev": _READ,
    "masfactory.compatibility.dify": _READ,
    "masfactory.compatibility.langflow": _READ,
    "masfactory.compatibility.common": _READ,
    "masfactory.visualizer": _WATCH,
}
"""Modules, and what to use instead of them and of what is below them."""


class Elsewhere(Loader):
    """A finder and loader of these modules, behind all others."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """Find a module of the tables."""
        del path, target
        if name.startswith("masfactory.") and (name in SAME or instead_of(name)):
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave the making to Python."""
        del spec

    def exec_module(self, module: ModuleType) -> None:
        """Give a module its names."""
        name = module.__name__
        if name in SAME:
            there = importlib.import_module(SAME[name])
            module.__dict__.update(
                {each: getattr(there, each) for each in getattr(there, "__all__", dir(there))}
            )

        def look(wanted: str) -> Any:
            if wanted.startswith("__"):
                raise AttributeError(wanted)
            instead = instead_of(name) or f"See {SAME.get(name, 'masfactory')}."
            raise Unsupported(f"{name}.{wanted}", instead)

        module.__dict__["__getattr__"] = look


def instead_of(name: str) -> str:
    """Give what to use instead of a module; empty: it is none of these."""
    while "." in name:
        if name in REFUSED:
            return REFUSED[name]
        name = name.rpartition(".")[0]
    return ""


def install() -> None:
    """Let Python find these modules, once."""
    if not any(isinstance(each, Elsewhere) for each in sys.meta_path):
        sys.meta_path.append(Elsewhere())
