"""The operations of an OpenAPI document, with what each asks for and how it is sent.

``operations_of`` gives those that are understood, and the reason for each one that is not.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from axil_remote.schemas import Schemas, Unclear, as_object, followed

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_PLACES: Final = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_STYLES: Final = {
    "path": {"simple"},
    "query": {"form", "deepObject", "spaceDelimited", "pipeDelimited"},
    "header": {"simple"},
    "cookie": {"form"},
}
_IGNORED: Final = frozenset({"accept", "content-type", "authorization"})
"""Headers that OpenAPI says are described elsewhere."""
_BINARY: Final = frozenset({"binary", "base64"})
_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")

Media = Literal["json", "form", "multipart", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One value of an operation beside its body."""

    argument: str
    """The name under which a model gives it."""
    name: str
    place: str
    style: str
    explode: bool
    is_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The body of a request: the argument ``body``."""

    media: Media
    content_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation as a tool."""

    name: str
    description: str
    method: str
    path: str
    parameters: tuple[Parameter, ...]
    body: Body | None
    schema: Mapping[str, Any]
    """The JSON Schema of its arguments."""
    security: tuple[tuple[str, ...], ...]
    """The alternatives, each the names of schemes that it needs together; empty: it needs none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """An operation that is not understood."""

    name: str
    place: str
    reason: str


def checked(document: Any) -> Mapping[str, Any]:
    """Return the document. Raises: Unclear: it is none of OpenAPI 3."""
    if not isinstance(document, Mapping):
        raise Unclear("it is no object")
    given = cast("Mapping[str, Any]", document)
    if "swagger" in given:
        raise Unclear("it is of Swagger 2, and OpenAPI 3 is read; convert it")
    if not str(given.get("openapi") or "").startswith("3."):
        raise Unclear('it has no "openapi: 3…"')
    if not isinstance(given.get("paths"), Mapping) or not given["paths"]:
        raise Unclear("it has no paths")
    return given


def server_of(document: Mapping[str, Any]) -> str:
    """Return the address of the first server, with the defaults of its variables; empty: none."""
    servers: Any = document.get("servers")
    if not isinstance(servers, list) or not servers:
        return ""
    server = followed(document, servers[0], "the server")
    variables = server.get("variables")
    url = str(server.get("url") or "")
    for name in _TEMPLATE.findall(url):
        known = as_object((as_object(variables) or {}).get(name)) or {}
        if "default" not in known:
            return ""
        url = url.replace(f"{{{name}}}", str(known["default"]))
    return url if url.startswith(("http://", "https://")) else ""


def operations_of(document: Mapping[str, Any]) -> Iterator[Operation | Unread]:
    """Yield the operations of a document in its order.

    Their names are those of the document, as far as they differ; else made of method and path.
    """
    names = set[str]()
    for path, given in document["paths"].items():
        try:
            item = followed(document, given, f"the path {path}")
        except Unclear as error:
            yield Unread(name=_made_up("", str(path)), place=str(path), reason=str(error))
            continue
        for method in METHODS:
            if method in item:
                place = f"{method.upper()} {path}"
                id = (as_object(item[method]) or {}).get("operationId")
                name = _named(str(id)) if id else _made_up(method, str(path))
                name = _made_up(method, str(path)) if name in names else name
                names.add(name)
                try:
                    yield _operation(document, item, method, str(path), name)
                except Unclear as error:
                    yield Unread(name=name, place=place, reason=str(error))


def _named(id: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", id)[:64]


def _made_up(method: str, path: str) -> str:
    text = f"{method} {path}"
    name = re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_") or "operation"
    return name if len(name) <= 64 else f"{name[:55]}_{zlib.crc32(text.encode()):08x}"


def _operation(
    document: Mapping[str, Any], item: Mapping[str, Any], method: str, path: str, name: str
) -> Operation:
    given = followed(document, item[method], "the operation")
    if given.get("servers") or item.get("servers"):
        raise Unclear("it has a server of its own")
    schemas = Schemas(document)
    properties: dict[str, Any] = {}
    required: list[str] = []
    parameters: list[Parameter] = []
    for found in _parameters(document, item, given):
        parameter, schema, is_required = _parameter(document, found, schemas, properties)
        parameters.append(parameter)
        properties[parameter.argument] = schema
        required += [parameter.argument] if is_required else []
    asked = set(_TEMPLATE.findall(path))
    given_names = {each.name for each in parameters if each.place == "path"}
    if asked != given_names:
        raise Unclear(f"its path and its path parameters differ: {sorted(asked ^ given_names)}")
    body = None
    if "requestBody" in given:
        about = followed(document, given["requestBody"], "the body")
        body, properties["body"] = _body(document, about, schemas)
        required += ["body"] if about.get("required") is True else []
    shown: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    if definitions := schemas.definitions():
        shown["$defs"] = definitions
    texts = [str(given.get(key) or "").strip() for key in ("summary", "description")]
    described = "\n\n".join(dict.fromkeys(text for text in texts if text))
    return Operation(
        name=name,
        description=described or f"{method.upper()} {path}",
        method=method.upper(),
        path=path,
        parameters=tuple(parameters),
        body=body,
        schema=shown,
        security=_security(document, given),
    )


def _parameters(
    document: Mapping[str, Any], item: Mapping[str, Any], operation: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Return the parameters: those of the operation in place of equal ones of its path."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for owner in (item, operation):
        several: Any = owner.get("parameters") or ()
        if not isinstance(several, (list, tuple)):
            raise Unclear("its parameters are no list")
        for each in cast("list[Any]", several):
            parameter = followed(document, each, "a parameter")
            place, name = str(parameter.get("in")), str(parameter.get("name") or "")
            if place not in _PLACES or not name:
                raise Unclear(f"a parameter is in {place!r:.40}")
            if place != "header" or name.lower() not in _IGNORED:
                found[place, name] = parameter
    return list(found.values())


def _parameter(
    document: Mapping[str, Any],
    given: Mapping[str, Any],
    schemas: Schemas,
    taken: Mapping[str, Any],
) -> tuple[Parameter, Any, bool]:
    place, name = str(given["in"]), str(given["name"])
    style = str(given.get("style") or _PLACES[place])
    if style not in _STYLES[place]:
        raise Unclear(f'the parameter "{name}" has the style {style}')
    content: Any = given.get("content")
    schema: Any = given.get("schema")
    if isinstance(content, Mapping):
        types = list(cast("Mapping[str, Any]", content))
        if len(types) != 1 or not _is_json(types[0]):
            raise Unclear(f'the parameter "{name}" is sent as {types}')
        schema = followed(document, content[types[0]], f'the parameter "{name}"').get("schema")
    if schema is None:
        raise Unclear(f'the parameter "{name}" has no schema')
    read = schemas.read(schema)
    if given.get("description") and isinstance(read, dict):
        read = {**cast("dict[str, Any]", read), "description": str(given["description"])}
    argument = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:64] or place
    if argument in taken or argument == "body":
        argument = f"{place}_{argument}"
    if argument in taken:
        raise Unclear(f'two parameters are called "{argument}"')
    parameter = Parameter(
        argument=argument,
        name=name,
        place=place,
        style=style,
        explode=bool(given.get("explode", style == "form")),
        is_json=isinstance(content, Mapping),
    )
    return parameter, read, place == "path" or given.get("required") is True


def _body(
    document: Mapping[str, Any], given: Mapping[str, Any], schemas: Schemas
) -> tuple[Body, Any]:
    content: Any = given.get("content")
    types = [str(each) for each in cast("Mapping[str, Any]", content)] if content else []
    ways: list[tuple[Media, str]] = []
    for each in types:
        kind = each.partition(";")[0].strip().lower()
        if _is_json(kind) or kind == "*/*":
            ways.append(("json", "application/json" if kind == "*/*" else each))
        elif kind == "application/x-www-form-urlencoded":
            ways.append(("form", each))
        elif kind == "multipart/form-data":
            ways.append(("multipart", each))
        elif kind.startswith("text/"):
            ways.append(("text", each))
    if not ways:
        raise Unclear(f"its body is sent as {', '.join(types) or 'nothing'}")
    media, chosen = min(ways, key=lambda way: ("json", "form", "multipart", "text").index(way[0]))
    about = followed(document, content.get(chosen) or content.get("*/*"), "the body")
    schema: Any = about.get("schema", {})
    if media in ("form", "multipart"):
        _check_fields(document, schema)
    read = {"type": "string"} if media == "text" else schemas.read(schema)
    if given.get("description") and isinstance(read, dict):
        read = {**cast("dict[str, Any]", read), "description": str(given["description"])}
    return Body(media=media, content_type=chosen), read


def _check_fields(document: Mapping[str, Any], schema: Any) -> None:
    """Raises: Unclear: a form has files, which a model cannot write."""
    fields: Any = followed(document, schema, "the form").get("properties")
    if not isinstance(fields, Mapping):
        raise Unclear("its form does not name its fields")
    for name, each in cast("Mapping[str, Any]", fields).items():
        field = followed(document, each, f'the field "{name}"')
        inner: Any = field.get("items")
        field = followed(document, inner, f'the field "{name}"') if inner is not None else field
        coded = {"contentEncoding", "contentMediaType"} & field.keys()
        if coded or field.get("format") in _BINARY:
            raise Unclear(f'the field "{name}" of its form is a file')


def _is_json(kind: str) -> bool:
    kind = kind.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _security(
    document: Mapping[str, Any], operation: Mapping[str, Any]
) -> tuple[tuple[str, ...], ...]:
    given: Any = operation.get("security", document.get("security"))
    if given is None:
        return ()
    several = [as_object(each) for each in cast("list[Any]", given if type(given) is list else [0])]
    if None in several:
        raise Unclear("its security is no list of objects")
    return tuple(tuple(each or ()) for each in several)
