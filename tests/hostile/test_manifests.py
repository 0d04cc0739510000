"""Claims of an installed distribution about itself harm no other one: neither its metadata, nor its
entry points, nor its manifest. Looking at it imports nothing, and reads nothing outside of it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from axil import AxilError
from axil.plugin import Policy, Registry, use_registry
from axil_cli.main import main

from .harness import CANARY, Scene, observing, tree

INFO = "acme_bad-1.0.dist-info"
ODD = "\x1b]0;taken\x07\u202etxt\x1b[2J"
HEAD = "Metadata-Version: 2.1\nName: acme-bad\nVersion: 1.0\n"
POINTS = "[axil.nodes]\nacme.bad = acme_bad:Bad\n[axil.plugin]\nacme-bad = acme_bad\n"
DEEP = "[" * 50_000
Text = str | bytes


def head(**fields: str) -> str:
    """Return metadata with other fields."""
    named = {"Name": "acme-bad", "Version": "1.0", **fields}
    return "Metadata-Version: 2.1\n" + "".join(f"{key}: {text}\n" for key, text in named.items())


METADATA: dict[str, Text] = {
    "nothing": "",
    "no text": b"\xff\xfe\x00" * 99,
    "no name": "Metadata-Version: 2.1\nVersion: 1.0\n",
    "no version": "Metadata-Version: 2.1\nName: acme-bad\n",
    "the name of another": head(Name="axil-control"),
    "the name of the kernel": head(Name="axil-core", Version="99"),
    "a name that leads out": head(Name="../../outside/secret"),
    "a name that is a path": head(Name="/etc/shadow"),
    "a name with signs of terminals": head(Name=ODD),
    "a name with lines": head(Name="acme\n-bad", Version="1\r\nRequires-Dist: evil"),
    "a name that is long": head(Name="a" * 1_000_000),
    "a version that is a path": head(Version="../../outside/secret"),
    "a version with signs of terminals": head(Version=ODD),
    "a summary with signs of terminals": head(Summary=ODD * 9),
    "a requirement from elsewhere": HEAD + "Requires-Dist: evil @ http://127.0.0.1:9/evil.whl\n",
    "a requirement of a file": HEAD + "Requires-Dist: evil @ file:///etc/shadow\n",
    "a requirement that is none": HEAD + f"Requires-Dist: {ODD};;==\n",
    "a requirement of itself": HEAD + "Requires-Dist: acme-bad[acme-bad]\n" * 3,
    "thousands of requirements": HEAD + "".join(f"Requires-Dist: evil{n}\n" for n in range(9_000)),
    "an extra that is a path": HEAD + "Provides-Extra: ../x\nRequires-Dist: x; extra=='.'\n",
    "thousands of lines": HEAD + "X: y\n" * 100_000,
    "the same twice": HEAD * 2,
}


def points(value: str, group: str = "nodes", name: str = "acme.bad") -> str:
    return f"[axil.{group}]\n{name} = {value}\n"


ENTRY_POINTS: dict[str, Text] = {
    "no text": b"\xff\xfe[axil.nodes]\n\x00",
    "no groups": "acme = acme_bad:Bad\n",
    "no value": "[axil.nodes]\nacme.bad\nacme.worse =\n",
    "brackets": DEEP,
    "a path": points("../../outside/secret"),
    "a whole path": points("/etc/shadow:x"),
    "a path of modules": points("..outside.secret:x"),
    "code": points("os:system"),
    "code behind another": points("acme_bad:__class__.__base__.__subclasses__"),
    "an expression": points("__import__('os').system('touch taken')"),
    "a module that is strange": points("strange_module:node"),
    "nothing of a module": points("acme_bad:No.Such.Thing"),
    "the module itself": points("acme_bad"),
    "a name of another": points("acme_bad:Bad", name="passthrough"),
    "names of all kinds": "".join(
        points("acme_bad:Bad", kind, name)
        for kind, name in (
            ("models", "openai"), ("tools", "http_get"), ("wrappers", "retry"),
            ("loaders", ".json"), ("formatters", "json"), ("joins", "all"), ("hooks", "acme"),
        )
    ),
    "a command of another": points("acme_bad:Bad", "commands", "run"),
    "options": points("acme_bad:Bad", "options", "run.locked"),
    "a channel": points("acme_bad:Bad", "channels", "terminal"),
    "an executor": points("acme_bad:Bad", "executors", "inline"),
    "a kind that is none": points("acme_bad:Bad", "everything"),
    "a later contract": "[axil.nodes.v9]\nacme.bad = acme_bad:Bad\n",
    "a name that is a path": points("acme_bad:Bad", name="../../outside/secret"),
    "a name with signs of terminals": points("acme_bad:Bad", name=f"acme{ODD}"),
    "a name that is long": points("acme_bad:Bad", name="a" * 500_000),
    "a name with spaces": points("acme_bad:Bad", name="passthrough "),
    "another alphabet": points("acme_bad:Bad", name="рassthrough"),
    "thousands": "[axil.nodes]\n" + "".join(f"n{n} = acme_bad:Bad\n" for n in range(20_000)),
    "the same twice": POINTS * 2,
    "a package of another": "[axil.plugin]\naxil-control = acme_bad\nacme-bad = axil_control\n",
    "a package that is a path": "[axil.plugin]\nacme-bad = ../../outside/skill\n",
    "a package that is a module": "[axil.plugin]\nacme-bad = json.decoder:x\n",
}  # fmt: skip


def manifest(**more: Any) -> str:
    component = {"kind": "nodes", "name": "acme.bad", "summary": "A node.", "schema": {}}
    known = {"manifest": 1, "distribution": "acme-bad", "spec": {}, "components": [component]}
    return json.dumps({**known, **more})


def described(**more: Any) -> str:
    component = {"kind": "nodes", "name": "acme.bad", "summary": "A node.", "schema": {}, **more}
    return manifest(components=[component])


MANIFESTS: dict[str, Text] = {
    "nothing": "",
    "no text": b"\xff\xfe\x00",
    "null": "null",
    "numbers": "9" * 10_000,
    "brackets": DEEP,
    "keys one in another": '{"components": [' * 20_000,
    "another version": manifest(manifest=2),
    "no version": manifest(manifest=True),
    "the name of another": manifest(distribution="axil-control"),
    "a name that is a path": manifest(distribution="../../outside/secret"),
    "a name that is a list": manifest(distribution=["acme-bad"]),
    "components that are no list": manifest(components={"nodes": "acme.bad"}),
    "components that are texts": manifest(components=["acme.bad"]),
    "components of another": described(name="passthrough", summary="Mine."),
    "a kind that is none": described(kind="everything"),
    "an old name of another": described(aliases=["passthrough", "agent"]),
    "old names that are no texts": described(aliases=[1, None]),
    "thousands of old names": described(aliases=[f"n{n}" for n in range(20_000)]),
    "an object elsewhere": described(object="strange_module:node"),
    "a contract that is none": manifest(spec={"nodes": "9.9.9"}),
    "a contract that is no text": manifest(spec={"nodes": 1e308}),
    "a contract of another kind": manifest(spec={"everything": "1.0", "": ""}),
    "texts with signs of terminals": described(summary=ODD, stability=ODD, replacement=ODD),
    "a schema that is a list": described(schema=[[]]),
    "a schema of itself": described(schema={"$ref": "#"}),
    "a schema elsewhere": described(schema={"$ref": "file:///etc/shadow"}),
    "a schema of a page": described(schema={"$ref": "http://127.0.0.1:9/x"}),
    "a schema that is deep": described(schema=json.loads('{"items":' * 200 + "1" + "}" * 200)),
    "a reference to everything": described(refs=[{"kind": "graph", "path": "/*" * 300}]),
    "a reference to a file": described(
        refs=[{"kind": "file", "path": "/x", "default": ["../outside/secret"]}]
    ),
    "secrets that are no texts": described(secrets=[{}], capabilities={"x": 1}),
}


@pytest.fixture
def installed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder of the path with one distribution in it."""
    site = scene.flows.parent / "site"
    (site / INFO).mkdir(parents=True)
    (site / "acme_bad").mkdir()
    (site / INFO / "METADATA").write_text(HEAD)
    (site / INFO / "entry_points.txt").write_text(POINTS)
    (site / INFO / "RECORD").write_text("../outside/secret,,\n")
    (site / "acme_bad/axil-plugin.json").write_text(manifest())
    taken = scene.flows / "taken"
    (site / "acme_bad/__init__.py").write_text(
        f"open({str(taken)!r}, 'w').close()\nclass Bad: ...\n"
    )
    monkeypatch.syspath_prepend(site)
    importlib.invalidate_caches()
    yield site
    sys.modules.pop("acme_bad", None)


def others(registry: Registry) -> set[tuple[str, str, str]]:
    """Return the components of installed distributions that are real."""
    return {
        (each.kind, each.name, each.distribution)
        for each in registry.candidates()
        if each.distribution.startswith("axil-") and "acme" not in each.value
    }


def looked_at(scene: Scene) -> None:
    """Look at all that is installed, in every way that imports nothing, and run a file."""
    flow = scene.node({"type": "passthrough"})
    before = tree(scene.outside)
    out, err = io.StringIO(), io.StringIO()
    commands = (
        ["plugins", "list"],
        ["plugins", "why", str(flow)],
        ["run", str(flow), "--input", "Hello", "--journal", "off", "--no-progress"],
    )
    with (
        observing(scene.outside) as seen,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        registry = Registry(Policy())
        with use_registry(registry):
            codes = [main(each) for each in commands]
            with contextlib.suppress(AxilError):
                registry.names("nodes")
                registry.manifest("acme-bad")
    said = out.getvalue() + err.getvalue()
    assert seen == []
    assert tree(scene.outside) == before
    assert not (scene.flows / "taken").exists()
    assert {"acme_bad", "strange_module"}.isdisjoint(sys.modules)
    assert set(codes) <= {0, 1, 2}, said
    assert CANARY not in said
    assert "Traceback (most recent call last)" not in said, said
    assert not any(sign in said for sign in "\x1b\x07\u202e"), said


@pytest.mark.third
@pytest.mark.parametrize(
    ("place", "name"),
    [
        *((f"{INFO}/METADATA", name) for name in METADATA),
        *((f"{INFO}/entry_points.txt", name) for name in ENTRY_POINTS),
        *(("acme_bad/axil-plugin.json", name) for name in MANIFESTS),
    ],
)
def test_a_hostile_distribution_costs_itself_only(
    scene: Scene, installed: Path, place: str, name: str
):
    usual = others(Registry(Policy()))
    hostile = {"METADATA": METADATA, "entry_points.txt": ENTRY_POINTS}
    text = hostile.get(place.rpartition("/")[2], MANIFESTS)[name]
    (installed / place).write_bytes(text if isinstance(text, bytes) else text.encode())
    importlib.invalidate_caches()
    looked_at(scene)
    registry = Registry(Policy())
    assert others(registry) >= usual
    assert registry.package("axil-control") in ("axil_control", "")
