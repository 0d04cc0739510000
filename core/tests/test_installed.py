"""Entry points of what is installed: whose, in which order, and what a broken distribution
costs.
"""

from __future__ import annotations

import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from axil.registry.registry import Registry


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Folders on ``sys.path``, the first first, and nothing else there."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder) for folder in folders])
    return folders


def put(
    folder: Path,
    name: str,
    points: str | None,
    suffix: str = "-1.0.dist-info",
    metadata: str = "METADATA",
) -> None:
    info = folder / (name + suffix)
    info.mkdir(parents=True)
    if points is not None:
        (info / "entry_points.txt").write_text(points)
    if metadata:
        (info / metadata).write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")


def found() -> list[tuple[str, str, str]]:
    registry = Registry()
    components = registry.candidates()
    assert not registry.unreadable
    return [(f"axil.{each.kind}", each.name, each.value) for each in components]


def test_everything_that_is_installed_here_is_read_as_its_library_reads_it():
    theirs = {
        (each.group, each.name, each.value)
        for distribution in metadata.distributions()
        for each in distribution.entry_points
        if each.group.startswith("axil.") and each.group != "axil.plugin"
    }
    assert len(theirs) > 5
    assert set(found()) == theirs


def test_of_one_name_however_it_is_spelled_the_first_on_the_path_is_read(path):
    put(path[0], "acme.Clocks", "[axil.nodes]\ntick = new:Tick")
    put(path[1], "acme_clocks", "[axil.nodes]\ntick = old:Tick\ntock = old:Tock")
    assert found() == [("axil.nodes", "tick", "new:Tick")]


def test_a_distribution_without_entry_points_hides_one_of_its_name_behind_it(path):
    put(path[0], "acme", None)
    put(path[1], "acme", "[axil.nodes]\ntick = old:Tick")
    assert found() == []


def test_what_an_interrupted_removal_left_hides_nothing(path):
    put(path[0], "acme", None, metadata="")
    put(path[1], "acme", "[axil.nodes]\ntick = acme:Tick")
    assert found() == [("axil.nodes", "tick", "acme:Tick")]


@pytest.mark.parametrize(
    "suffix", [".egg-info", "-1.0-py3.11.egg-info", "-1.0-py3.11.egg/EGG-INFO"]
)
def test_older_forms_of_metadata_are_read(path, monkeypatch, suffix):
    put(path[0], "acme", "[axil.nodes]\ntick = acme:Tick", suffix, metadata="PKG-INFO")
    if suffix.endswith("EGG-INFO"):
        monkeypatch.setattr(sys, "path", [str(path[0] / "acme-1.0-py3.11.egg"), *sys.path])
    assert found() == [("axil.nodes", "tick", "acme:Tick")]


def test_a_file_in_place_of_a_folder_has_no_entry_points(path):
    (path[0] / "acme-1.0.egg-info").write_text("Metadata-Version: 1.0\nName: acme\nVersion: 1.0\n")
    assert found() == []


def test_an_archive_on_the_path_is_read(path, monkeypatch):
    archive = path[0] / "acme.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr(
            "acme-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n"
        )
        made.writestr("acme-1.0.dist-info/entry_points.txt", "[axil.nodes]\ntick = acme:Tick\n")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    assert found() == [("axil.nodes", "tick", "acme:Tick")]


def test_only_our_groups_are_read_with_comments_and_blanks_left_out(path):
    others, ours = (
        "[console_scripts]\naxil.x = a:b\n\n",
        "[axil.nodes]\n# no = a:b\n  tick=acme:Tick [fast]\n\n",
    )
    put(path[0], "acme", f"{others}{ours}[axilotl]\nx = a:b\n")
    assert found() == [("axil.nodes", "tick", "acme:Tick [fast]")]


def test_what_cannot_be_read_is_reported_and_costs_only_itself(path):
    put(path[0], "acme", "[axil.nodes]\ngarbage")
    put(path[0], "brass", "[axil.nodes]\ntick = brass:Tick")
    (path[1] / "clay-1.0.dist-info").mkdir()
    (path[1] / "clay-1.0.dist-info" / "entry_points.txt").write_bytes(b"[axil.nodes]\n\xff = a:b")
    registry = Registry()
    assert registry.names("nodes") == ("tick",)
    assert len(registry.unreadable) == 2
    acme, clay = sorted(registry.unreadable)
    assert "acme-1.0.dist-info: TypeError" in acme
    assert "clay-1.0.dist-info: UnicodeDecodeError" in clay
