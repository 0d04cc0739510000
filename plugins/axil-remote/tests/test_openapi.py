"""Laws of operations as tools: what is described, sent, refused, and by whose leave."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from axil import ConfigError, SpecError
from axil_agent import Scripted, SingleAgent
from axil_files import load
from axil_models import Refused, Tool, ToolError
from axil_remote import OpenAPITools

from .conftest import PNG

TEXT = {"type": "string"}


def document(*operations: tuple[str, str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for method, path, operation in operations:
        paths.setdefault(path, {})[method] = operation
    return {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths, **more}


def given(name: str, place: str, schema: Any = TEXT, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, **more}


def tools_of(kit: OpenAPITools) -> dict[str, Tool]:
    return {tool.name: tool for tool in asyncio.run(kit.tools())}


def only(url: str, operation: dict[str, Any], method: str = "get", path: str = "/x") -> Tool:
    kit = OpenAPITools(document((method, path, {"operationId": "it", **operation})), url=url)
    return tools_of(kit)["it"]


def ask(tool: Tool, **arguments: Any) -> dict[str, Any]:
    result = asyncio.run(tool(arguments))
    assert isinstance(result, str)
    return json.loads(result)


def problems(made: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        made()
    assert {problem.id for problem in refused.value.problems} == {"AX984"}
    return "\n".join(str(problem) for problem in refused.value.problems)


def test_an_operation_is_described_by_its_parameters_and_its_body():
    pet = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
    operation = {
        "summary": "Add a pet.",
        "parameters": [given("shop id", "path", {"type": "integer"}, required=True)],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
        },
    }
    made = document(("post", "/{shop id}/pets", operation), components={"schemas": {"Pet": pet}})
    [tool] = tools_of(OpenAPITools(made, url="https://example.org")).values()
    assert (tool.name, tool.description) == ("post_shop_id_pets", "Add a pet.")
    assert tool.parameters == {
        "type": "object",
        "properties": {"shop_id": {"type": "integer"}, "body": {"$ref": "#/$defs/Pet"}},
        "required": ["shop_id", "body"],
        "additionalProperties": False,
        "$defs": {"Pet": pet},
    }


def test_references_in_circles_stay_references():
    tree = {"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/T/x"}}}
    made = document(
        ("post", "/t", {"requestBody": {"$ref": "#/components/requestBodies/B"}}),
        components={
            "schemas": {"T": {"x": tree}},
            "requestBodies": {
                "B": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/T/x"}}
                    }
                }
            },
        },
    )
    [tool] = tools_of(OpenAPITools(made, url="https://example.org")).values()
    assert tool.parameters["$defs"]["x"]["properties"] == {"inner": {"$ref": "#/$defs/x"}}


def test_what_openapi_3_0_says_otherwise_is_translated():
    schema = {
        "type": "integer", "nullable": True, "minimum": 1, "exclusiveMinimum": True,
        "example": 3, "x-more": 1,
    }  # fmt: skip
    tool = only("https://example.org", {"parameters": [given("n", "query", schema)]})
    shown = tool.parameters["properties"]["n"]
    assert shown == {"type": ["integer", "null"], "exclusiveMinimum": 1}


def test_what_only_answers_have_is_not_asked_for():
    pet = {
        "type": "object",
        "properties": {"id": {"type": "integer", "readOnly": True}, "name": TEXT},
        "required": ["id", "name"],
    }
    body = {"content": {"application/json": {"schema": pet}}}
    shown = only("https://example.org", {"requestBody": body}, "post").parameters
    assert shown["properties"]["body"]["required"] == ["name"]
    assert list(shown["properties"]["body"]["properties"]) == ["name"]


def test_each_place_and_style_is_sent_as_the_document_says(service: str):
    numbers = {"type": "array", "items": {"type": "integer"}}
    pair = {"type": "object"}
    operation = {
        "parameters": [
            given("id", "path", required=True),
            given("flag", "query", {"type": "boolean"}),
            given("many", "query", numbers),
            given("few", "query", numbers, explode=False),
            given("piped", "query", numbers, style="pipeDelimited", explode=False),
            given("deep", "query", pair, style="deepObject", explode=True),
            given("flat", "query", pair),
            {"name": "coded", "in": "query", "content": {"application/json": {"schema": pair}}},
            given("X-Trace", "header", numbers),
            given("session", "cookie"),
        ]
    }
    said = ask(
        only(service, operation, path="/a/{id}/b"),
        id="ä/ö ?",
        flag=True,
        many=[1, 2],
        few=[3, 4],
        piped=[5, 6],
        deep={"a": 1, "b": "x&y"},
        flat={"c": 2},
        coded={"d": [1]},
        session="s;1",
        **{"X-Trace": [7, 8]},
    )
    path, _, query = said["path"].partition("?")
    assert path == "/v1/a/%C3%A4%2F%C3%B6%20%3F/b"
    assert query.split("&") == [
        "flag=true", "many=1", "many=2", "few=3,4", "piped=5|6", "deep%5Ba%5D=1",
        "deep%5Bb%5D=x%26y", "c=2", "coded=%7B%22d%22%3A%20%5B1%5D%7D",
    ]  # fmt: skip
    assert said["headers"]["x-trace"] == "7,8"
    assert said["headers"]["cookie"] == "session=s%3B1"


@pytest.mark.parametrize(
    ("media", "body", "sent"),
    [
        ("application/json", {"a": "ä"}, '{"a": "Ã¤"}'),
        ("application/vnd.shop+json", [1], "[1]"),
        ("application/x-www-form-urlencoded", {"a": "x y", "b": [1, 2]}, "a=x+y&b=1&b=2"),
        ("text/plain", "hello", "hello"),
    ],
)
def test_a_body_is_sent_in_its_media_type(service: str, media: str, body: Any, sent: str):
    fields = {"type": "object", "properties": {"a": {}, "b": {}}}
    schema = fields if "form" in media else {}
    operation = {"requestBody": {"content": {media: {"schema": schema}}}}
    said = ask(only(service, operation, "post"), body=body)
    assert (said["body"], said["headers"]["content-type"]) == (sent, media)


def test_a_form_in_parts_is_sent(service: str):
    fields = {"type": "object", "properties": {"a": TEXT}}
    operation = {"requestBody": {"content": {"multipart/form-data": {"schema": fields}}}}
    said = ask(only(service, operation, "post"), body={"a": "x"})
    assert said["headers"]["content-type"].startswith("multipart/form-data; boundary=")
    assert 'name="a"\r\n\r\nx\r\n' in said["body"]


def test_arguments_are_checked_before_anything_is_sent():
    # nothing listens there
    tool = only("http://127.0.0.1:1", {"parameters": [given("n", "query", {"type": "integer"})]})
    for arguments in ({"n": "one"}, {"m": 1}):
        with pytest.raises(Refused):
            asyncio.run(tool(arguments))
    with pytest.raises(ToolError, match="cannot be asked: ConnectError"):
        asyncio.run(tool({"n": 1}))


@pytest.mark.parametrize("text", ["..", ".", ""])
def test_no_argument_leads_to_another_path(text: str):
    tool = only("http://127.0.0.1:1", {"parameters": [given("id", "path")]}, path="/a/{id}")
    with pytest.raises(Refused, match="cannot be a part of a path"):
        asyncio.run(tool({"id": text}))


def test_a_header_cannot_be_ended_by_an_argument():
    tool = only("http://127.0.0.1:1", {"parameters": [given("X-A", "header")]})
    with pytest.raises(Refused, match="no header can have"):
        asyncio.run(tool({"X-A": "a\r\nX-B: b"}))


SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "asked": {"type": "apiKey", "in": "query", "name": "key"},
    "jar": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "Bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "digest": {"type": "http", "scheme": "digest"},
}


@pytest.mark.parametrize(
    ("scheme", "secret", "expected"),
    [
        ("key", "s e", ("x-key", "s e")),
        ("jar", "s1", ("cookie", "sid=s1")),
        ("basic", "ada:pw", ("authorization", "Basic YWRhOnB3")),
        ("bearer", "token-1", ("authorization", "Bearer token-1")),
        ("oauth", "token-1", ("authorization", "Bearer token-1")),
    ],
)
def test_a_secret_is_sent_as_its_scheme_says(
    service: str, scheme: str, secret: str, expected: tuple[str, str]
):
    made = document(
        ("get", "/x", {"operationId": "it"}),
        security=[{"other": []}, {scheme: []}],
        components={"securitySchemes": {**SCHEMES, "other": SCHEMES["key"]}},
    )
    kit = OpenAPITools(made, url=service, auth={scheme: secret})
    assert ask(tools_of(kit)["it"])["headers"][expected[0]] == expected[1]
    assert secret not in repr(kit.config)


def test_a_key_in_the_address_is_in_no_error():
    made = document(
        ("get", "/x", {"operationId": "it", "security": [{"asked": []}]}),
        components={"securitySchemes": SCHEMES},
    )
    tool = tools_of(OpenAPITools(made, url="http://127.0.0.1:1", auth={"asked": "hush-hush"}))["it"]
    with pytest.raises(ToolError) as failed:
        asyncio.run(tool({}))
    assert "hush-hush" not in str(failed.value)


def test_an_operation_whose_secret_is_missing_is_refused():
    made = document(
        ("get", "/x", {"operationId": "it", "security": [{"key": []}]}),
        components={"securitySchemes": SCHEMES},
    )
    assert "needs a secret for key" in problems(lambda: OpenAPITools(made, url="https://e.org"))
    assert "digest" in problems(
        lambda: OpenAPITools(made, url="https://e.org", auth={"key": "a", "digest": "b"})
    )
    OpenAPITools(made, url="https://e.org", headers={"X-Own": "a"})


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"parameters": [given("a", "query", {"$ref": "other.yaml#/A"})]}, "out of the document"),
        ({"parameters": [given("a", "query", {"$ref": "#/components/x"})]}, "leads to nothing"),
        ({"parameters": [given("a", "path", style="matrix")]}, "style matrix"),
        ({"parameters": [given("a", "body")]}, "is in 'body'"),
        ({"parameters": [{"name": "a", "in": "query"}]}, "has no schema"),
        ({"parameters": [given("a", "path")]}, "path parameters differ"),
        ({"parameters": [given("a", "query", {"type": "text"})]}, "JSON Schema"),
        ({"requestBody": {"content": {"application/octet-stream": {}}}}, "octet-stream"),
        (
            {
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {"properties": {"f": {"type": "string", "format": "binary"}}}
                        }
                    }
                }
            },
            "is a file",
        ),
        ({"servers": [{"url": "https://other.org"}]}, "server of its own"),
    ],
)
def test_an_operation_that_is_not_understood_is_refused_with_the_reason(
    operation: dict[str, Any], reason: str
):
    import re

    fine = ("get", "/fine", {"operationId": "fine"})
    made = document(fine, ("post", "/odd", {"operationId": "odd", **operation}))
    said = problems(lambda: OpenAPITools(made, url="https://example.org"))
    assert re.search(reason, said)
    assert 'deny: ["odd"]' in said
    left = OpenAPITools(made, url="https://example.org", deny=["odd"])
    assert list(tools_of(left)) == ["fine"]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"swagger": "2.0", "paths": {"/a": {}}}, "Swagger 2"),
        ({"openapi": "3.0.0", "paths": {}}, "no paths"),
        ({"paths": {"/a": {}}}, 'no "openapi'),
        (document(("get", "/a", {})), "Set url"),
        (document(("get", "/a", {}), servers=[{"url": "/v1"}]), "Set url"),
    ],
)
def test_a_document_that_is_not_understood_is_refused(made: dict[str, Any], reason: str):
    assert reason in problems(lambda: OpenAPITools(made))


def test_all_that_is_wrong_is_said_at_once():
    odd = {"requestBody": {"content": {"application/octet-stream": {}}}}
    made = document(("post", "/a", odd), ("post", "/b", odd))
    assert problems(lambda: OpenAPITools(made, url="https://e.org")).count("octet-stream") == 2


def test_operations_are_chosen_by_name_and_too_many_are_an_error():
    made = document(*(("get", f"/{name}", {"operationId": name}) for name in ("a1", "a2", "b1")))
    kit = OpenAPITools(made, url="https://e.org", allow=["a*"], deny=["a2"], prefix="shop_")
    assert list(tools_of(kit)) == ["shop_a1"]
    assert "It has a1, a2" in problems(lambda: OpenAPITools(made, url="https://e.org", allow=["z"]))
    assert "it has 3" in problems(lambda: OpenAPITools(made, url="https://e.org", max_tools=2))


def test_operations_of_one_id_have_names_of_method_and_path():
    same = {"operationId": "find"}
    long = "/a/" + "b/" * 40
    made = document(("get", "/a", same), ("post", "/a/b", same), ("get", long, same))
    names = list(tools_of(OpenAPITools(made, url="https://e.org")))
    assert names[:2] == ["find", "post_a_b"]
    assert len(names[2]) == 64


def test_what_calling_again_may_do_is_what_the_method_means():
    methods = ("get", "put", "post", "delete", "patch")
    made = document(*((method, "/x", {"operationId": method}) for method in methods))
    tools = tools_of(OpenAPITools(made, url="https://e.org", effects={"pat*": "idempotent"}))
    assert {name: tool.effects for name, tool in tools.items()} == {
        "get": "none",
        "put": "idempotent",
        "post": "external",
        "delete": "idempotent",
        "patch": "idempotent",
    }


def test_the_server_of_the_document_is_used_with_its_defaults(service: str):
    server, _, version = service.rpartition("/")
    servers = [{"url": f"{server}/{{v}}", "variables": {"v": {"default": version}}}]
    kit = OpenAPITools(document(("get", "/x", {"operationId": "it"}), servers=servers))
    assert ask(tools_of(kit)["it"])["path"] == "/v1/x"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/fail", "409: no such shelf"),
        ("/moved", "redirects"),
        ("/packed", "'gzip'"),
        ("/cut", "may have been carried out"),
    ],
)
def test_an_answer_that_is_none_is_an_error_for_the_model(service: str, path: str, reason: str):
    with pytest.raises(ToolError, match=reason):
        asyncio.run(only(service, {}, path=path)({}))


def test_answers_are_texts_within_bounds_or_parts(service: str):
    kit = {"url": service, "max_result_chars": 100, "max_response_bytes": 6_000}
    made = document(*(("get", f"/{name}", {}) for name in ("long", "picture", "nothing")))
    tools = tools_of(OpenAPITools(made, **kit))
    cut = asyncio.run(tools["get_long"]({}))
    assert cut == "x" * 100 + "\n[characters 0 to 100 of 5000]"
    assert asyncio.run(tools["get_nothing"]({})) == "[204, without content]"
    [part] = asyncio.run(tools["get_picture"]({}))
    assert (part["type"], part["media_type"]) == ("image", "image/png")
    small = tools_of(OpenAPITools(made, url=service, max_response_bytes=100, max_result_chars=100))
    with pytest.raises(ToolError, match="more than 100 bytes"):
        asyncio.run(small["get_long"]({}))
    assert len(PNG) < 100


WORKFLOW = """
version: 1
graph:
  start: ask
  nodes:
    - id: ask
      type: agent
      config:
        model: {type: scripted, config: {rules: [{replies: [
          {tool_calls: [{name: find, arguments: {q: axils}}]}, "Found."]}]}}
        tools: [{type: openapi, config: {document: api.yaml}}]
"""
API = """
openapi: 3.0.3
info: {title: t, version: "1"}
servers: [{url: URL}]
paths:
  /find:
    get:
      operationId: find
      parameters: [{name: q, in: query, schema: {type: string}}]
      responses: {200: {description: found}}
"""


def test_a_file_needs_leave_for_the_host_of_the_document(service: str, tmp_path: Path):
    (tmp_path / "api.yaml").write_text(API.replace("URL", service))
    flow = tmp_path / "flow.yaml"
    flow.write_text(WORKFLOW)
    with pytest.raises(SpecError, match=r"AX138.*--allow net:127\.0\.0\.1"):
        load(flow).invoke("?")
    result = load(flow, allow={"net:127.0.0.1"}).invoke("?")
    assert result.output == "Found."


def test_a_file_reads_no_document_elsewhere(tmp_path: Path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "api.yaml").write_text(API.replace("URL", "https://example.org"))
    flow = inside / "flow.yaml"
    flow.write_text(WORKFLOW.replace("api.yaml", "../api.yaml"))
    with pytest.raises(SpecError, match="AX137"):
        load(flow, allow={"network"}).invoke("?")


def test_an_agent_calls_an_operation(service: str, tmp_path: Path):
    file = tmp_path / "api.yaml"
    file.write_text(API.replace("URL", service))
    call = {"tool_calls": [{"name": "find", "arguments": {"q": "axils"}}]}
    model = Scripted([call, "Found."])
    agent = SingleAgent(model, tools=[OpenAPITools(file)])
    assert agent.invoke({"q": "?"}) == {"message": "Found."}
    assert '"path": "/v1/find?q=axils"' in model.requests[1].messages[-1]["content"]
