"""The other forms of a served workflow: a prompt that asks for its tool, a resource that
describes it, and resources for the files that its runs leave.
"""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from axil.plugin import ComponentBlocked
from axil_mcp.served import Served

_WORKFLOWS: Final = "axil://workflows/"
_RUNS: Final = "axil://runs/"
_MOST_FILES: Final = 50
"""Files of a run that its result names."""
_LARGEST_FILE: Final = 8_000_000
"""Bytes of a file that are given to a client."""


def prompt_of(tool: Served) -> Any:
    """Return the prompt of a workflow, as clients list it."""
    from mcp_types import Prompt, PromptArgument

    required = tool.input_schema.get("required", ())
    properties: Mapping[str, Any] = tool.input_schema.get("properties", {})
    arguments = [
        PromptArgument(name=name, description=each.get("description"), required=name in required)
        for name, each in properties.items()
    ]
    return Prompt(name=tool.name, description=tool.description, arguments=arguments)


def prompted(tool: Served, arguments: Mapping[str, str]) -> Any:
    """Return the message of the prompt to a client's model."""
    from mcp_types import GetPromptResult, PromptMessage, TextContent

    given = json.dumps(dict(arguments), ensure_ascii=False)
    text = f"Call the tool {tool.name} with these arguments, and report what it gives: {given}"
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=tool.description, messages=[message])


def resource_of(tool: Served) -> Any:
    """Return the resource that describes a workflow, as clients list it."""
    from mcp_types import Resource

    return Resource(
        uri=f"{_WORKFLOWS}{tool.name}",
        name=tool.name,
        description=f"What {tool.name} does, takes and gives, and its graph.",
        mime_type="text/markdown",
    )


def template() -> Any:
    """Return the template of the files that runs leave."""
    from mcp_types import ResourceTemplate

    return ResourceTemplate(
        uri_template=f"{_RUNS}{{run_id}}/{{+path}}",
        name="files",
        description="A file in the workspace of a run; results name them.",
    )


def description_of(tool: Served) -> str:
    """Return a workflow in Markdown."""
    lines = [f"# {tool.name}", tool.description]
    for title, schema in (("Takes", tool.input_schema), ("Gives", tool.output_schema)):
        lines.append(f"## {title}\n\n```json\n{json.dumps(schema, indent=2)}\n```")
    with suppress(ComponentBlocked):  # a policy may leave out what draws
        lines.append(f"## Graph\n\n```mermaid\n{tool.workflow.draw('mermaid')}\n```")
    return "\n\n".join(lines) + "\n"


def links_of(run_id: str, folder: Path | None) -> Iterator[Any]:
    """Yield links to the files that a run left, the first ones by name."""
    from mcp_types import ResourceLink

    if folder is None:
        return
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )
    for name in names[:_MOST_FILES]:
        yield ResourceLink(
            type="resource_link",
            uri=f"{_RUNS}{run_id}/{quote(name)}",
            name=name,
            mime_type=mimetypes.guess_type(name)[0],
            size=(folder / name).stat().st_size,
        )


def contents_of(uri: str, tools: Mapping[str, Served], workspace: str | Path | None) -> Any:
    """Return the contents of a resource; None: there is none of this address.

    A file is given only from inside the folder of its run, and not through a link out of it.
    """
    from mcp_types import BlobResourceContents, TextResourceContents

    name = uri.removeprefix(_WORKFLOWS)
    if name != uri:
        if name not in tools:
            return None
        text = description_of(tools[name])
        return TextResourceContents(uri=uri, text=text, mime_type="text/markdown")
    run_id, _, path = uri.removeprefix(_RUNS).partition("/")
    if workspace is None or not uri.startswith(_RUNS) or not run_id.isalnum() or not path:
        return None
    folder = Path(workspace, run_id).resolve()
    file = (folder / unquote(path)).resolve()
    if not file.is_relative_to(folder) or not file.is_file():
        return None
    if file.stat().st_size > _LARGEST_FILE:
        return None
    data, kind = file.read_bytes(), mimetypes.guess_type(file.name)[0]
    try:
        return TextResourceContents(uri=uri, text=data.decode("utf-8"), mime_type=kind)
    except UnicodeDecodeError:
        blob = base64.b64encode(data).decode()
        return BlobResourceContents(uri=uri, blob=blob, mime_type=kind)
