"""The reading of skills: ``axil_context.Skills``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from axil import AxilError
from axil_context import Skills
from masfactory.core.multimodal import ImageAsset, MediaAsset, PdfAsset
from masfactory.skills.errors import (
    InvalidSkillPackageError,
    SkillNotFoundError,
    SkillParseError,
)
from masfactory.skills.skill import Skill


def load_skill(path: str | Path) -> Skill:
    """Read the skill in a folder, or of its ``SKILL.md``.

    Raises: SkillNotFoundError: there is none; InvalidSkillPackageError: it is no folder, or names
    media that are not there; SkillParseError: it cannot be read.
    """
    folder = Path(path)
    if folder.name == "SKILL.md":
        folder = folder.parent
    if folder.is_file():
        raise InvalidSkillPackageError(f'skill "{folder}": found a file. Give the folder.')
    if not (folder / "SKILL.md").is_file():
        raise SkillNotFoundError(
            f'skill "{folder}": found no SKILL.md, expected one. Give the folder that holds it.'
        )
    try:
        (found,) = Skills(paths=[str(folder)]).skills().values()
    except AxilError as error:
        raise SkillParseError(str(error)) from error
    front = dict(found.front)
    parts = {part: _files(folder / part) for part in ("examples", "scripts")}
    templates = sorted(each for each in folder.glob("*.md") if each.name != "SKILL.md")
    named = {*templates, folder / "SKILL.md", *(each for files in parts.values() for each in files)}
    return Skill(
        found.name,
        found.description,
        found.body.strip(),
        folder,
        folder / "SKILL.md",
        front,
        media=_media(folder, front.get("media")),
        raw_markdown=(folder / "SKILL.md").read_text("utf-8"),
        templates=templates,
        references=[each for each in _files(folder) if each not in named],
        **parts,
    )


def load_skills(paths: Iterable[str | Path]) -> list[Skill]:
    """Read several skills. Raises: as ``load_skill``."""
    return [load_skill(each) for each in paths]


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


def _media(folder: Path, named: Any) -> list[MediaAsset]:
    """Return the images and documents that a skill names, of its folder."""
    several = cast("list[Any]", named) if isinstance(named, list) else [named] if named else []
    found: list[MediaAsset] = []
    for each in several:
        given = cast("dict[str, Any]", each).get("path") if isinstance(each, dict) else each
        path = (folder / str(given)).resolve()
        if not path.is_file() or not path.is_relative_to(folder.resolve()):
            raise InvalidSkillPackageError(
                f'skill "{folder}": there is no file "{given}" in it. Correct media.'
            )
        kind = PdfAsset if path.suffix.lower() == ".pdf" else ImageAsset
        found.append(kind.from_path(path))
    return found
