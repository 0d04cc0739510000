"""Functions that DevAll files name, as components of ``axil.tools``.

A tool registered under the function's own name is taken, else the one in ``TOOLS``. A model sees
the function's own name, because prompts use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from axil import Problem, SpecError
from axil.plugin import (
    Registry,
    UnknownComponent,
    component_index,
    did_you_mean,
    format_names,
    install_advice,
    make_component,
    signature_of,
)
from axil_models import Tool, is_toolset, tool_of

TOOLS: Final[Mapping[str, str]] = {
    "apply_text_edits": "edit_lines",
    "call_user": "ask_user",
    "concat_videos": "concat_videos",
    "copy_path": "copy_path",
    "create_folder": "create_folder",
    "delete_path": "delete_path",
    "describe_available_files": "list_files",
    "execute_code": "run_code",
    "get_current_time": "current_time",
    "init_python_env": "init_python_env",
    "install_python_packages": "install_python_packages",
    "list_directory": "list_folder",
    "load_file": "load_file",
    "move_path": "move_path",
    "read_file_segment": "read_lines",
    "read_text_file_snippet": "read_text",
    "read_webpage_content": "read_web_page",
    "get_city_num": "get_city_num",
    "get_weather": "get_weather",
    "rename_path": "move_path",
    "render_manim": "render_manim",
    "report_continue_chapter": "extend_chapter",
    "report_create_chapter": "add_chapter",
    "report_del_chapter": "delete_chapter",
    "report_export_pdf": "export_report",
    "report_outline": "outline_report",
    "report_read": "read_report",
    "report_read_chapter": "read_chapter",
    "report_reorder_chapters": "order_chapters",
    "report_rewrite_chapter": "rewrite_chapter",
    "run_python_script": "run_code",
    "save_file": "write_file",
    "search_high_light_key": "mark_source",
    "search_in_files": "search_files",
    "search_load_all": "list_sources",
    "search_load_by_url": "read_source",
    "search_save_result": "save_source",
    "uv_run": "uv_run",
    "wait": "sleep",
    "web_search": "web_search",
}
"""DevAll's function → the tool that does the same."""

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "code_executor": ("execute_code",),
    "deep_research": (
        "search_save_result",
        "search_load_all",
        "search_load_by_url",
        "search_high_light_key",
        "report_read",
        "report_read_chapter",
        "report_outline",
        "report_create_chapter",
        "report_rewrite_chapter",
        "report_continue_chapter",
        "report_reorder_chapters",
        "report_del_chapter",
        "report_export_pdf",
    ),
    "file": (
        "describe_available_files",
        "list_directory",
        "create_folder",
        "delete_path",
        "load_file",
        "save_file",
        "read_text_file_snippet",
        "read_file_segment",
        "apply_text_edits",
        "rename_path",
        "copy_path",
        "move_path",
        "search_in_files",
    ),
    "user": ("call_user",),
    "utils": ("wait", "get_current_time"),
    "uv_related": ("install_python_packages", "init_python_env", "uv_run"),
    "video": ("render_manim", "concat_videos"),
    "weather": ("get_weather", "get_city_num"),
    "web": ("web_search", "read_webpage_content"),
}
"""DevAll's modules → their functions: what ``MODULE:All`` stands for."""


def expanded(names: Iterable[str], where: str = "") -> list[str]:
    """Return the functions, those of whole modules included, each once.

    Raises: SpecError (AX851): an unknown module.
    """
    found: dict[str, None] = {}
    for name in names:
        module, colon, which = name.partition(":")
        if not colon:
            found[name] = None
        elif which != "All" or module not in MODULES:
            hint = (
                did_you_mean(module, MODULES)
                or f"Known: {format_names([f'{known}:All' for known in MODULES], 20)}."
            )
            raise SpecError(Problem("AX851", where, f'"{name}" is not a group of functions.', hint))
        else:
            found.update(dict.fromkeys(MODULES[module]))
    return list(found)


def function_tools(
    names: Iterable[str], registry: Registry, where: str = ""
) -> list[tuple[str, Any]]:
    """Return tools, or toolsets that hold one, for functions by their names.

    Raises: SpecError (AX850): all that nothing provides; and as making them does.
    """
    tools: list[tuple[str, Any]] = []
    missing: dict[str, list[str]] = {}
    for name in expanded(names, where):
        known = name if name in registry.names("tools") else TOOLS.get(name, name)
        try:
            component = registry.resolve("tools", known, where)
        except UnknownComponent:
            missing.setdefault(_advice(known, registry), []).append(name)
            continue
        made: Any = make_component(component, None, where)
        tools.append((name, made if is_toolset(made) else called(name, [tool_of(made)])[0]))
    if missing:
        data = {
            advice: f"nothing provides the function{'s' * (len(names) > 1)} "
            f"{format_names(names, 20)}."
            for advice, names in missing.items()
        }
        raise SpecError([Problem("AX850", where, text, advice) for advice, text in data.items()])
    return tools


def _advice(component: str, registry: Registry) -> str:
    provider = component_index().get(f"tools:{component}")
    if provider:
        return install_advice(provider)
    if nearest := did_you_mean(component, [*registry.names("tools"), *TOOLS]):
        return nearest
    return (
        "Write them in a .py file and pass its folder: --functions DIR --allow-code; or install a "
        "plugin that provides such a tool."
    )


def called(name: str, tools: Sequence[Tool]) -> list[Tool]:
    """Return a single tool under the function's name; several keep their own."""
    return [replace(tools[0], name=name)] if name and len(tools) == 1 else list(tools)


def prefixed(tools: Sequence[Tool], prefix: str | None, own: str = "") -> list[Tool]:
    """Return the tools, their names without the prefix ``own`` and behind ``prefix`` and ``_``."""
    begin = f"{prefix}_" if prefix else ""
    return [replace(tool, name=begin + tool.name.removeprefix(own)) for tool in tools]


async def tools_of(given: Any, ctx: Any) -> list[Tool]:
    """Return the tools of a set."""
    ask: Any = given.tools
    several = await (ask(ctx=ctx) if "ctx" in signature_of(ask).parameters else ask())
    return [tool_of(each) for each in cast("Sequence[Any]", several)]
