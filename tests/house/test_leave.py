"""No setting in a file widens what the file may do: the places that could are few, and reviewed.

A new place fails a test here. Say who controls what it is given and what bounds that, then add it
with that reason; a test with a hostile file belongs beside the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from tests.house.checkout import all_sources, shown, tree_of

from axil.plugin import default_registry

GRANTS = {"Grants", "Grants.of", "granted"}
LOADS = {"load", "axil_files.load", "load_spec", "include_spec", "inline_spec"}
IMPORTS = {"import_module", "__import__", "exec", "eval", "exec_module", "run_path", "run_module"}
STARTS = {
    "Popen", "create_subprocess_exec", "create_subprocess_shell", "subprocess.run",
    "subprocess.call", "subprocess.check_call", "subprocess.check_output", "os.system", "os.fork",
    "execv", "execve", "execvp", "posix_spawn", "posix_spawnp", "load_extension",
}  # fmt: skip
CALLS = GRANTS | LOADS | IMPORTS | STARTS

_OWN = "modules of its own distribution, or of a library, by a constant name"
_CAUGHT = "grants that were in force when the component was made"
_USER = "words that the user typed, or gave in Python"
_KEPT = "words typed now, and those that this user gave for the same content: leave.py"
_COMMAND = "a command that the user typed, about distributions that are installed"

REVIEWED: Mapping[str, tuple[str, str]] = {
    # in core
    "axil/_lazy.py": ("import_module load", "modules of the package that asks, by its own table"),
    "axil/builder/workflow.py": ("granted granted", "the grants of the outermost file"),
    "axil/compiler/planner.py": (
        "granted granted granted granted import_module",
        "the grants of each file; none for hooks; an import path after may_import, AX148",
    ),
    "axil/registry/registry.py": ("import_module", "the targets of entry points, under the policy"),
    "axil/runtime/unconfined.py": (
        "granted granted granted",
        "none: the journal, the channel and the observers are the caller's",
    ),
    "axil/runtime/result.py": ("Grants.of", _USER),
    "axil/runtime/run.py": ("granted", "the grants of the outermost file"),
    "axil/settings/confinement.py": (
        "granted granted",
        "none while grants are looked up; those of the code that starts a thread",
    ),
    # grants
    "axil_agent/models.py": ("granted", _CAUGHT),
    "axil_cli/arguments.py": ("Grants.of", _USER),
    "axil_cli/command.py": ("granted", _KEPT),
    "axil_cli/run.py": ("granted", _KEPT),
    "axil_cli/runs.py": ("granted", _KEPT),
    "axil/settings/grants.py": ("Grants", _USER),
    "axil_cli/draft/check.py": ("Grants.of", "words of a file, each among the file's own"),
    "axil_evals/datasets.py": ("Grants.of", _USER),
    "axil_evals/evaluation.py": ("granted", "what the dataset's reader granted it"),
    "axil_files/loading.py": (
        "Grants Grants.of granted granted include_spec inline_spec",
        "words that the user gave; an included file has its includer's, or none",
    ),
    "axil_files/needs.py": ("load_spec", "a file that the user named; nothing of it is made"),
    "axil_files/reader.py": ("Grants", "none, where nothing was given"),
    "axil_files/workflows.py": ("Grants.of load_spec", _USER),
    "axil_mcp/command.py": ("granted granted", "the grants of the file whose servers are asked"),
    "axil_mcp/files.py": ("Grants", _USER),
    "axil_process/jobs.py": (
        "Grants import_module",
        "the grants of the sender's file; a function's path only from Python code",
    ),
    "axil_agent/replay.py": ("granted", "none: a recording is its user's"),
    "axil_models/files.py": ("granted granted", "none: nothing leads out of a workspace"),
    "axil_models/providers.py": ("granted", _CAUGHT),
    "axil_workspace/folders.py": ("granted", "none: nothing leads out of a workspace"),
    "axil_workspace/process.py": ("granted", "none: the workspace itself is made"),
    "axil_workspace/workspace.py": ("granted", "none: the workspace itself is made"),
    # documents as workflows
    "axil_agent/scripted.py": ("load", "a loader on a script that Python code or a test names"),
    "axil_cli/record.py": ("load load_spec load_spec", "what a journal kept, with the words typed"),
    "axil_cli/sketch.py": ("load_spec", "the file that the user named; nothing of it is made"),
    "axil_cli/source.py": ("load", "the file that the user named, with the words typed"),
    "axil_control/subgraph.py": (
        "include_spec inline_spec",
        "files below the outermost one's folder, with its grants",
    ),
    "axil_cli/draft/command.py": ("load", "our own file, with what the user granted the model"),
    "axil_cli/draft/files.py": ("load", "a draft, with words of its caller; see check.py"),
    "axil_journals/engine/local.py": ("load", "the record of a run, no file"),
    "axil_journals/engine/loading.py": ("load", "the record of a run, no file"),
    "axil_evals/targets.py": ("load", "a path that Python code names, without grants"),
    "axil_plugins/builds/plan.py": (
        "load",
        "reads without leave, to learn which files a workflow reads; nothing of it runs",
    ),
    "axil_plugins/lock.py": (
        "Grants.of Grants.of Grants.of granted granted load",
        "the file that the user named, with the words typed",
    ),
    "axil_teams/members.py": ("inline_spec", "members in a file, with the file's grants"),
    "axil_evals/tuning/parameters.py": ("load", "a loader on the file that was named"),
    "masfactory/aml/compiling.py": ("import_module", "modules that the program names"),
    "masfactory/elsewhere.py": ("import_module", "modules of this distribution, from a table"),
    "masfactory/errors.py": ("import_module", "a package of this distribution"),
    "masfactory/compatibility/chatdev.py": (
        "axil_files.load",
        "a path of Python code, without grants",
    ),
    # imports
    "axil_chroma/sentences.py": ("import_module", _OWN),
    "axil_devall/mem0.py": ("import_module", _OWN),
    "axil_files/checkout.py": ("__import__ exec_module", "functions of a folder, with leave"),
    "axil_files/modules.py": ("exec_module", "functions of a folder, graphs in Python; with leave"),
    "axil_files/python.py": (
        "import_module",
        "a graph in Python that the user typed; that a journal names, with code",
    ),
    "axil_journals/pictures/live.py": ("import_module", _OWN),
    "evofabric/core/tool/manager.py": ("exec_module", "a path of Python code, without grants"),
    "axil_openai/whole.py": ("import_module", _OWN),
    "axil_ray/actor.py": ("import_module", _OWN),
    "axil_ray/cluster.py": ("import_module", _OWN),
    "axil_lancedb/store.py": ("import_module import_module", _OWN),
    "axil_sqlite_vec/store.py": ("import_module import_module load_extension", _OWN),
    "axil_wordllama/embedder.py": ("import_module", _OWN),
    # programs
    "axil_plugins/builds/verify.py": ("subprocess.run subprocess.run", _COMMAND),
    "axil_plugins/builds/wheels.py": ("subprocess.run", _COMMAND),
    "axil_plugins/doctor.py": ("subprocess.run", _COMMAND),
    "axil_plugins/proof.py": ("subprocess.run", _COMMAND),
    "axil_plugins/pylock.py": ("subprocess.run", _COMMAND),
    "axil_plugins/scaffold.py": ("subprocess.run", _COMMAND),
    "axil_process/sandboxes/bubblewrap.py": (
        "granted granted subprocess.run subprocess.run",
        "bwrap itself",
    ),
    "axil_process/sandboxes/containers.py": (
        "granted subprocess.run",
        "the container program itself, after program:NAME",
    ),
    "axil_process/sandboxes/inside.py": ("execvp os.fork", "what a program was asked to start"),
    "axil_process/programs/child.py": (
        "Popen create_subprocess_exec granted subprocess.run",
        "callers ask for code, mcp or program before; taskkill; its own watchdog",
    ),
    "axil_workspace/launcher.py": ("execvp os.fork posix_spawnp", "tools that asked for leave"),
}  # fmt: skip
"""By module: its calls, sorted; who controls what they are given, and what bounds that."""

GIVING = re.compile(r"allow|grant|permi|leave_to|capabilit|trust|unsafe|privilege")
FIELDS = {
    "context/skills.allow": "the names of skills that are shown, of those there are",
    "embedders/sentence_transformers.allow_downloads": "needs code, whatever it says",
    "guards/allow_list.allow": "words of texts that pass",
    "nodes/devall.agent.allow": "the names of skills that are shown, of those there are",
    "nodes/draft_check.allow": "grants of drafts: each is needed of the file's own grants",
    "tools/http_get.allow_networks": "each needs net:NETWORK of the file's own grants",
    "tools/openapi.allow": "the names of a service's operations that are offered",
    "tools/provider_tool.allow": "the names of a server's tools, which the provider calls",
    "tools/provider_tool.allowed_domains": "hosts that the provider searches, none that we ask",
    "tools/mcp.allow": "the names of a server's tools that are offered",
    "tools/read_web_page.allow_networks": "each needs net:NETWORK of the file's own grants",
    "tools/web.allow_networks": "each needs net:NETWORK of the file's own grants",
}
"""Settings of components that sound as if they gave leave, and what they give."""


def _module(file: str) -> str:
    return file.partition("/src/")[2]


def _of_doors(tree: ast.AST) -> set[str]:
    """Return the names under which a module has the functions that load workflow files."""
    names = {"load", "load_spec", "include_spec", "inline_spec"}
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("axil", "axil_"))
        for alias in node.names
        if alias.name in names
    }


def _calls(tree: ast.AST) -> Iterator[str]:
    loads = _of_doors(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            whole = ast.unparse(node.func)
            last = whole.rpartition(".")[2]
            if whole in CALLS:
                yield whole
            elif last in CALLS - LOADS and last not in ("exec", "eval"):
                yield last
            elif whole in loads:
                yield whole


@cache
def _found() -> dict[str, str]:
    calls: dict[str, str] = {}
    for file in all_sources():
        name = shown(file)
        if "plugins/axil-testing/" in name:  # the kit, which runs other code to try it
            continue
        here = sorted(_calls(tree_of(file)))
        if here:
            calls[_module(name)] = " ".join(here)
    return calls


def test_every_place_that_grants_loads_imports_or_starts_is_reviewed():
    assert _found() == {module: calls for module, (calls, _) in REVIEWED.items()}


@cache
def _fields() -> dict[str, str]:
    """Return the fields of all settings that sound like leave, with what is said of them."""
    registry = default_registry()
    found: dict[str, str] = {}
    for component in registry.candidates():
        if component.kind in ("commands", "options", "protocols", "hooks"):
            continue  # the user's, no file names them
        made: Any = registry.resolve(component.kind, component.name)
        model: Any = getattr(made, "Config", None)
        if model is not None and hasattr(model, "model_json_schema"):
            schema = model.model_json_schema()
            parts = [schema, *schema.get("$defs", {}).values()]
            for name in {name for part in parts for name in part.get("properties", ())}:
                if GIVING.search(name):
                    found[f"{component.kind}/{component.name}.{name}"] = str(made)
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_setting_of_a_component_gives_leave():
    assert set(_fields()) == set(FIELDS)
