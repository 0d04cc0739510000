"""Paths of hostile files, in every setting that reads or writes: "it reads files below its own
folder, and writes below ``.axil`` in it, without links that lead out".
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axil_cli.main import main

from .harness import Scene

Setting = Callable[[Scene, str], Path]


def _retriever(**settings: Any) -> Setting:
    def write(scene: Scene, path: str) -> Path:
        made = {key: [path] if value is list else path if value is str else value
                for key, value in settings.items()}  # fmt: skip
        return scene.agent(retrievers=[made])

    return write


def _memory(**settings: Any) -> Setting:
    def write(scene: Scene, path: str) -> Path:
        made = {key: path if value is str else value for key, value in settings.items()}
        return scene.agent(memories=[made])

    return write


def _wrapper(type: str, key: str, *, is_list: bool = False) -> Setting:
    def write(scene: Scene, path: str) -> Path:
        config = {key: [path] if is_list else path}
        return scene.node({"type": "passthrough", "wrappers": [{"type": type, "config": config}]})

    return write


def _store(type: str) -> Setting:
    def write(scene: Scene, path: str) -> Path:
        store = {"type": type, "path": path}
        given = {"type": "store", "store": store, "embedder": "lexical", "paths": ["docs"]}
        return scene.agent(retrievers=[given])

    return write


def _devall(kind: str, key: str, **more: Any) -> Setting:
    def write(scene: Scene, path: str) -> Path:
        value = [{"path": path}] if key == "file_sources" else path
        config = {**more, key: value}
        graph = {
            "id": "team",
            "start": ["w"],
            "memory": [{"name": "notes", "type": kind, "config": config}],
            "nodes": [
                {
                    "id": "w",
                    "type": "agent",
                    "config": {
                        "provider": "openai", "name": "m", "role": "Write.",
                        "base_url": "http://127.0.0.1:9/v1", "api_key": "none",
                        "memories": [{"name": "notes", "top_k": 2}],
                    },
                }
            ],
            "edges": [],
        }  # fmt: skip
        return scene.write({"version": "0.4.0", "graph": graph}, "team.json")

    return write


def _subgraph(scene: Scene, path: str) -> Path:
    return scene.node({"type": "subgraph", "config": {"type": "file", "config": {"path": path}}})


def _image(scene: Scene, path: str) -> Path:
    document = {"text": "Hello", "part": {"type": "image", "path": path}}
    return scene.agent(retrievers=[{"type": "keyword", "documents": [document]}])


READS: dict[str, Setting] = {
    "keyword": _retriever(type="keyword", paths=list),
    "vector": _retriever(type="vector", paths=list),
    "store": _retriever(type="store", store="memory", embedder="lexical", paths=list),
    "skills": _retriever(type="skills", paths=list),
    "image": _image,
    "replay": lambda scene, path: scene.agent(model={"type": "replay", "path": path}),
    "include": _subgraph,
    "reads of a sandbox": _wrapper("sandbox", "reads", is_list=True),
    "devall files": _devall("file", "file_sources"),
}
WRITES: dict[str, Setting] = {
    "file_memory": _memory(type="file_memory", path=str, remember="reply"),
    "facts audit": _memory(
        type="facts", index={"type": "file_memory", "path": ".axil/f.jsonl"}, audit=str
    ),
    "keyword index": _retriever(type="keyword", paths=["docs"], path=str),
    "cache": _wrapper("cache", "directory"),
    "sqlite_vec": _store("sqlite_vec"),
    "devall notes": _devall("simple", "memory_path"),
    "devall index": _devall("file", "index_path", file_sources=[{"path": "docs"}]),
}

MUST = {
    "parent": "../outside/secret",
    "the parent itself": "..",
    "below .axil": ".axil/../../outside/secret",
    "a long way round": "docs/../docs/./../../outside/secret",
    "above the root": "../" * 60 + "{outside}/secret",
    "absolute": "{outside}/secret",
    "two slashes": "//{outside}/secret",
    "a share": "//host/share/secret",
    "link to a folder": "link/secret",
    "link to a file": "linked",
    "link below .axil": ".axil/link/secret",
    "link to a link": "chain/secret",
    "link above": "up/outside/secret",
    "descriptor": "/proc/self/fd/{fd}",
    "descriptor of dev": "/dev/fd/{fd}",
    "working folder": "/proc/self/cwd/../outside/secret",
    "root of the process": "/proc/self/root{outside}/secret",
    "environment": "/proc/self/environ",
    "endless": "/dev/zero",
    "pattern": "../out*/sec*",
    "variable": "${{HOME}}/outside/secret",
    "newline": "{outside}/secret\n",
}
"""Spellings that lead out of the folder: each is refused."""
MAY = {
    "home": "~/outside/secret",
    "home of root": "~root/secret",
    "variable of a shell": "$HOME/outside/secret",
    "url": "file://{outside}/secret",
    "url of one slash": "file:{outside}/secret",
    "NUL": "docs\0/../../outside/secret",
    "NUL at the end": "{outside}/secret\0.txt",
    "wide dots": "．．／outside／secret",
    "division slash": "..∕outside∕secret",
    "percent": "%2e%2e/outside/secret",
    "backslashes": "..\\outside\\secret",
    "share of Windows": "\\\\host\\share\\secret",
    "drive": "C:\\secret",
    "loop of links": "loop/x",
    "too long": "x" * 5_000,
    "too deep": "x/" * 3_000,
    "lone surrogate": "\udcff/../../outside/secret",
    "empty": "",
    "a pipe": "pipe",
    "tabs": "\t../outside/secret",
}
"""Spellings that are no path here, or one inside: refused, or harmless."""


@pytest.fixture
def spelled(scene: Scene):
    links = {
        "link": scene.outside, "linked": scene.outside / "secret", "chain": scene.flows / "link",
        "up": scene.flows.parent, ".axil/link": scene.outside, "loop": scene.flows / "loop",
    }  # fmt: skip
    for name, target in links.items():
        (scene.flows / name).symlink_to(target)
    os.mkfifo(scene.flows / "pipe")
    file = os.open(scene.outside / "secret", os.O_RDONLY)
    yield lambda text: text.format(outside=scene.outside, fd=file)
    os.close(file)


@pytest.mark.parametrize("setting", [*READS, *WRITES])
def test_each_setting_takes_a_path_inside(scene: Scene, setting: str):
    """Else its files would be refused for another reason than their paths."""
    usual = "docs" if setting in READS else ".axil/new"
    path = {"include": "inner.json", "replay": "docs/a.txt", "image": "docs/a.png"}
    scene.write((scene.outside / "inner.json").read_text(), "inner.json")
    (scene.flows / "docs/a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1")
    file = {**READS, **WRITES}[setting](scene, path.get(setting, usual))
    assert main(["check", str(file)]) == 0


@pytest.mark.third
@pytest.mark.parametrize("spelling", MUST)
@pytest.mark.parametrize("setting", [*READS, *WRITES])
def test_a_path_that_leads_out_is_refused(scene: Scene, spelled: Any, setting: str, spelling: str):
    file = {**READS, **WRITES}[setting](scene, spelled(MUST[spelling]))
    scene.refuse(file, ids=("AX117", "AX137", "AX138", "AX855"))


@pytest.mark.third
@pytest.mark.parametrize("spelling", MAY)
@pytest.mark.parametrize("setting", [*READS, *WRITES])
def test_a_path_that_is_odd_leads_nowhere(scene: Scene, spelled: Any, setting: str, spelling: str):
    scene.attack({**READS, **WRITES}[setting](scene, spelled(MAY[spelling])))


@pytest.mark.parametrize("setting", WRITES)
@pytest.mark.parametrize("name", [".axil", ".axil/sub"])
def test_a_folder_for_writing_that_is_a_link_is_not_written_through(
    scene: Scene, setting: str, name: str
):
    """The folder ``.axil`` comes with the file, and may be anything."""
    (scene.flows / ".axil").rmdir()
    if "/" in name:
        (scene.flows / ".axil").mkdir()
    (scene.flows / name).symlink_to(scene.outside)
    scene.refuse(WRITES[setting](scene, f"{name}/new.jsonl"))
