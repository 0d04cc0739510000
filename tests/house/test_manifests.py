"""Manifests are generated, and every member's is current: what is read is what would be
imported.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.internals import internal

from axil.plugin import MANIFEST_FILE, Policy, Registry, component_index

sys.path.insert(0, str(Path(__file__).parent))
from manifests import PLACES, template_with_manifest

manifests, survey = internal("manifests"), internal("survey")

MEND = "axil plugins manifest {name} --write"


@pytest.fixture(scope="module")
def registry():
    return Registry(Policy())


def test_the_manifest_of_a_member_is_current(member, registry):
    if not member.has_code:
        return
    written = (member.package / MANIFEST_FILE).read_text("utf-8")
    assert written == manifests.as_text(
        manifests.manifest_of(member.name, registry, member.project["description"])
    ), MEND.format(name=member.name)


@pytest.mark.parametrize("kind", internal("scaffold").TEMPLATES)
def test_the_manifest_of_a_template_is_current(kind):
    assert (PLACES / f"{kind}.txt").read_text("utf-8") == template_with_manifest(kind), (
        "make manifests"
    )


def test_nothing_of_a_manifest_names_this_machine(member, root):
    if member.has_code:
        assert str(root) not in (member.package / MANIFEST_FILE).read_text("utf-8")


def test_every_component_of_ours_has_a_summary_and_can_be_used(member, registry):
    own = [row for row in survey.rows(registry) if row["distribution"] == member.name]
    assert [
        f"{row['kind']}:{row['name']}"
        for row in own
        if not row["summary"] and row["kind"] != "reducers"
    ] == []
    assert {row["status"] for row in own} <= {"ok"}


def test_every_component_of_ours_is_in_the_shipped_index(member):
    if member.name == "axil-core" or member.folder.parent.name == "contrib":
        return
    missing = {
        f"{group.removeprefix('axil.')}:{name}"
        for group, table in member.entry_points.items()
        for name in table
        if group != "axil.plugin"
        and component_index().get(f"{group.removeprefix('axil.')}:{name}") != member.name
    }
    assert missing == set()


def test_what_is_needed_is_known_from_manifests_alone(registry):
    said = survey.component("nodes:agent", registry)
    assert {ref["kind"] for ref in said["refs"]} == {"models", "formatters", "tools", "context"}
    assert said["secrets"] == ["/api_key"]
