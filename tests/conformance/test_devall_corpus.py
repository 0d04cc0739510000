"""The workflow files of DevAll: each is read, drawn, and run to its end, or says precisely what it
needs.
"""

from __future__ import annotations

import re

import pytest

from axil import AxilError, SpecError, Workflow
from axil.plugin import CompileOptions
from axil_files import load_spec
from axil_journals import as_mermaid, as_text

from ..internals import internal
from .devall_corpus import (
    CORPUS,
    ENVIRONMENT,
    FILES,
    PAGE,
    between,
    functions,
    outside,
    registry,
    row,
    shown,
    table,
)

BROKEN = {
    "yaml_instance/GameDev_with_manager.yaml": ["AX131"] * 18,
    "yaml_instance/demo_sub_graph.yaml": ["AX114"],
    "yaml_instance/reflexion_product.yaml": ["AX103"],
    "yaml_instance/subgraphs/reflexion_loop.yaml": ["AX103"],
}
"""Files that DevAll cannot run either, and what is wrong with them."""
UNDRAWN = {
    "yaml_instance/demo_sub_graph.yaml",
    "yaml_instance/reflexion_product.yaml",
    "yaml_instance/subgraphs/reflexion_loop.yaml",
}
"""Files whose shape is wrong."""

present = pytest.mark.skipif(not FILES, reason="the corpus is not here")


def name(file):
    return file.relative_to(CORPUS).as_posix()


@present
@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_file_says_the_same_each_time_and_ends_as_the_page_says(file):
    assert row(file) in between(PAGE.read_text("utf-8"), "files").splitlines()


@present
def test_the_page_has_a_line_for_each_file_and_no_other():
    lines = between(PAGE.read_text("utf-8"), "files").splitlines()
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines[2:]] == [
        shown(file) for file in FILES
    ]
    assert lines[:2] == table([]).splitlines()


@present
@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_file_is_drawn_without_keys_functions_and_services(file):
    if name(file) in UNDRAWN:
        with pytest.raises(SpecError):
            internal("sketch").sketched(str(file), registry({}), vars={}, allow_code=False)
        return
    plan = internal("sketch").sketched(str(file), registry({}), vars={}, allow_code=False)
    drawn = "\n".join(as_text(plan))
    assert [node.id for node in plan.graph.spec.nodes if node.id not in drawn] == []
    assert next(iter(as_mermaid(plan))).startswith("flowchart")


@present
@pytest.mark.parametrize("file", FILES, ids=name)
def test_what_a_file_lacks_is_said_with_its_place_before_anything_runs(file):
    """With nothing installed but axil, and no model: what is said names a component, a function, a
    program, a file, or a key.
    """
    using = registry({})
    try:
        spec = load_spec(file, registry=using, environment=ENVIRONMENT)
        options = CompileOptions(registry=using, environment=ENVIRONMENT)
        Workflow(spec, options).plan  # noqa: B018
    except AxilError as error:
        problems = error.problems
    else:
        problems = []
    ids = [problem.id for problem in problems]
    assert set(ids) <= {
        "AX301",
        "AX137",
        "AX850",
        "AX853",
        "AX855",
        "AX856",
        "AX857",
        *BROKEN.get(name(file), ()),
    }
    assert [
        problem
        for problem in problems
        if not re.search(r"\.yaml:\d+|^nodes\[\d+\]$", problem.where)
    ] == []
    assert [
        problem
        for problem in problems
        if not problem.hint and problem.id != "AX131" and problem.id != "AX103"
    ] == []
    assert [each for each in ids if each in ("AX131", "AX114", "AX103")] == BROKEN.get(
        name(file), []
    )


def test_the_page_lists_the_functions():
    assert between(PAGE.read_text("utf-8"), "functions") == functions()


def test_every_function_of_a_module_is_known():
    functions = internal("devall_functions")
    assert {
        each for module in functions.MODULES.values() for each in module
    } <= functions.TOOLS.keys()
    assert outside().keys() >= {("tools", each) for each in functions.TOOLS}
