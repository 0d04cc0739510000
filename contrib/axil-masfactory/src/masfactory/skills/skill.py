"""Skills: how something is done, in a folder with a ``SKILL.md``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from masfactory.core.multimodal import MediaAsset

MOST_CHARACTERS = 4096
_TEXTS = (".md", ".markdown", ".txt")
_PLACE = re.compile(r"\{([^\W\d]\w*|\d+)\}")


@dataclass(frozen=True)
class Skill:
    """One skill."""

    name: str
    description: str | None
    body: str
    skill_dir: Path
    skill_md_path: Path
    frontmatter: dict[str, Any] = field(default_factory=dict[str, Any])
    examples: list[Path] = field(default_factory=list[Path])
    templates: list[Path] = field(default_factory=list[Path])
    references: list[Path] = field(default_factory=list[Path])
    scripts: list[Path] = field(default_factory=list[Path])
    media: list[MediaAsset] = field(default_factory=list[MediaAsset])
    raw_markdown: str = ""

    __node_template_scope__ = "shared"

    @property
    def source_path(self) -> str:
        """Its folder."""
        return str(self.skill_dir)

    @property
    def media_assets(self) -> list[MediaAsset]:
        """Its images and documents."""
        return list(self.media)

    def metadata(self) -> dict[str, object]:
        """Give what it is, in short."""
        return {
            "name": self.name,
            "description": self.description,
            "source_path": self.source_path,
            "media_count": len(self.media),
        }

    def render_section(self) -> str:
        """Give it as a part of instructions, with its first template and its first example."""
        parts = [f"## Skill: {self.name}"]
        if self.description:
            parts.append(f"Description: {self.description}")
        parts.append(self.body.strip())
        for label, files in (("Template", self.templates), ("Example", self.examples)):
            parts.append(self.render_supporting_files(label, files) or "")
        return "\n\n".join(part for part in parts if part)

    def render_supporting_files(self, label: str, paths: list[Path]) -> str | None:
        """Give the first of these files, if it is a text; None: there is none."""
        texts = [path for path in paths[:1] if path.suffix.lower() in _TEXTS]
        parts: list[str] = []
        for path in texts:
            text = path.read_text("utf-8").strip()
            whole = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}\n..."
            parts.append(f"### {label}: {path.name}\n{whole}")
        return "\n\n".join(parts) or None


@dataclass(frozen=True)
class SkillSet:
    """Several skills."""

    skills: list[Skill] = field(default_factory=list[Skill])

    def __iter__(self) -> Any:
        return iter(self.skills)

    def __len__(self) -> int:
        return len(self.skills)

    @property
    def media_assets(self) -> list[MediaAsset]:
        """The images and documents of all."""
        return [asset for skill in self.skills for asset in skill.media_assets]

    def metadata(self) -> list[dict[str, object]]:
        """Give what they are, in short."""
        return [skill.metadata() for skill in self.skills]

    def render_instructions(self) -> str:
        """Give all as a part of instructions; empty: there are none."""
        sections = [skill.render_section() for skill in self.skills]
        return "\n\n".join(["[Loaded Skills]", *sections]) if sections else ""

    def compose(self, base_instructions: str) -> str:
        """Give instructions with all behind them."""
        return "\n\n".join(part for part in (base_instructions, self.render_instructions()) if part)


def instructions_of(instructions: str | list[str], skills: Sequence[Skill]) -> str:
    """Give instructions with the skills behind them, whose braces are text."""
    own = instructions if isinstance(instructions, str) else "\n".join(instructions)
    if not skills:
        return own
    reported = _PLACE.sub(r"{{\1}}", SkillSet(list(skills)).render_instructions())
    return f"{own}\n\n{reported}"
