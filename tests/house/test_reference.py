"""The pages that are made of the code are what the code says."""

from __future__ import annotations

import importlib.util
import re

import pytest

from axil.plugin import COMPONENT_KINDS


def loaded(root, name):
    """Return a module of this folder, which is no package."""
    file = root / f"tests/house/{name}.py"
    spec = importlib.util.spec_from_file_location(f"axil_house_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_plugins_is_current(root):
    reference = loaded(root, "reference")
    assert (root / reference.PAGE).read_text("utf-8") == reference.page(), "make manifests"
    assert set(reference.NAMED) == set(COMPONENT_KINDS)


@pytest.mark.parametrize("door", ["axil", "axil.plugin", "axil.driver"])
def test_the_page_of_a_door_is_current(root, door):
    doors = loaded(root, "doors")
    path, introduction = doors.INTRODUCTIONS[door]
    assert (root / path).read_text("utf-8") == doors.page_of(door, introduction), "make manifests"


def by_name(page: str) -> str:
    """Return a page with the values of each ``Literal`` sorted: two that differ in their order are
    one to ``typing``, which shows the one that was made first in the process.
    """
    return re.sub(
        r"Literal\[([^\[\]]*)\]", lambda found: ", ".join(sorted(found[1].split(", "))), page
    )


def test_the_page_of_packages_is_current(root):
    doors = loaded(root, "doors")
    path, _ = doors.PACKAGES
    kept = (root / path).read_text("utf-8")
    assert by_name(kept) == by_name(doors.pages()[path]), "make manifests"


def test_the_stub_of_a_public_module_is_current(root):
    written = loaded(root, "stubs").stubs()
    assert {
        path for path, text in written.items() if (root / path).read_text("utf-8") != text
    } == set(), "make manifests"


def test_the_typed_keywords_of_settings_are_current(root):
    written = loaded(root, "keywords").keywords()
    assert {
        path for path, text in written.items() if (root / path).read_text("utf-8") != text
    } == set(), "make manifests"


@pytest.mark.parametrize("door", ["axil", "axil.plugin", "axil.driver"])
def test_every_name_of_a_door_has_a_summary_on_its_page(root, door):
    doors = loaded(root, "doors")
    entries = doors.page_of(door, "").split("\n* ")[1:]
    assert [each for each in entries if each.split("\n")[0].endswith("`: ")] == []
