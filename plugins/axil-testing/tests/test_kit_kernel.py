"""The kernel's own components pass the kit, and the kit as a program says so."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from axil_journals import MemoryJournal
from axil_testing.kit import JournalKit, Kit, check
from axil_testing.kit.whole import (
    KITS,
    claims_of,
    examine,
    examples_of,
    kit_of,
    kits_for,
    lines,
    main,
)


@pytest.mark.parametrize(
    ("kit", "why"), [pytest.param(kit, why, id=about) for about, kit, why in kits_for("axil-core")]
)
def test_the_kernels_components_pass(kit, why):
    if kit is None:
        pytest.skip(why)
    assert [(each.law, each.reason) for each in check(kit).failures] == []


class TestMemory(JournalKit):
    shared = True
    component = MemoryJournal


def test_the_program_says_what_holds(capsys):
    assert main(["axil-testing"]) == 0
    assert "axil-testing: " in capsys.readouterr().out
    assert main(["axil-testing", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["distribution"], said["fine"]) == ("axil-testing", True)


def test_a_missing_distribution_is_reported(capsys):
    assert main(["acme-nothing"]) == 2
    assert 'no plugin is called "acme-nothing"' in capsys.readouterr().err


def test_a_component_that_breaks_a_law_is_in_the_report(monkeypatch):
    from axil.plugin import Policy, Registry

    class Dist:
        name, version, requires, metadata = "acme-bad", "1.0", (), None

    class Entry:
        group, name, value, dist = "axil.conditions", "acme.bad", "os:getcwd", Dist()

    reports = examine("acme-bad", Registry(Policy(), [Entry()]))
    assert [report.kit for report in reports] == ["acme-bad", "conditions:acme.bad"]
    assert not reports[1].is_fine
    assert any("FAIL  conditions:acme.bad" in line for line in lines(reports))


@pytest.mark.parametrize(
    ("kind", "name", "can_be_written"),
    [
        ("protocols", "ag-ui", True),
        ("protocols", "acme.ag-ui", True),
        ("protocols", "AG-UI", False),
        ("options", "run.no-cache", True),
        ("conditions", "acme.is_long", True),
        ("conditions", "acme.is-long", False),
    ],
)
def test_names_have_hyphens_where_they_are_written_on_command_lines(kind, name, can_be_written):
    from axil.plugin import Policy, Registry

    dist = SimpleNamespace(name="acme-names", version="1.0", requires=(), metadata=None)
    entry = SimpleNamespace(group=f"axil.{kind}", name=name, value="os:getcwd", dist=dist)
    kits = kits_for("acme-names", Registry(Policy(), [entry]))
    law = "it has names that can be written"
    assert check(next(kits)[1], law).is_fine == can_be_written


def test_claims_are_capabilities_that_the_kit_knows():
    class Journal:
        capabilities = ("durable", "fast")

    class Context(Kit):
        searches = True

    class Silent:
        capabilities = ("not_searches",)

    assert claims_of(Journal, JournalKit) == {"durable": True}
    assert claims_of(Silent, Context) == {"searches": False}


def test_examples_come_from_the_schema_the_class_or_nothing():
    from pydantic import BaseModel

    class Needs:
        class Config(BaseModel, extra="forbid"):
            n: int

        def __init__(self, config: Config) -> None: ...

    class Gives(Needs):
        examples = ({"n": 1},)

    class Schema(Needs):
        class Config(BaseModel, extra="forbid", json_schema_extra={"examples": [{"n": 2}]}):
            n: int

    class Free:
        pass

    assert [examples_of(each) for each in (Needs, Gives, Schema, Free)] == [
        [],
        [{"n": 1}],
        [{"n": 2}],
        [{}],
    ]


def test_every_kit_is_there_or_another_distributions():
    assert all(issubclass(kit_of(kind), Kit) for kind in (*KITS, "wrappers"))
    assert kit_of("wrappers") is Kit
