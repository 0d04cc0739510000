"""Skills: how something is done, in a folder with a ``SKILL.md``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axil import AxilError
from axil_context import Skills

_PLACE = re.compile(r"\{([^\W\d]\w*|\d+)\}")


class SkillError(Exception):
    """An error in a skill."""


class SkillNotFoundError(SkillError):
    """No folder, or no ``SKILL.md`` in it."""


class InvalidSkillPackageError(SkillError):
    """A folder that is no skill."""


class SkillParseError(SkillError):
    """A ``SKILL.md`` that cannot be read."""


@dataclass
class Skill:
    """One skill."""

    name: str
    description: str | None
    body: str
    skill_dir: Path
    skill_md_path: Path
    frontmatter: dict[str, Any] = field(default_factory=dict[str, Any])
    templates: list[Path] = field(default_factory=list[Path])
    examples: list[Path] = field(default_factory=list[Path])
    references: list[Path] = field(default_factory=list[Path])
    scripts: list[Path] = field(default_factory=list[Path])

    __node_template_scope__ = "shared"

    @property
    def rendered(self) -> str:
        """The skill as a part of instructions, with its first template and its first example."""
        parts = [f"## Skill: {self.name}"]
        if self.description:
            parts.append(f"Description: {self.description}")
        parts.append(self.body.strip())
        for title, files in (("Template", self.templates), ("Example", self.examples)):
            for file in files[:1]:
                parts.append(f"### {title}: {file.name}\n{file.read_text('utf-8')[:4096]}")
        return "\n\n".join(part for part in parts if part)


@dataclass
class SkillSet:
    """Several skills."""

    skills: list[Skill] = field(default_factory=list[Skill])

    def __iter__(self) -> Any:
        return iter(self.skills)

    def __len__(self) -> int:
        return len(self.skills)


def load_skill(skill_dir: str | Path) -> Skill:
    """Read the skill in a folder, as ``axil_context.Skills`` does.

    Raises: SkillNotFoundError: there is none; SkillParseError: it cannot be read.
    """
    folder = Path(skill_dir)
    if not (folder / "SKILL.md").is_file():
        raise SkillNotFoundError(
            f'skill "{folder}": found no SKILL.md, expected one. Give the folder that holds it.'
        )
    try:
        (found,) = Skills(paths=[str(folder)]).skills().values()
    except AxilError as error:
        raise SkillParseError(str(error)) from error
    files = {
        part: sorted(each for each in (folder / part).rglob("*") if each.is_file())
        for part in ("templates", "examples", "references", "scripts")
    }
    return Skill(
        found.name,
        found.description,
        found.body,
        folder,
        folder / "SKILL.md",
        dict(found.front),
        **files,
    )


def load_skills(skill_dirs: Iterable[str | Path]) -> list[Skill]:
    """Read several skills. Raises: as ``load_skill``."""
    return [load_skill(each) for each in skill_dirs]


def instructions_of(instructions: str | list[str], skills: Sequence[Skill]) -> str:
    """Give the instructions with the skills behind them, whose braces are text."""
    own = instructions if isinstance(instructions, str) else "\n".join(instructions)
    if not skills:
        return own
    reported = _PLACE.sub(r"{{\1}}", "\n\n".join(skill.rendered for skill in skills))
    return f"{own}\n\n[Loaded Skills]\n\n{reported}"
