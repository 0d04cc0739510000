"""Each project is built once for all tests, and each installed distribution is packed once: they do
not change meanwhile. Of the environments that builds are proved in, pip installs the first; in the
others the wheels are unpacked.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from axil_plugins.builds import verify, wheels


@pytest.fixture(scope="session")
def afresh():
    """The functions that make wheels for users, by their names."""
    return {name: getattr(wheels, name) for name in ("built", "_packed")}


@pytest.fixture(scope="session", autouse=True)
def _made_once(afresh, tmp_path_factory):
    kept: dict[Path, Path] = {}

    def built(folders: Mapping[str, Path], into: Path) -> dict[str, Path]:
        new = {name: folder for name, folder in folders.items() if folder not in kept}
        made = afresh["built"](new, tmp_path_factory.mktemp("wheels"))
        kept.update({folder: made[name] for name, folder in new.items()})
        return {name: Path(shutil.copy(kept[folder], into)) for name, folder in folders.items()}

    def packed(name: str, metadata: Any, into: Path) -> Path:
        place = Path(metadata.locate_file(name))
        if place not in kept:
            kept[place] = afresh["_packed"](name, metadata, tmp_path_factory.mktemp("wheels"))
        return Path(shutil.copy(kept[place], into))

    by_pip, proved = verify._installed, list[Path]()

    def installed(folder: Path, locked: Sequence[wheels.Wheel]) -> Path:
        proved.append(folder)
        if len(proved) == 1:
            return by_pip(folder, locked)
        place = folder / "env"
        venv.create(place, with_pip=False)
        site = sysconfig.get_path("purelib", vars={"base": str(place)})
        for each in locked:
            with zipfile.ZipFile(each.path) as archive:
                archive.extractall(site)
        return place / ("Scripts" if sys.platform == "win32" else "bin") / "python"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "_installed", installed)
        patch.setattr(wheels, "built", built)
        patch.setattr(wheels, "_packed", packed)
        yield
