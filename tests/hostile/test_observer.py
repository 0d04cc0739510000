"""The observer of the hostile files sees what is let through."""

from __future__ import annotations

import pytest

from .harness import Scene
from .test_widening import PLACES, WANTED


@pytest.mark.parametrize(
    ("wanted", "word"),
    [("reads", "read"), ("writes", "write"), ("keeps results", "write"), ("imports", "code")],
)
def test_what_was_granted_is_seen(scene: Scene, wanted: str, word: str):
    file = scene.node(WANTED[wanted])
    with pytest.raises(AssertionError):
        scene.attack(file, "--allow", word)


@pytest.mark.parametrize("place", PLACES)
def test_every_place_is_reached(scene: Scene, place: str):
    """Each is refused for what the node wants, and not for how the file is written."""
    said = scene.refuse(PLACES[place](scene, WANTED["writes"]))
    assert "AX137" in said.ids, said.text
