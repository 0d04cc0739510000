"""A skill: how something is done, in a folder with a ``SKILL.md`` and perhaps other files.

They are read, never run, and only inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from axil.plugin import format_names
from axil_models.tools import Refused

SKILL_FILE: Final = "SKILL.md"
LARGEST_SKILL_BYTES: Final = 128 * 1024
"""A larger file is usually not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One skill."""

    name: str
    description: str
    """Its purpose, for a model that has to choose."""
    folder: Path
    body: str = field(repr=False)
    """The text of its ``SKILL.md`` below the front matter."""
    front: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    """All that its front matter says: ``license``, ``allowed-tools``, ``compatibility`` …"""

    @property
    def allowed_tools(self) -> tuple[str, ...] | None:
        """The tools that it is to be used with; None: it does not say."""
        given: Any = self.front.get("allowed-tools")
        if not given:
            return None
        if isinstance(given, str):
            given = given.replace(",", " ").split()
        return tuple(str(each) for each in given)

    def files(self) -> list[str]:
        """Return the files beside it, as paths below its folder, sorted."""
        return sorted(
            each.relative_to(self.folder).as_posix()
            for each in self.folder.rglob("*")
            if each.is_file() and each.name != SKILL_FILE and _is_inside(each, self.folder)
        )

    def read(self, path: str, most_bytes: int = LARGEST_SKILL_BYTES) -> str:
        """Return a file beside it.

        Raises: Refused: it is not there, not inside the folder, not text, or too large.
        """
        try:
            file = (self.folder / path).resolve()
            if not _is_inside(file, self.folder):
                raise Refused(f'"{path}" leads out of the skill\'s folder.')
            if not file.is_file():
                there = format_names(self.files(), 20) or "none"
                raise Refused(f'the skill "{self.name}" has no file "{path}". Its files: {there}.')
            with file.open("rb") as opened:
                data = opened.read(most_bytes + 1)
        except Refused:
            raise
        except (OSError, ValueError) as error:
            raise Refused(f'"{path}" cannot be read.') from error
        if len(data) > most_bytes:
            raise Refused(f'"{path}" is larger than {most_bytes} bytes.')
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise Refused(f'"{path}" is not text.') from None


def _is_inside(file: Path, folder: Path) -> bool:
    return file.resolve().is_relative_to(folder.resolve())
