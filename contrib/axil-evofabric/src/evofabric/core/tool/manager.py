"""``ToolManager``: functions as tools."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, cast

from pydantic import Field, PrivateAttr

from evofabric.core.graph import StreamCtx, stream_writer_env
from evofabric.core.tool.base import BaseTool, ToolManagerBase
from evofabric.core.typing import ToolCall, ToolCallResult, ToolInnerState


class ToolManager(ToolManagerBase):
    """Functions, their descriptions for a model, and their calls."""

    tools: list[Any] = Field(default_factory=list[Any])
    """Functions, tools, or pairs of a function and its inner state."""
    timeout: float | None = None
    """Seconds for each call; a thread is not stopped, its result is not waited for."""

    _tool_map: dict[str, BaseTool] = PrivateAttr(default_factory=dict[str, BaseTool])

    def model_post_init(self, context: Any, /) -> None:
        del context
        self.add_callable_tools(self.tools)

    def add_callable_tools(self, tools: Sequence[Any]) -> None:
        """Add functions; one of a name that is there replaces it. Raises: TypeError: it is none."""
        for given in tools:
            function, inner = (
                cast("tuple[Any, Any]", given)
                if isinstance(given, (tuple, list))
                else (given, None)
            )
            if not callable(function):
                raise TypeError(f"found {type(function).__name__}, expected a function as a tool.")
            tool = BaseTool.from_callable(function, inner_state=inner)
            self._tool_map[str(tool.name)] = tool

    def add_python_file_tools(
        self,
        file_paths: Sequence[str],
        include_pattern_list: Sequence[Sequence[str]] | None = None,
        exclude_pattern_list: Sequence[Sequence[str]] | None = None,
    ) -> None:
        """Add the functions that files of Python define, which runs the files.

        Args:
            include_pattern_list: for each file, patterns of the names to take; None: all.
            exclude_pattern_list: for each file, patterns of the names to leave out.
        """
        for number, path in enumerate(file_paths):
            takes = include_pattern_list[number] if include_pattern_list else None
            leaves = exclude_pattern_list[number] if exclude_pattern_list else None
            self.add_callable_tools(
                [
                    function
                    for name, function in _functions_of(path).items()
                    if any(fnmatch(name, each) for each in takes or ["*"])
                    and not any(fnmatch(name, each) for each in leaves or [])
                ]
            )

    def delete_tools(self, tool_names: Sequence[str]) -> None:
        """Take tools out. Raises: KeyError: one is not there."""
        for name in tool_names:
            self._tool_map.pop(str(self._found(name).name))

    def update_tools(self, tools: Sequence[BaseTool]) -> None:
        """Replace tools by others of their names. Raises: KeyError: one is not there."""
        for tool in tools:
            self._found(str(tool.name))
            self._tool_map[str(tool.name)] = tool

    def find_tools(self, tool_names: Sequence[str]) -> list[dict[str, Any]]:
        """Give tools for a model. Raises: KeyError: one is not there."""
        return [self._found(name).get_tool_schema() for name in tool_names]

    def _found(self, name: str) -> BaseTool:
        if name not in self._tool_map:
            raise KeyError(f"Tool not found in tool manager {name}")
        return self._tool_map[name]

    def _is_active(self, name: str) -> bool:
        return self.tool_controller is None or self.tool_controller.check_tool_status(name)

    async def list_tools(self, **kwargs: Any) -> list[dict[str, Any]]:
        """Give the active tools for a model, as OpenAI's API has it."""
        del kwargs
        return [
            tool.get_tool_schema() for name, tool in self._tool_map.items() if self._is_active(name)
        ]

    async def call_tools(self, tasks: Sequence[ToolCall]) -> list[ToolCallResult]:
        """Call tools side by side: a result for each, in order; a failure is a result, too."""
        return list(await asyncio.gather(*(self._called(task) for task in tasks)))

    async def _called(self, task: ToolCall) -> ToolCallResult:
        name = task.function.name
        here = StreamCtx(tool_name=name, tool_call_id=task.id)
        try:
            if name not in self._tool_map:
                raise ValueError(f"Tool not found: {name}")  # is a result
            if not self._is_active(name):
                raise ValueError(  # is a result
                    f"Cannot call {name} because this tool is deactivate now."
                )
            tool = self._tool_map[name]
            given = json.loads(task.function.arguments or "{}")
            with stream_writer_env(here):
                content = await asyncio.wait_for(_beside(tool, given), self.timeout)
        except Exception as error:  # noqa: BLE001  # a tool is anybody's code: the model is told
            return ToolCallResult(
                tool_call_id=task.id,
                success=False,
                content=str(error) or type(error).__name__,
                traceback=traceback.format_exc(),
            )
        return ToolCallResult(tool_call_id=task.id, success=True, content=content)

    async def dump_state(self, tool_name: str | None = None) -> dict[str, Any]:
        """Give what tools keep, by their names; those that keep nothing are left out."""
        chosen = self._tool_map if tool_name is None else {tool_name: self._found(tool_name)}
        return {
            name: tool.inner_state.model_dump()
            for name, tool in chosen.items()
            if tool.inner_state is not None
        }

    async def save_state(self, save_path: str) -> None:
        """Write what tools keep to a file."""
        text = json.dumps(await self.dump_state(), ensure_ascii=False, indent=4)
        await asyncio.to_thread(Path(save_path).write_text, text, encoding="utf-8")

    async def load_state(self, load_path: str) -> None:
        """Read what tools keep from a file."""
        text = await asyncio.to_thread(Path(load_path).read_text, encoding="utf-8")
        for name, kept in json.loads(text).items():
            await self._found(name).load_state(ToolInnerState(**kept))


async def _beside(tool: BaseTool, given: dict[str, Any]) -> Any:
    """Call a tool: a plain function in a thread, unless it shares a state with other calls."""
    if inspect.iscoroutinefunction(tool.func) or tool.inner_state is not None:
        return await tool(**given)
    return await asyncio.to_thread(lambda: asyncio.run(tool(**given)))


def _functions_of(path: str) -> dict[str, Callable[..., Any]]:
    name = f"evofabric_tools_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no file of Python. Give the path of a .py file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return {
        key: value
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == name and not key.startswith("_")
    }
