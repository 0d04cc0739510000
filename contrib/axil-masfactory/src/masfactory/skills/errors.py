"""Errors in skills."""

from __future__ import annotations

__all__ = ["InvalidSkillPackageError", "SkillError", "SkillNotFoundError", "SkillParseError"]


class SkillError(Exception):
    """An error in a skill."""


class SkillNotFoundError(SkillError):
    """No folder, or no ``SKILL.md`` in it."""


class InvalidSkillPackageError(SkillError):
    """A folder that is no skill."""


class SkillParseError(SkillError):
    """A ``SKILL.md`` that cannot be read."""
