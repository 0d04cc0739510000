"""Each project is built once for all tests: sources do not change meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from axil_build import wheels


@pytest.fixture(scope="session")
def builder():
    """The function that builds wheels for users."""
    return wheels.built


@pytest.fixture(scope="session", autouse=True)
def _built_once(builder, tmp_path_factory):
    kept: dict[Path, Path] = {}

    def built(folders: Mapping[str, Path], into: Path) -> dict[str, Path]:
        new = {name: folder for name, folder in folders.items() if folder not in kept}
        made = builder(new, tmp_path_factory.mktemp("wheels"))
        kept.update({folder: made[name] for name, folder in new.items()})
        return {name: Path(shutil.copy(kept[folder], into)) for name, folder in folders.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wheels, "built", built)
        yield
