"""Files that people wrote for another engine: each loads unmodified, or says precisely what is
wrong with it.

The files are not part of the project. Where they are not at hand, these tests are passed over.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from axil import SpecError
from axil.plugin import Policy, Registry, default_registry
from axil_files import (
    LoadOptions,
    dump_spec,
    include_spec,
    load_spec,
    parse_json,
    parse_yaml,
    spec_from_document,
)
from axil_testing.specs import without_places

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "chatdev_yaml"
FILES = sorted(CORPUS.rglob("*.yaml")) if CORPUS.is_dir() else []
ENVIRONMENT = dict.fromkeys(
    ("BASE_URL", "API_KEY", "MODEL_NAME", "MEM0_API_KEY"), "set by the test"
)

BROKEN = {
    "yaml_instance/demo_sub_graph.yaml": ["AX114 {}:30 nodes[1].config.config: no start"],
    "yaml_instance/subgraphs/reflexion_loop.yaml": [
        "AX103 {}:14 memory[0].config: expected a mapping, found nothing."
    ],
}
"""Faults of files that DevAll cannot run either."""

INCLUDED = {
    "yaml_instance/demo_sub_graph_path.yaml": "subgraphs/article_discuss.yaml",
    "patched_for_offline/reflexion_product.yaml": "subgraphs/reflexion_loop.yaml",
}

pytestmark = pytest.mark.skipif(not FILES, reason="the corpus is not here")


def registry() -> Registry:
    made = Registry(Policy(), [])
    made.register("loaders", "yaml", parse_yaml)
    for name in ("condition", "context_window", "is_majority_voting"):
        made.register("shorthands", name, default_registry().resolve("shorthands", name))
    return made


def relative(file: Path) -> str:
    return file.relative_to(CORPUS).as_posix()


@pytest.mark.parametrize("file", FILES, ids=relative)
def test_a_file_loads_or_says_what_is_wrong_with_it(file):
    expected = BROKEN.get(relative(file))
    if expected is not None:
        with pytest.raises(SpecError) as caught:
            load_spec(file, registry=default_registry(), environment=ENVIRONMENT)
        # no node type is known here
        found = [line for line in str(caught.value).splitlines() if not line.startswith("AX301")]
        assert [
            line.startswith(start.format(file)) for line, start in zip(found, expected, strict=True)
        ] == [True] * len(expected)
        return
    spec = load_spec(file, registry=registry(), environment=ENVIRONMENT)
    assert all(node.place is not None and node.place.line for node in spec.nodes)
    again = spec_from_document(
        parse_json(json.dumps(dump_spec(spec)), "again.json"),
        LoadOptions(environment=ENVIRONMENT, registry=registry()),
    )
    assert without_places(again) == without_places(spec)
    assert again.digest() == spec.digest()


@pytest.mark.parametrize("name", INCLUDED)
def test_a_file_finds_what_it_includes(name):
    spec = load_spec(CORPUS / name, registry=registry(), environment=ENVIRONMENT)
    inner = include_spec(
        INCLUDED[name],
        spec.extras,
        registry=registry(),
        reading=LoadOptions(environment=ENVIRONMENT, registry=registry()),
    )
    assert inner.nodes


def test_without_its_variables_a_file_names_each_of_them():
    with pytest.raises(SpecError) as caught:
        load_spec(
            CORPUS / "yaml_instance" / "demo_loop_timer.yaml", registry=registry(), environment={}
        )
    assert (
        "demo_loop_timer.yaml:18 nodes[0].config.base_url: there is no value for ${BASE_URL}, nor "
        "at line 34." in str(caught.value)
    )
