"""Skills."""

from __future__ import annotations

from masfactory.skills.skill import (
    InvalidSkillPackageError,
    Skill,
    SkillError,
    SkillNotFoundError,
    SkillParseError,
    SkillSet,
    load_skill,
    load_skills,
)

__all__ = [
    "InvalidSkillPackageError",
    "Skill",
    "SkillError",
    "SkillNotFoundError",
    "SkillParseError",
    "SkillSet",
    "load_skill",
    "load_skills",
]
