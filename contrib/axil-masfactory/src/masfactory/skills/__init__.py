"""Skills."""

from __future__ import annotations

from masfactory.skills.errors import (
    InvalidSkillPackageError,
    SkillError,
    SkillNotFoundError,
    SkillParseError,
)
from masfactory.skills.loader import load_skill, load_skills
from masfactory.skills.skill import Skill, SkillSet

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
