"""Laws of what the check proves: it finds each planted fault, at its place, and no other."""

from __future__ import annotations

import pytest
from tests.integration.planted import PLANTED, Planted

from axil.plugin import default_registry
from axil_files import load
from axil_journals import check_workflow

PROOFS = {f"AX{n}" for n in range(179, 191)}


def found(planted: Planted, folder) -> list[tuple[str, str, str, str]]:
    """Return what the check proves of a planted fault."""
    if planted.graph is not None:
        made = planted.graph
        result = check_workflow(lambda: made().build(), default_registry())
    else:
        path = folder / "flow.yaml"
        path.write_text(planted.file)
        result = check_workflow(lambda: load(path), default_registry())
    assert result.is_fine, result.problems
    return [(each.id, each.where, each.message, each.hint) for each in result.problems]


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_at_its_place_and_nothing_else(name, tmp_path):
    planted = PLANTED[name]
    [(id, where, message, hint)] = found(planted, tmp_path)
    assert id == planted.id
    assert planted.where in where
    assert planted.says in message
    assert hint


def test_there_are_forty_faults_of_each_kind_of_finding():
    assert len(PLANTED) >= 40
    assert {planted.id for planted in PLANTED.values()} == PROOFS
