"""A scene for each hostile file."""

from __future__ import annotations

from pathlib import Path

import pytest

from .harness import Scene


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PRIVATE_TOKEN", "canary-7714-of-the-environment")
    monkeypatch.chdir(made.flows)
    monkeypatch.syspath_prepend(made.outside)
    return made
