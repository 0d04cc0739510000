"""Laws of the node `http`: what is sent, what comes back, by whose leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from axil import AxilError, ConfigError, RootGraph
from axil_files import load
from axil_remote import Http


def sent(service: str, fields: dict[str, Any], path: str = "/x", **settings: Any) -> Any:
    """Return the answer to a request that is made of fields."""
    graph = RootGraph("ask")
    node = graph.create_node(Http, name="it", url=service + path, **settings)
    graph.edge_from_entry(node, keys=dict.fromkeys(fields, ""))
    wanted = [settings.get("field", "answer"), *filter(None, [settings.get("status")])]
    graph.edge_to_exit(node, keys=dict.fromkeys(wanted, ""))
    output, _ = graph.build().invoke(fields)
    return output[wanted[0]] if len(wanted) == 1 else [output[each] for each in wanted]


def test_a_request_is_made_of_fields(service: str):
    said = sent(
        service,
        {"id": "a/b", "who": {"name": "Ann"}, "rows": [1, {"x": 2}]},
        "/items/{id}?all=1",
        method="POST",
        query={"q": "{who.name} & co"},
        headers={"X-Name": "{who.name}", "X-Braces": "{{}}"},
        body={"rows": "{rows}", "second": "{rows.1.x}", "text": "Dear {who.name}", "n": 3},
    )
    assert (said["method"], said["path"]) == ("POST", "/v1/items/a%2Fb?all=1&q=Ann%20%26%20co")
    assert said["body"] == '{"rows": [1, {"x": 2}], "second": 2, "text": "Dear Ann", "n": 3}'
    headers = said["headers"]
    assert headers["content-type"] == "application/json"
    assert (headers["x-name"], headers["x-braces"]) == ("Ann", "{}")


@pytest.mark.parametrize(
    ("send", "body", "expected"),
    [("form", {"a": "{x} 1"}, "a=y+1"), ("text", "<{x}/>", "<y/>"), ("json", "{x}", '"y"')],
)
def test_a_body_is_written_as_it_is_asked(service: str, send: Any, body: Any, expected: str):
    said = sent(service, {"x": "y"}, method="PUT", send=send, body=body)
    assert (said["method"], said["body"]) == ("PUT", expected)


def test_an_error_is_one_unless_its_status_is_a_field(service: str):
    with pytest.raises(AxilError, match="answered 409: no such shelf"):
        sent(service, {"x": ""}, "/fail")
    assert sent(service, {"x": ""}, "/fail", status="code") == ["no such shelf", 409]
    assert sent(service, {"x": ""}, "/nothing", status="code") == ["", 204]


@pytest.mark.parametrize(
    ("path", "settings", "fault"),
    [
        ("/moved", {}, "redirects to http://elsewhere.example.org/, which is not followed"),
        ("/long", {"max_response_bytes": 100}, "more than 100 bytes"),
        ("/packed", {}, "which was not asked for"),
        ("/{x}/y", {}, 'the place {x} of the address is ".."'),
        ("/cut", {}, "did not answer: RemoteProtocolError. It may have been carried out."),
        ("/late", {"timeout_seconds": 0.1}, "than 0.1 seconds. It may have been carried out."),
        ("/x", {"headers": {"X": "{line}"}}, "characters that no header can have"),
    ],
)
def test_what_cannot_be_asked_or_taken_is_refused(service: str, path, settings, fault):
    with pytest.raises(AxilError) as refused:
        sent(service, {"x": "..", "line": "a\nb"}, path, **settings)
    assert fault in str(refused.value)


@pytest.mark.parametrize(
    "url", ["https://{host}/x", "https://a@{x}/", "https://a.org:{port}/", "file:///etc", "x"]
)
def test_the_host_is_no_value(url: str):
    with pytest.raises(ConfigError, match="url"):
        Http(url=url)


def test_an_answer_in_bytes_is_named_and_one_in_json_may_stay_a_text(service: str):
    assert sent(service, {"x": ""}, "/picture") == "[24 bytes of image/png]"
    assert sent(service, {"x": ""}, parse=False).startswith('{"method": "GET"')


def test_a_file_needs_leave_for_the_host_and_for_the_secret(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SHOP_KEY", "sk-very-secret")
    config = {"url": f"{service}/x", "method": "POST", "secrets": {"X-Key": {"env": "SHOP_KEY"}}}
    graph = {
        "id": "ask",
        "payload": "fields",
        "nodes": [{"id": "it", "type": "http", "config": {**config, "body": {"q": "{q}"}}}],
        "edges": [
            {"from": "@entry", "to": "it", "keys": {"q": ""}},
            {"from": "it", "to": "@exit", "keys": {"answer": ""}},
        ],
    }
    flow = tmp_path / "flow.yaml"
    flow.write_text(yaml.safe_dump({"version": "1", "graph": graph}))
    with pytest.raises(AxilError, match=r"net:127\.0\.0\.1"):
        load(flow).invoke({"q": "?"})
    allowed = load(flow, allow={"net:127.0.0.1", "env:SHOP_KEY"})
    output, _ = allowed.invoke({"q": "?"})
    assert output["answer"]["headers"]["x-key"] == "sk-very-secret"
    assert "sk-very-secret" not in repr(allowed)
