"""Laws of advisories: which installed versions they hold for."""

from __future__ import annotations

import json

import pytest

from axil import ConfigError
from axil.plugin import install_advice
from axil_plugins import advisories


def entry(*events: dict[str, str], name: str = "acme-a", **more: object) -> dict[str, object]:
    """Return an entry as OSV has it."""
    package = {"ecosystem": "PyPI", "name": name}
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    affected = {"package": package, "ranges": ranges, "versions": more.pop("versions", [])}
    return {"id": "AXIL-1", "summary": "It tells\nkeys.", "affected": [affected], **more}


def read(tmp_path, *entries: object) -> list[advisories.Advisory]:
    (tmp_path / "known.json").write_text(json.dumps(list(entries)))
    return advisories.read(tmp_path)


@pytest.mark.parametrize(
    ("events", "affected", "free"),
    [
        ([("introduced", "0"), ("fixed", "1.2")], ["0.1.dev1", "1.2rc1", "1.1.9"], ["1.2", "1.10"]),
        ([("introduced", "1.2"), ("last_affected", "1.10")], ["1.2", "1.10"], ["1.1", "1.10.1"]),
        (
            [("fixed", "3"), ("introduced", "2"), ("fixed", "1"), ("introduced", "0")],
            ["0.5", "2.1"],
            ["1.0", "3.0"],
        ),
        ([("introduced", "0")], ["9"], []),
    ],
)
def test_a_version_is_affected_between_its_events(tmp_path, events, affected, free):
    (known,) = read(tmp_path, entry(*({what: version} for what, version in events)))
    assert [version for version in affected if not known.affects(version)] == []
    assert [version for version in free if known.affects(version)] == []


def test_what_is_withdrawn_or_of_another_ecosystem_is_no_advisory(tmp_path):
    other = entry({"introduced": "0"})
    other["affected"][0]["package"]["ecosystem"] = "npm"
    assert read(tmp_path, entry(withdrawn="2026-01-01T00:00:00Z"), other) == []


@pytest.mark.parametrize("text", ["{", "[1]", '{"affected": [{}]}'])
def test_what_is_no_advisory_is_refused(tmp_path, text):
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(ConfigError, match=r"AX738 .*known\.json"):
        advisories.read(tmp_path / "known.json")


def test_the_doctor_names_what_is_installed_and_affected(world, axil, tmp_path):
    world.distribution("acme-a", "1.1", nodes={"acme.tick": "m:T"})
    world.distribution("acme-b", "1.1", nodes={"acme.tock": "m:T"})
    events = {"introduced": "0"}, {"fixed": "1.2"}
    entries = [entry(*events, name="Acme_A"), entry(name="acme-b", versions=["1.0"])]
    file = tmp_path / "known.json"
    file.write_text(json.dumps([*entries, entry(*events, name="acme-not-here")]))
    done = axil("plugins", "doctor", "--advisories", file, "--format", "json")
    found = [each for each in done.data["findings"] if each["check"] == "advisory"]
    assert done.code == 2
    assert [(each["distribution"], each["severity"]) for each in found] == [("acme-a", "error")]
    assert found[0]["message"] == "1.1 has a known weakness, AXIL-1: It tells keys."
    assert found[0]["fix"] == install_advice("acme-a>=1.2", how="upgrade")


def test_those_that_are_shipped_can_be_read():
    assert all(each.id for each in advisories.shipped())
