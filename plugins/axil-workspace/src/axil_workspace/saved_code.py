"""``code_save_and_run``: a wrapper that saves the program in a message, runs it, and hands the node
the program with its result.

In files of DevAll it is a processor of an edge. Processors cannot wait, so here it is a wrapper of
the node that the edge leads to, for what comes on that edge.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from pydantic import BaseModel, Field

from axil import Context, Out, Token
from axil.plugin import Body, Mode, NodeInfo, Task, as_messages, gather_messages, text_of
from axil_process import Wanted
from axil_workspace.code import permitted
from axil_workspace.errors import WorkspaceError
from axil_workspace.process import Bounds, run_bounded
from axil_workspace.workspace import Workspace

_FILE: Final = re.compile(
    r"^[ \t]*+(?P<name>[^\s`](?:[^\n`]*[^\s`])?)[ \t]*+\n```(?:python)?\n(?P<code>.*?)\n```",
    re.M | re.S,
)
_RECORD: Final = ".saved_code.json"
"""The file with the list of saved files, so that the next program finds none of them."""
_START: Final = (
    "import runpy, sys; sys.path.insert(0, ''); runpy.run_path('main.py', run_name='__main__')"
)
_FINE: Final = "The software run successfully without errors."


class SaveAndRun:
    """The wrapper ``code_save_and_run``: files in what comes, each a line with its name and a block
    of code, are saved in the run's workspace; then ``main.py`` is run.
    """

    class Config(BaseModel, extra="forbid", frozen=True):
        """The messages, and the time limit of a program."""

        edges: tuple[str, ...] | None = Field(
            default=None,
            description="The nodes whose messages contain programs; without it all messages are "
            "searched.",
        )
        timeout_seconds: int | float = Field(
            default=3,
            gt=0,
            allow_inf_nan=False,
            description="How long a program runs; a program that is still running then has "
            "succeeded, unless it reported errors.",
        )
        sandbox: Wanted = Field(
            default="auto",
            description="auto: in a sandbox where one works; required: an error where none does; "
            "off: none.",
        )

    wants = ("code",)

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        """Return the node's body behind it."""
        return _Running(body, node, self.config)


class _Running:
    """The wrapped body: awaited, whatever is inside."""

    mode: Mode = "async"
    wants_ctx = True

    def __init__(self, body: Body, node: NodeInfo, config: SaveAndRun.Config) -> None:
        self._body, self._config = body, config
        self._single = node.single() if body.mode == "scope" else None

    async def __call__(self, task: Task, ctx: Context, /) -> Out:
        tokens: list[Token] = []
        for token in task.tokens:
            came = [await self._message(each, ctx) for each in as_messages(token.payload)]
            tokens.append(Token(token.edge, came, token.state, token.ordinal))
        task = task.with_tokens(tuple(tokens))
        if self._single is None:
            return await ctx.execute(self._body, task)
        returned = await ctx.run(
            self._single, gather_messages(task.tokens), name="#inside", state=task.state
        )
        nothing = returned.output is None
        return Out(returned.output, returned.changes, frozenset() if nothing else None)

    async def _message(self, given: Mapping[str, Any], ctx: Context) -> Mapping[str, Any]:
        edges = self._config.edges
        if edges is not None and given.get("source") not in edges:
            return given
        files = files_in(text_of(given))
        if not files:
            return given
        permitted(ctx, "code", "run programs")
        stated = await ctx.step(
            "code_save_and_run",
            lambda: self._result(files, Workspace.of(ctx)),
            request={"files": [list(each) for each in files]},
            effects="external",
        )
        blocks = [f"{name}\n```python\n{code}\n```" for name, code in files]
        return {**given, "content": "\n".join(blocks) + f"\n\n{stated}"}

    async def _result(self, files: Sequence[tuple[str, str]], place: Workspace) -> str:
        """Return the result of the program, in words."""
        try:
            _save(files, place)
        except WorkspaceError as error:
            return f"Error: {error}"
        bounds = replace(Bounds(), timeout_seconds=self._config.timeout_seconds)
        command = [sys.executable, "-I", "-B", "-X", "utf8", "-c", _START]
        ended = await run_bounded(command, place.root, bounds, sandbox=self._config.sandbox)
        if ended.exit_code == 0 or not ended.stderr.strip():
            return "\n\n".join(part for part in (ended.stdout.strip(), _FINE) if part)
        return ended.stderr.replace(f"{place.root}/", "")


def files_in(text: str) -> list[tuple[str, str]]:
    """Return names and contents of the files in a text; the last of one name counts.

    >>> files_in("main.py\\n```python\\nprint(1)\\n```")
    [('main.py', 'print(1)')]
    """
    return list({each["name"]: each["code"] for each in _FILE.finditer(text)}.items())


def _save(files: Sequence[tuple[str, str]], place: Workspace) -> None:
    """Put the files there, without those of the program before. Raises: WorkspaceError."""
    for name in _saved(place):
        if isinstance(name, str):
            place.delete(name)
    names = [name for name, _ in files]
    place.write(_RECORD, json.dumps(names).encode())
    for name, code in files:
        place.write(name, f"{code}\n".encode())


def _saved(place: Workspace) -> list[Any]:
    """Return the files of the program before; none, if that is not known."""
    if place.stat(_RECORD) is None:
        return []
    try:
        found: Any = json.loads(place.read(_RECORD))
    except (ValueError, RecursionError):
        return []
    return cast("list[Any]", found) if isinstance(found, list) else []
