"""Skills: folders with instructions that a model reads when it needs them.

A skill is a folder with a ``SKILL.md``: a header between lines of three dashes with ``name``,
``description`` and perhaps ``allowed-tools``, then instructions. The model gets names and
descriptions, activates a skill to read its instructions, and may read its other files. While a
skill with ``allowed-tools`` is active, other tools refuse. Nothing in a skill is run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, cast

from axil import AxilError, Problem, SpecError
from axil.plugin import Registry, did_you_mean, format_names
from axil_models import SKILL_FILE, Refused, Skill, Tool, tool_of

FOLDER: Final = Path(".agents") / "skills"
_FENCE: Final = "---"


class SkillSet:
    """The skills of an agent."""

    def __init__(self, skills: Sequence[Skill]) -> None:
        self.skills = {skill.name: skill for skill in skills}

    @property
    def introduction(self) -> str:
        """The introduction of the skills for the model."""
        lines = [f"- {skill.name}: {skill.description}" for skill in self.skills.values()]
        head = (
            "You have skills: instructions for special tasks. Activate the one that fits with "
            "activate_skill before you use it."
        )
        return "\n".join([head, *lines]) if lines else ""

    def around(self, tools: Sequence[Tool]) -> list[Tool]:
        """Return the tools, as the active skill allows them, and those of the skills themselves."""
        active: list[Skill] = []

        def activate_skill(skill_name: str) -> str:
            """Activate a skill and read its instructions."""
            skill = self._known(skill_name)
            active[:] = [skill]
            return skill.body

        def read_skill_file(skill_name: str, relative_path: str) -> str:
            """Read another file of a skill."""
            return self._known(skill_name).read(relative_path)

        own = [replace(tool_of(activate_skill), recorded=False), tool_of(read_skill_file)]
        return [*(_restricted(tool, active) for tool in tools), *own]

    def _known(self, name: str) -> Skill:
        if name not in self.skills:
            raise Refused(
                f'there is no skill "{name}". {did_you_mean(name, self.skills)} There are '
                f"{format_names(list(self.skills), 20)}."
            )
        return self.skills[name]


def _restricted(tool: Tool, active: Sequence[Skill]) -> Tool:
    data = {each.name: getattr(tool, each.name) for each in fields(Tool)}
    return RestrictedTool(**data, inner=tool, active=active)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestrictedTool(Tool):
    """A tool that refuses while a skill is active that does not allow it."""

    inner: Tool
    active: Sequence[Skill]

    async def __call__(self, arguments: Mapping[str, Any], ctx: Any = None) -> Any:
        """Return the result of the tool. Raises: Refused; and the tool's own errors."""
        skill = self.active[0] if self.active else None
        allowed = None if skill is None else skill.allowed_tools
        if skill is not None and allowed is not None and self.name not in allowed:
            raise Refused(
                f'the active skill "{skill.name}" is used without this tool; it allows '
                f"{format_names(list(allowed), 20) or 'none'}."
            )
        return await self.inner(arguments, ctx)


# --------------------------------------------------------------------------------------------------


def found_skills(
    allow: Iterable[str],
    folders: Iterable[str | os.PathLike[str]],
    registry: Registry,
    where: str = "",
) -> SkillSet:
    """Return the skills in ``.agents/skills`` of ``folders``, the first of each name; ``allow``:
    only these; none: all.

    Raises: SpecError (AX856): one that is named is not there, or its header cannot be read.
    """
    real = dict.fromkeys(os.path.realpath(folder) for folder in folders if folder)
    places = [Path(folder) / FOLDER for folder in real]
    there: dict[str, Path] = {}
    for place in places:
        for file in sorted(place.glob(f"*/{SKILL_FILE}")) if place.is_dir() else ():
            there.setdefault(file.parent.name, file)
    wanted = list(dict.fromkeys(allow)) or list(there)
    missing = [name for name in wanted if name not in there]
    if missing:
        nouns = "are no skills" if len(missing) > 1 else "is no skill"
        looked = " or ".join(map(str, places)) or "no folder"
        hint = f"Put a folder of that name with a SKILL.md into {looked}."
        raise SpecError(Problem("AX856", where, f"there {nouns} {format_names(missing)}.", hint))
    return SkillSet([_skill(name, there[name], registry, where) for name in wanted])


def _skill(name: str, file: Path, registry: Registry, where: str) -> Skill:
    try:
        head, body = _split(file.read_text("utf-8"))
        parsed: Any = registry.resolve("loaders", "yaml", where)(head, str(file)).data
    except (OSError, UnicodeDecodeError, AxilError) as error:
        raise SpecError(Problem("AX856", where, f"{file} cannot be read: {error}")) from error
    header = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    if not header.get("description"):
        hint = "Begin it with ---, name: …, description: …, ---."
        raise SpecError(Problem("AX856", where, f"{file} has no description.", hint))
    description = str(header["description"]).strip()
    return Skill(
        name=name, description=description, folder=file.parent, body=body.strip(), front=header
    )


def _split(text: str) -> tuple[str, str]:
    """Return header and body of a ``SKILL.md``."""
    lines = text.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != _FENCE:
        return "{}", text
    end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == _FENCE), len(lines))
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :])
