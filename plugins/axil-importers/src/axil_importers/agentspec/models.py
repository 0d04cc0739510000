"""Models, tools and properties of Agent Spec as settings of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from axil_importers.agentspec.parts import Spec
from axil_importers.draft import Step
from axil_importers.models import USUAL_MODEL, model_of, settings_of, tool_of

Data = Mapping[str, Any]
_TYPES: Final = frozenset({"string", "number", "integer", "boolean"})
_SERVED: Final = frozenset({"OpenAiCompatibleConfig", "VllmConfig", "VLLMConfig", "OllamaConfig"})


def asking(spec: Spec, given: Any, step: Step) -> dict[str, Any]:
    """Return the model, and the settings of its calls."""
    config: Data = spec.at(given) if given else {}
    kind, named = str(config.get("component_type") or ""), str(config.get("model_id") or "")
    if kind in _SERVED:
        model = {"type": "openai", "name": named or USUAL_MODEL}
        url = str(config.get("url") or "").rstrip("/")
        if url.startswith(("http://", "https://")) and " " not in url:
            model["base_url"] = url if url.endswith("/v1") else f"{url}/v1"
        else:
            step.approximate(f'the address of its model, "{url}", is none', "Set base_url.")
    else:
        model = model_of(kind.removesuffix("Config") if named else "", named, step)
    made: dict[str, Any] = {"model": model}
    parameters = config.get("default_generation_parameters") or config.get("generation_parameters")
    if isinstance(parameters, Mapping) and (known := settings_of(cast("Data", parameters), step)):
        made["model_settings"] = known
    return made


def typed(given: Data) -> Any:
    """Return a property as the type of an output."""
    said = str(given.get("description") or "")
    kind = given.get("type")
    if kind == "array":
        return {"type": "array", "description": said, "items": _item(given.get("items"))}
    if kind == "object" and given.get("properties"):
        inner = {k: typed(cast("Data", v)) for k, v in given["properties"].items()}
        return {"type": "object", "description": said, "properties": inner}
    if kind == "string" or kind not in _TYPES:
        one = {"enum": given["enum"]} if given.get("enum") else {}
        return {"type": "string", "description": said or "The answer.", **one}
    return {"type": kind, "description": said}


def _item(given: Any) -> Any:
    made = typed(cast("Data", given)) if isinstance(given, Mapping) else {"type": "string"}
    return {key: each for key, each in made.items() if each != ""}


def tools_of(spec: Spec, agent: Data, place: str) -> list[Any]:
    """Return the tools that are known here; of the others say that they are missing."""
    found: list[Any] = []
    for at, each in enumerate(cast("list[Any]", agent.get("tools") or [])):
        tool = spec.at(each)
        kind, named = str(tool["component_type"]), str(tool.get("name") or "")
        step = spec.draft.step(f'{place}tools[{at}] "{named}"', kind)
        known = tool_of(named)
        if kind == "MCPTool":
            _mcp(spec, tool, step, found, [named])
        elif known is not None:
            found.append(known[0])
            step.became = f"the tool {known[0]}"
            step.approximate(f"{named} is {known[0]} here", "Look at what it gives.")
        elif kind == "RemoteTool":
            step.leave(
                f"the agent lacks the tool {named}",
                "Describe its address as an OpenAPI document, for the tool openapi.",
            )
        else:
            step.leave(
                f"the agent lacks the tool {named}, whose program is not in the file",
                "Write it as a function, and add it to the tools.",
            )
        if tool.get("requires_confirmation"):
            step.approximate("it is not asked for", "Name it in approve of the node.")
    for at, each in enumerate(cast("list[Any]", agent.get("toolboxes") or [])):
        box = spec.at(each)
        step = spec.draft.step(f"{place}toolboxes[{at}]", str(box["component_type"]))
        names = [_named(spec, e) for e in cast("list[Any]", box.get("tool_filter") or [])]
        _mcp(spec, box, step, found, names)
    return found


def _named(spec: Spec, given: Any) -> str:
    return given if isinstance(given, str) else str(spec.at(given).get("name") or "")


def _mcp(spec: Spec, given: Data, step: Step, found: list[Any], names: list[str]) -> None:
    way = spec.at(given.get("client_transport") or {})
    url = str(way.get("url") or "")
    if not url.startswith(("http://", "https://")):
        step.leave("the MCP server is started by a program", "Add the tool mcp with its command.")
        return
    server = {"type": "mcp", "url": url}
    for each in found:
        if isinstance(each, dict) and cast("Data", each).get("url") == url:
            if names and "allow" in each:
                each["allow"] = [*each["allow"], *names]
            break
    else:
        found.append({**server, "allow": names} if names else server)
    step.became = "the tool mcp"
    if way.get("headers") or way.get("sensitive_headers") or way.get("auth"):
        step.approximate(
            "its headers and its login are not taken", "Write token: {env: NAME} to the tool mcp."
        )
