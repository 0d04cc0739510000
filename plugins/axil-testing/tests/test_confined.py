"""The law about settings of a stranger's file finds what components do without leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from axil_testing.kit.confined import variants

COMPONENTS = """
import importlib, os, subprocess
from pathlib import Path
import axil
from pydantic import BaseModel
from axil.plugin import Secret, ReadPath, current_grants

class One(BaseModel, extra="forbid"):
    given: str = "x"

class Declared(BaseModel, extra="forbid"):
    given: ReadPath = "x"
    key: Secret | None = None

class Mapped(BaseModel, extra="forbid"):
    more: dict[str, dict] = {}

class Component:
    Config = One
    def __init__(self, config):
        self.config = config

class Reads(Component):
    def get_blocks(self, query):
        return open(self.config.given).read()

class Writes(Component):
    async def provision(self):
        os.makedirs(self.config.given + "-made")

class Starts(Component):
    def __init__(self, config):
        subprocess.run([config.given])

class Imports(Component):
    def __init__(self, config):
        importlib.import_module(config.given.partition(":")[0])

class Expands(Component):
    def __init__(self, config):
        os.path.expandvars(config.given)

class Proxied(Component):
    def __init__(self, config):
        import urllib.request
        urllib.request.getproxies()

class Connects(Component):
    def __init__(self, config):
        import socket
        socket.getaddrinfo("example.org", 80)

class Decides(Component):
    Config = Mapped
    def __call__(self, seen):
        return bool(open(self.config.more["x"]["x"]).read())

class Careless(Component):
    # does what it should not when it is first used, whatever is first asked of its kind
    def act(self, *given, **more):
        open(self.config.given).close()
        return given[0] if given else {}
    marks = seal = problem = score = fires = check = rerank = embed = tools = act
    upsert = search = delete = act
    early, per_token, rest = False, False, "drop"
    async def ask(self, question):
        return self.act(question)
    def run(self, inputs, ctx):
        return self.act(inputs)
    def __call__(self, *given):
        return self.act(*given)

class Hooked(Careless):
    @axil.hookimpl
    def run_started(self, run_id, plan, inputs):
        self.act()

class Executes(Careless):
    async def execute(self, body, task, ctx):
        return self.act({})
    async def close(self):
        pass

class Wraps(Careless):
    def wrap(self, body, node):
        class Around:
            mode = "async"
            async def __call__(inner, task, ctx):
                return self.act(None)
        return Around()

class ByPath(BaseModel, extra="forbid"):
    place: Path = Path(".axil")
    name: str = "x"

class Keeps(Component):
    Config = ByPath
    def seal(self, text, about):
        return open(self.config.place).read()

class Fine(Component):
    Config = Declared
    def get_blocks(self, query):
        return [open(self.config.given).read(), self.config.key.resolve()]
"""
TRIED = """
import json, os, sys
from pathlib import Path
from axil.plugin import Policy, Registry
from axil_testing.kit.confined import faults

class Dist:
    name, version, requires, metadata = "acme-bad", "1.0", (), None

def entry(given):
    class Entry:
        kind = "conditions" if given == "Decides" else "context"
        group, name, value, dist = f"axil.{kind}", given.lower(), f"acme_bad:{given}", Dist()
    return Entry()

def careless(kind, given="Careless", called="careless"):
    class Entry:
        group, name, value, dist = f"axil.{kind}", called, f"acme_bad:{given}", Dist()
    return Entry()

OTHERS = {"hooks": "Hooked", "executors": "Executes", "wrappers": "Wraps"}
names = ["Reads", "Writes", "Starts", "Imports", "Expands", "Connects", "Proxied", "Decides"]
names.append("Fine")
entries = [*map(entry, names)]
entries += [careless(kind, OTHERS.get(kind, "Careless")) for kind in sys.argv[2:]]
entries.append(careless("ciphers", "Keeps", "keeps"))
found = faults(["acme-bad"], Path(sys.argv[1]), Registry(Policy(), entries))
print(json.dumps(found), flush=True)
os._exit(0)
"""

KINDS = (
    *("nodes", "stores", "ciphers", "sandboxes", "scorers", "joins", "guards"),
    *("rerankers", "embedders", "channels", "tools", "conditions", "processors", "hooks"),
    *("executors", "wrappers"),
)


def test_what_a_component_does_without_leave_is_found_and_prevented(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/acme_bad.py").write_text(COMPONENTS)
    (tmp_path / "root").mkdir()
    path = os.pathsep.join([str(tmp_path / "parts"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", TRIED, str(tmp_path / "root"), *KINDS],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    root = os.path.realpath(tmp_path / "root")
    assert f"reads {root}/secret.txt" in found["context:reads"]
    assert f"writes {root}/secret.txt-made" in found["context:writes"]
    assert not os.path.exists(f"{root}/secret.txt-made")
    assert any("axil_kit_canary" in each for each in found["context:starts"])
    assert any("axil_kit_canary" in each for each in found["context:imports"])
    assert found["context:expands"] == ["reads the variable AXIL_KIT_CANARY"]
    assert len(found["context:connects"]) == 1
    assert f"reads {root}/secret.txt" in found.pop("conditions:decides")
    for kind in KINDS:
        assert f"reads {root}/secret.txt" in found.pop(f"{kind}:careless", []), kind
    assert set(found) == {  # a cipher with a ``Path`` of its caller is not among them
        f"context:{name}"
        for name in ("reads", "writes", "starts", "imports", "expands", "connects")
    }


def test_each_text_of_a_config_is_tried_in_itself_and_in_its_schema():
    schema = {
        "properties": {
            "name": {"type": "string"},
            "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
            "size": {"type": "integer"},
            "open": {"type": "object", "additionalProperties": True},
        },
        "$defs": {"Part": {"properties": {"path": {"type": "string"}}}},
    }
    assert list(variants({"deep": [{"x": "y"}]}, schema, ["!"])) == [
        {"deep": [{"x": "!"}]},
        {"deep": [{"x": "y"}], "name": "!"},
        {"deep": [{"x": "y"}], "parts": [{"path": "!"}]},
        {"deep": [{"x": "y"}], "env": {"x": "!"}},
        {"deep": [{"x": "y"}], "open": {"x": "!"}},
    ]
