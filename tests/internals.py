"""Insides of members that no face has, for tests of the project that replace them, damage what they
read, or compare with them.

Only this module names them outside their members. When one of them moves, its place is changed
here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

PLACES = {
    # differential: the short way into the next round, switched off
    "CycleRun": "axil.kernel.scopes:CycleRun",
    # differential: faults are planted in it, and its short ways switched off
    "folding": "axil.compiler.folding",
    "machine_type": "axil.kernel.scopes:machine_type",  # differential: the same
    "joins": "axil.kernel.joins",  # differential: faults
    "journal": "axil_journals.replay",  # differential: faults
    "planner": "axil.compiler.planner",  # differential: faults
    "scopes": "axil.kernel.scopes",  # differential: faults
    "machine": "axil.kernel.machine",  # differential: faults
    "barriers": "axil.kernel.barriers",  # differential: faults
    "subgraphs": "axil.compiler.subgraphs",  # differential: faults
    "state": "axil.kernel.state",  # differential: faults
    "Pattern": "axil.patterns.patterns:Pattern",  # fuzz: how long a search may take
    # faults: what a run offers to its bodies, replaced method by method
    "RunServices": "axil.runtime.services:RunServices",
    "OBSERVER_HOOKS": "axil.contract.observers:OBSERVER_HOOKS",  # faults: each of them
    "RunOptions": "axil.builder.options:RunOptions",  # house: they are those of Options
    "agent_arguments": "axil_agent.arguments",  # house: they are those of agents
    "pool": "axil.runtime.pool",  # benchmarks: after what time a run gives way, SLICE
    "run": "axil.runtime.run",  # benchmarks: the same
    "module_of_each": "axil._lazy:module_of_each",  # house: what public modules give
    "manifests": "axil_plugins.manifests",  # house: written and compared
    "scaffold": "axil_plugins.scaffold",  # house: what templates make
    "survey": "axil_plugins.survey",  # house, benchmarks: what is known of all components
    "needs": "axil.dependencies.needs",  # integration: of a graph that is no file
    "Flow": "axil_journals.analysis.flow:Flow",  # integration: what it says, against runs
    "GraphFacts": "axil_journals.analysis.facts:GraphFacts",  # integration: the same
    "file_models": "axil_files.models",  # integration: every key of a file is on its page
    "file_loading": "axil_files.loading",  # integration: how often files are read
    "lock": "axil_plugins.lock",  # integration: what a lock records
    "builds": "axil_plugins.builds.command",  # integration: a build with contributed plugins
    "build_settings": "axil_plugins.builds.settings",  # integration; fuzz: damaged files
    "sketch": "axil_cli.sketch",  # conformance: what is drawn of files that cannot run
    "devall_config": "axil_devall.config",  # integration: tools of a file
    "devall_functions": "axil_devall.functions",  # conformance, benchmarks: all of them
    "devall_notes": "axil_devall.notes",  # fuzz: damaged files
    "devall_stores": "axil_devall.stores",  # conformance: what is installed, replaced
    "devall_tooling": "axil_devall.tooling",  # conformance, integration: the same
    "sqlite_journal": "axil_sqlite.journal",  # faults: points at which a process dies
    "sqlite_store": "axil_sqlite.store",  # faults: the same
    "sqlite_writer": "axil_sqlite.writer",  # faults: its clock, and the lives of writers
    "cli_main": "axil_cli.main",  # fuzz: faults are planted in it
    "rows": "axil_journals.rows",  # fuzz: the same
    "recording": "axil_agent.replay",  # fuzz: the same
    "access": "axil_serve.access",  # fuzz: the same
    "grants": "axil.settings.grants",  # fuzz: the same
    "draft_record": "axil_cli.draft.record",  # fuzz: damaged files
    "memory_lines": "axil_context.memory.lines",  # fuzz: the same
    "memory_skills": "axil_context.memory.skills",  # fuzz: the same
    "retrieval_table": "axil_context.retrieval.table",  # fuzz: the same
    "mcp_guard": "axil_mcp.guard",  # hostile: what leaves a server
    "mcp_leaving": "axil_mcp.leaving",  # hostile: the same
    "mcp_oauth": "axil_mcp.oauth",  # fuzz: the same
    "mcp_waiting": "axil_mcp.waiting",  # fuzz: the same
    "advisories": "axil_plugins.advisories",  # fuzz: the same
    "serve_command": "axil_serve.command",  # hostile: the editor of a served folder
    "served_files": "axil_serve.files",  # fuzz: the same
    "page": "axil_workspace.page",  # fuzz: damaged pages
    "cache_store": "axil_wrappers.store",  # fuzz: damaged files
}


def internal(name: str) -> Any:
    """Return the module, or the part of one, that is called ``name`` here."""
    module, _, attribute = PLACES[name].partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found
