"""Needs and ends of DevAll's workflow files: found out by reading and by running them, and written
down as a table.

    python -m tests.conformance.devall_corpus       writes the table into docs/reference/devall.md

Everything that files need from outside has a stand-in here: the model answers from a script, people
agree, functions and servers do nothing. The files are not part of the project; without them there
is nothing to do.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from axil import AxilError, GraphSpec, Result, SpecError, Workflow, run_sync
from axil.plugin import CompileOptions, Registry
from axil_agent import Scripted
from axil_context import LexicalEmbedder
from axil_control import Replies
from axil_files import LoadOptions, include_spec, inline_spec, load_spec
from axil_models import Tool
from axil_testing import JumpingClock

from ..internals import internal

stores, tooling = internal("devall_stores"), internal("devall_tooling")
functions_of_devall = internal("devall_functions")

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "chatdev_yaml"
FILES = sorted(CORPUS.rglob("*.yaml")) if CORPUS.is_dir() else []
PAGE = ROOT / "docs/reference/devall.md"
ENVIRONMENT = {
    "BASE_URL": "http://localhost",
    **dict.fromkeys(("API_KEY", "MODEL_NAME", "MEM0_API_KEY"), "set by the test"),
}

SCRIPTS: Mapping[str, Mapping[str, Any]] = {
    "data_visualization_enhanced_v2.yaml": {
        "default": "```python\nprint('ACCEPT VISUALIZE CLEAN')\n```\nACCEPT"
    },
    "demo_loop_timer.yaml": {"default": {"text": "OK", "delay": 2.5}},
    "reflexion_product.yaml": {"default": "Verdict: STOP"},
    "reflexion_loop.yaml": {"default": "Verdict: STOP"},
    "teach_video.yaml": {"default": "```python\nprint('fine')\n```"},
}
"""Replies with which a file's loops come to an end; all others are answered "OK"."""
AGREED = "ACCEPT, APPROVE"
"""Texts that people say."""
SKILL = "---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n"


class Embedding:
    """Stands for an embedding service: the embedder that needs none, under a service's name."""

    def __init__(self, name: str = "", base_url: str = "", api_key: str = "") -> None:
        self._lexical = LexicalEmbedder()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return await self._lexical.embed(texts)


class Server:
    """Stands for an MCP server that offers nothing."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    async def tools(self) -> list[Tool]:
        return []


class Service:
    """Stands for Mem0's client, and remembers nothing."""

    def __init__(self, api_key: str, **settings: Any) -> None:
        self.settings = settings

    async def search(self, query: str, **how: Any) -> dict[str, Any]:
        return {"results": []}

    async def add(self, messages: list[dict[str, str]], **how: Any) -> dict[str, Any]:
        return {}


def stand_in(name: str) -> Tool:
    """Return a tool that is declared in files and never called by their scripts."""
    return Tool(
        name=name,
        description="",
        parameters={"type": "object", "properties": {}},
        call=lambda: "done",
    )


def outside(*functions: str) -> dict[tuple[str, str], Any]:
    """Stand-ins: a service that embeds, an MCP server, and functions."""
    return {
        ("embedders", "openai"): Embedding,
        ("tools", "mcp"): Server,
        **{("tools", name): stand_in(name) for name in (*functions_of_devall.TOOLS, *functions)},
    }


def registry(around: Mapping[tuple[str, str], Any]) -> Registry:
    """Return all that is installed, but for what ``around`` holds: that is taken instead."""
    installed = [
        each
        for distribution in metadata.distributions()
        for each in distribution.entry_points
        if (each.group.removeprefix("axil."), each.name) not in around
    ]
    made = Registry(entry_points=installed)
    for (kind, name), component in around.items():
        made.register(kind, name, component)
    return made


@contextmanager
def nothing_missing() -> Iterator[None]:
    """Programs and packages are there while this lasts."""
    which, find = tooling.shutil.which, stores.importlib.util.find_spec
    service = ModuleType("mem0")
    service.AsyncMemoryClient = Service  # type: ignore[attr-defined]  # a stand-in
    before = sys.modules.get("mem0")
    sys.modules["mem0"] = service
    stand_in: Any = lambda name, *more: which(name, *more) or f"/{name}"  # noqa: E731
    tooling.shutil.which = stand_in
    stores.importlib.util.find_spec = lambda name, *more: (
        name if name == "mem0" else find(name, *more)
    )  # type: ignore[assignment]
    try:
        yield
    finally:
        tooling.shutil.which, stores.importlib.util.find_spec = which, find
        del sys.modules["mem0"]
        if before is not None:
            sys.modules["mem0"] = before


# --------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Needs:
    """The names in a file that it does not define."""

    variables: set[str] = field(default_factory=set)
    providers: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        parts = [
            ", ".join(f"`${{{name}}}`" for name in sorted(self.variables)),
            f"models: {', '.join(sorted(self.providers))}" if self.providers else "",
            f"functions: {', '.join(f'`{name}`' for name in sorted(self.functions))}"
            if self.functions
            else "",
            *sorted(self.others),
        ]
        return "; ".join(part for part in parts if part) or "nothing"


def needs_of(spec: GraphSpec, using: Registry) -> Needs:
    """Return what a graph needs, and the graphs inside it."""
    needs = Needs(variables=set(spec.extras.get("environment", ())))
    for store in spec.extras.get("memory") or ():
        config = store.get("config") or {}
        if store["type"] == "mem0":
            needs.others.add("the package `mem0ai` and its service")
        elif (config.get("embedding") or {}).get("provider"):
            needs.others.add(f"embeddings: {config['embedding']['provider']}")
        needs.others |= {
            f"files below `{source['path']}`" for source in config.get("file_sources") or ()
        }
    for node in spec.nodes:
        kind, config = (node.use.type, node.use.config) if node.use else ("", {})
        if kind == "devall.agent":
            _agent(config, needs)
        elif kind == "human":
            needs.others.add("a person")
        elif kind == "python":
            needs.others.add("`--allow-code`")
        elif kind == "subgraph":
            reading = LoadOptions(environment=ENVIRONMENT, registry=using)
            file = config["config"].get("path") if config["type"] == "file" else None
            inner = (
                include_spec(file, spec.extras, registry=using, reading=reading)
                if file
                else inline_spec(config["config"], spec.extras, reading=reading)
            )
            found = needs_of(inner, using)
            needs.variables |= found.variables
            needs.providers |= found.providers
            needs.functions |= found.functions
            needs.others |= found.others | ({f"`{file}`"} if file else set())
    return needs


def _agent(config: Mapping[str, Any], needs: Needs) -> None:
    if config.get("provider"):
        needs.providers.add(str(config["provider"]))
    for each in config.get("tooling") or ():
        inner = each["config"]
        if each["type"] == "function":
            needs.functions |= set(
                functions_of_devall.expanded(tool["name"] for tool in inner["tools"])
            )
        elif each["type"] == "mcp_local":
            needs.others.add(
                f"the MCP server `{' '.join([inner['command'], *inner.get('args', [])])}`"
            )
        else:
            needs.others.add(f"the MCP server at `{inner['server']}`")
    if (config.get("skills") or {}).get("enabled"):
        names = ", ".join(f"`{each['name']}`" for each in config["skills"].get("allow") or ())
        needs.others.add(f"the skills {names}" if names else "skills")


# --------------------------------------------------------------------------------------------------


def run(file: Path, using: Registry) -> tuple[Result, Scripted]:
    """Return the file, run to its end with stand-ins."""
    clock = JumpingClock()
    script = Scripted(dict(SCRIPTS.get(file.name, {})), sleep=clock.sleep)
    with tempfile.TemporaryDirectory() as temporary, nothing_missing(), script.everywhere():
        folder = furnished(Path(temporary) / "files")
        spec = load_spec(
            folder / file.relative_to(CORPUS),
            registry=using,
            environment=ENVIRONMENT,
            allow=("env", "read", "write"),
        )
        flow = Workflow(spec, CompileOptions(registry=using, environment=ENVIRONMENT))
        ways = {
            "channel": Replies([AGREED] * 50),
            "clock": clock,
            "workspace": Path(temporary) / "work",
            "allow": frozenset({"code"}),
        }
        return run_sync(flow.run("TASK", **ways)), script


def furnished(folder: Path) -> Path:
    """Return the files in a folder of their own, and beside them what they look for there."""
    shutil.copytree(CORPUS, folder)
    folder.chmod(0o755)
    for each in folder.rglob("*"):
        each.chmod(0o755 if each.is_dir() else 0o644)
    texts = folder / "yaml_instance/tests/file_memory_test"
    texts.mkdir(parents=True)
    (texts / "notes.md").write_text("The TASK is to write notes.", "utf-8")
    for name in ("python-scratchpad", "rest-api-caller"):
        skill = folder / "yaml_instance/.agents/skills" / name
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(SKILL.format(name=name), "utf-8")
    return folder


def ended(file: Path, using: Registry) -> str:
    """Return how the file ended, in words."""
    try:
        result, script = run(file, using)
    except AxilError as error:
        return reported(error)
    calls = f", {len(script.requests)} model calls" if script.requests else ""
    return f"{result.status}: {result.usage.firings} firings{calls}"


def reported(error: AxilError) -> str:
    """Return an error in a cell: its ids, and where."""
    problems = error.problems if isinstance(error, SpecError) else [getattr(error, "problem", None)]
    found = Counter(
        f"{p.id} `{p.where.rpartition(' ')[2].rstrip(':')}`" for p in problems if p is not None
    )
    first, *rest = sorted(found)
    more = f" and {len(rest)} more" if rest else ""
    return f"refused: {first}{more}"


def shown(file: Path) -> str:
    """Return what the page calls a file: those that were changed so that they ask no service are
    marked.
    """
    home, *rest = file.relative_to(CORPUS).parts
    return f"`{'/'.join(rest)}`{'' if home == 'yaml_instance' else ', changed'}"


def row(file: Path) -> str:
    """Return the table's line for a file."""
    name = shown(file)
    using = registry(outside("get_weather", "get_city_num"))
    try:
        needs = str(needs_of(load_spec(file, registry=using, environment=ENVIRONMENT), using))
    except AxilError:
        needs = "to be mended"
    return f"| {name} | {needs} | {ended(file, using)} |"


def table(files: Sequence[Path]) -> str:
    """Return the table of files."""
    return "\n".join(["| file | needs | with stand-ins |", "|---|---|---|", *map(row, files)])


def functions() -> str:
    """Return the table of functions."""
    return "\n".join(
        f"| `{name}` | `{tool}` |" for name, tool in sorted(functions_of_devall.TOOLS.items())
    )


def between(page: str, name: str) -> str:
    """Return what stands between two markers of the page."""
    return (
        page.partition(f"<!-- {name}: begin -->")[2].partition(f"<!-- {name}: end -->")[0].strip()
    )


def written(page: str, **parts: str) -> str:
    """Return the page with new parts between their markers."""
    for name, text in parts.items():
        before, begin, rest = page.partition(f"<!-- {name}: begin -->")
        _, end, after = rest.partition(f"<!-- {name}: end -->")
        page = f"{before}{begin}\n{text}\n{end}{after}"
    return page


if __name__ == "__main__":
    if not FILES:
        sys.exit("the files are not beside this checkout")
    PAGE.write_text(
        written(PAGE.read_text("utf-8"), functions=functions(), files=f"\n{table(FILES)}\n"),
        "utf-8",
    )
