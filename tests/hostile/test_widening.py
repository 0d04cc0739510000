"""No place of a file has more than the outermost file got; hosts, programs, imports and variables
of the environment are what their words say, however they are spelled.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .harness import Scene

Config = dict[str, Any]
READ: Config = {"type": "keyword", "paths": ["../outside/secret"]}
WRITE: Config = {"type": "file_memory", "path": "../outside/new", "remember": "reply"}


def agent(**more: Any) -> Config:
    return {"type": "agent", "config": {"model": {"type": "scripted", "default": "x"}, **more}}


def code(**more: Any) -> Config:
    return {"type": "python", "config": {"code": "open('taken', 'w')", **more}}


WANTED: dict[str, Config] = {
    "reads": agent(retrievers=[READ]),
    "writes": agent(memories=[WRITE]),
    "runs code": code(),
    "imports": {"type": "strange_module:node"},
    "starts a program": agent(tools=[{"type": "mcp", "command": ["touch", "taken"]}]),
    "takes a variable": {"type": "literal", "config": {"content": "${PRIVATE_TOKEN}"}},
    "imports a state": {
        "type": "passthrough",
        "wrappers": [{"type": "process", "config": {"state": "strange_module:node"}}],
    },
    "keeps results": {
        "type": "passthrough",
        "wrappers": [{"type": "cache", "config": {"directory": "../outside/new"}}],
    },
}
"""Wishes of a node that the outermost file did not get."""


def whole(*nodes: Config, **more: Any) -> Config:
    named = [{"id": f"n{i}", **node} for i, node in enumerate(nodes)]
    return {"graph": {"id": "g", "nodes": named, "start": ["n0"]}, **more}


def inside(node: Config) -> Config:
    """Return a node without wrappers that has a node with wrappers inside."""
    if "wrappers" not in node:
        return node
    return {"type": "subgraph", "config": {"type": "config", "config": whole(node)["graph"]}}


def _include(scene: Scene, node: Config) -> Path:
    scene.write(whole(node), "parts/inner.json")
    use = {"type": "file", "config": {"path": "parts/inner.json"}}
    return scene.write(whole({"type": "subgraph", "config": use}))


def _twice(scene: Scene, node: Config) -> Path:
    scene.write(whole(node), "parts/more/last.json")
    for name, then in (
        ("parts/inner.json", "parts/more/last.json"),
        ("flow.json", "parts/inner.json"),
    ):
        use = {"type": "file", "config": {"path": then}}
        scene.write(whole({"type": "subgraph", "config": use}), name)
    return scene.flows / "flow.json"


def _inline(scene: Scene, node: Config) -> Path:
    use = {"type": "config", "config": whole(node)["graph"]}
    return scene.write(whole({"type": "subgraph", "config": use}))


def _template(scene: Scene, node: Config) -> Path:
    return scene.write(whole({"use": "t"}, templates={"t": node}))


def _override(scene: Scene, node: Config) -> Path:
    rule = {"path": "n0", "config": node.get("config", {})}
    kept = {key: value for key, value in node.items() if key != "config"}
    return scene.write(whole({"use": "t"}, templates={"t": kept}, overrides=[rule]))


def _defaults(scene: Scene, node: Config) -> Path:
    rule = {"path": "n0", "config": node.get("config", {})}
    kept = {key: value for key, value in node.items() if key != "config"}
    return scene.write(whole({"use": "t"}, templates={"t": kept}, defaults=[rule]))


def _vars(scene: Scene, node: Config) -> Path:
    return scene.write(whole({**node, "type": "${KIND}"}, vars={"KIND": node["type"]}))


def _vars_whole(scene: Scene, node: Config) -> Path:
    given = {"SETTINGS": node.get("config", {})}
    return scene.write(whole({**node, "config": "${SETTINGS}"}, vars=given))


def _map(scene: Scene, node: Config) -> Path:
    return scene.write(whole({"type": "map", "config": {"body": inside(node)}}))


def _team(scene: Scene, node: Config) -> Path:
    return scene.write(whole({"type": "horizontal", "config": {"members": {"m": node}}}))


def _tool(scene: Scene, node: Config) -> Path:
    tool = {"type": "agent", "config": {"name": "t", "agent": inside(node)}}
    return scene.write(whole(agent(tools=[tool])))


def _fallback(scene: Scene, node: Config) -> Path:
    wrapper = {"type": "fallback", "config": {"use": inside(node)}}
    return scene.write(whole({"type": "passthrough", "wrappers": [wrapper]}))


def _usual(scene: Scene, node: Config) -> Path:
    data = whole({"type": "passthrough"})
    data["graph"]["node_wrappers"] = {"*": [{"type": "fallback", "config": {"use": inside(node)}}]}
    return scene.write(data)


def _yaml(scene: Scene, node: Config) -> Path:
    head = f"vars:\n  a: &a {json.dumps(node)}\ngraph:\n  id: g\n  start: [n0]\n  nodes:\n"
    return scene.write(f"{head}    - <<: *a\n      id: n0\n", "flow.yaml")


def _toml(scene: Scene, node: Config) -> Path:
    def value(given: Any) -> str:
        if isinstance(given, dict):
            return "{" + ", ".join(f"{k} = {value(v)}" for k, v in given.items()) + "}"
        if isinstance(given, list):
            return "[" + ", ".join(map(value, given)) + "]"
        return json.dumps(given)

    nodes = f"[{value({'id': 'n0', **node})}]"
    return scene.write(f"[graph]\nid = 'g'\nstart = ['n0']\nnodes = {nodes}\n", "flow.toml")


def _cycle(scene: Scene, node: Config) -> Path:
    data = whole(node, {"type": "passthrough"})
    data["graph"]["edges"] = [{"from": "n0", "to": "n1"}, {"from": "n1", "to": "n0"}]
    data["graph"]["end"] = ["n1"]
    return scene.write(data)


def _devall(scene: Scene, node: Config) -> Path:
    data = whole(node, version="0.4.0")
    return scene.write({**data, "graph": {**data["graph"], "edges": [], "log_level": "INFO"}})


PLACES: dict[str, Callable[[Scene, Config], Path]] = {
    "included file": _include, "file of a file": _twice, "inline graph": _inline,
    "template": _template, "overrides": _override, "defaults": _defaults, "type from vars": _vars,
    "config from vars": _vars_whole, "map": _map, "team": _team, "tool": _tool,
    "fallback": _fallback, "usual wrappers": _usual, "merge of YAML": _yaml, "TOML": _toml,
    "cycle": _cycle, "DevAll": _devall,
}  # fmt: skip
OTHER = ("network", "env:HOME", "read:docs", "write:.axil", "import:json", "program:true")
"""Words that the outermost file got, and none of which covers what is wanted."""


@pytest.mark.third
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wanted", WANTED)
def test_no_place_has_more_than_the_outermost_file(scene: Scene, place: str, wanted: str):
    file = PLACES[place](scene, WANTED[wanted])
    given = (each for word in OTHER for each in ("--allow", word))
    scene.refuse(file, *given, ids=("AX137", "AX138", "AX148"))


@pytest.mark.parametrize("key", ["allow", "allow_code", "grants", "capabilities", "permissions"])
@pytest.mark.parametrize("where", ["file", "graph", "node", "vars"])
def test_a_file_grants_itself_nothing(scene: Scene, key: str, where: str):
    given = {key: ["code", "read", "write", "env"]}
    data = whole({**WANTED["reads"], **(given if where == "node" else {})})
    data["graph"] |= given if where == "graph" else {}
    scene.refuse(scene.write({**data, **(given if where == "file" else {}),
                              **({"vars": given} if where == "vars" else {})}))  # fmt: skip


INNER = (
    "127.0.0.1", "localhost", "LOCALHOST", "localhost.", "127.1", "2130706433", "0x7f000001",
    "0177.0.0.1", "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]",
    "127.0.0.1.", "１２７.0.0.1", "①②⑦.0.0.1", "169.254.169.254", "[fe80::1]", "10.0.0.1",
    "192.168.0.1", "metadata.google.internal", "user@127.0.0.1", "127.0.0.1:22", "127。0。0。1",
    "[::ffff:a9fe:a9fe]", "100.100.100.200", "[fd00:ec2::254]", "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
)  # fmt: skip


@pytest.mark.parametrize("host", INNER)
def test_a_page_that_is_inside_is_not_read_with_leave_for_the_network(
    scene: Scene, host: str, tmp_path: Path
):
    """``network`` is the public internet, in whatever way an address is written."""
    call = {"tool_calls": [{"name": "http_get", "arguments": {"url": f"http://{host}/{'x'}"}}]}
    script = {"rules": [{"match": {"contains": "Hello"}, "replies": [call, "fine"]}]}
    (tmp_path / "script.json").write_text(json.dumps(script))
    file = scene.agent(tools=[{"type": "http_get", "timeout_seconds": 2}])
    given = ["--allow", "network", "--model-script", str(tmp_path / "script.json")]
    said = scene.contact(file, *given)
    assert not [each for each in said if each.startswith("socket.connect")], said


PROGRAMS = (
    "touch", "/bin/touch", "./touch", "../outside/touch", "touch taken", "TOUCH", "touch\0",
    "env", "sh", "true;touch", "$(touch taken)", "~/touch", "/proc/self/exe", "tou\u200bch", "",
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_program_is_started_but_the_one_that_was_granted(scene: Scene, program: str):
    tool = {"type": "mcp", "command": [program, "taken"]}
    said = scene.refuse(scene.agent(tools=[tool]), "--allow", "program:true", "--allow", "mcp:true")
    assert not (scene.flows / "taken").exists()
    assert said.ids


IMPORTS = (
    "strange_module:node", "strange_module.node:x", "json.strange_module:x", "strange_module",
    ":node", "strange_module:", "json:strange_module", "json:loads.__globals__",
    ".strange_module:x",
    "..strange_module:x", "strange_module :node", "STRANGE_MODULE:node", "ｓtrange_module:node",
    "json:__class__", "jsonx:strange", "json\n:strange_module", "os:system", "builtins:exec",
)  # fmt: skip


@pytest.mark.parametrize("path", IMPORTS)
@pytest.mark.parametrize("granted", ["import:json", "network"])
def test_no_module_is_imported_but_the_one_that_was_granted(scene: Scene, path: str, granted: str):
    scene.refuse(scene.node({"type": path}), "--allow", granted)
    node = {"type": "passthrough",
            "wrappers": [{"type": "process", "config": {"state": path}}]}  # fmt: skip
    if not path.startswith("json:"):
        scene.refuse(scene.node(node), "--allow", granted)


VARIABLES = (
    "${PRIVATE_TOKEN}", "a ${PRIVATE_TOKEN} b", "${${NAME}}", "${NAME}", "$${PRIVATE_TOKEN}",
    "${PRIVATE_TOKEN:-x}", "$PRIVATE_TOKEN", "%PRIVATE_TOKEN%", "${private_token}",
    "${ PRIVATE_TOKEN }", "${env:PRIVATE_TOKEN}", "{env.PRIVATE_TOKEN}", "{{ PRIVATE_TOKEN }}",
    "${PRIVATE_TOKEN\u200b}", "${ＰRIVATE_TOKEN}",
)  # fmt: skip


@pytest.mark.parametrize("text", VARIABLES)
@pytest.mark.parametrize("setting", ["literal", "instructions", "vars", "header", "default"])
def test_no_variable_of_the_environment_is_read_without_leave(
    scene: Scene, text: str, setting: str
):
    root: Config = {"vars": {"NAME": "${PRIVATE_TOKEN}"}}
    node = {"type": "literal", "config": {"content": text}}
    if setting == "instructions":
        node = agent(instructions=text)
    elif setting == "vars":
        root["vars"]["LAST"] = text
        node = {"type": "literal", "config": {"content": "${LAST}"}}
    elif setting == "header":
        there = {"base_url": "http://127.0.0.1:1", "retry": {"max_tries": 1}}
        model = {"type": "openai", "name": "m", "headers": {"x": text}, "api_key": text}
        node = agent(model={**model, **there})
        said = scene.contact(scene.node(node, **root))
        assert not [each for each in said if "canary" in each]
        return
    elif setting == "default":
        node = agent(model={"type": "scripted", "default": text})
    scene.attack(scene.node(node, **root))
