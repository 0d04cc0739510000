"""``context:skills``: how things are done, in folders with a ``SKILL.md``.

A prompt holds only names and descriptions; the model reads a skill when it wants it, and the files
beside it, through two tools. Files are read, never run, and only inside the skill's folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from pydantic import Field

from axil.plugin import ReadPath, current_grants, did_you_mean, format_names
from axil_models import (
    LARGEST_SKILL_BYTES,
    SKILL_FILE,
    ContextBlock,
    ContextError,
    ContextQuery,
    ProviderSettings,
    Refused,
    Skill,
    Tool,
    call_async,
    decoded_settings,
)

if TYPE_CHECKING:
    from axil_context.keywords import SkillsKeywords

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FRONT = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?(.*)\Z", re.DOTALL | re.MULTILINE
)
_DEEPEST = 20
"""Levels of front matter."""
_HEAD = (
    "Skills: how some things are done well. "
    "Before you do one of them, read its skill with read_skill(name)."
)


class SkillsConfig(ProviderSettings):
    """The folders of skills."""

    paths: list[ReadPath] = Field(
        min_length=1,
        description="Folders of skills, or of folders that are skills.",
    )
    allow: list[str] = Field(
        default_factory=list[str], description="Only these skills; empty: all."
    )
    max_file_bytes: int = Field(LARGEST_SKILL_BYTES, ge=1, description="A larger file is not read.")


class Skills:
    """A catalogue of skills for the prompt, and the tools to read them."""

    examples = ({"paths": ["skills"]},)
    kit_excuse = "it needs a folder with skills; the tests of axil-context make one"

    Config = SkillsConfig

    def __init__(
        self, config: SkillsConfig | None = None, **settings: Unpack[SkillsKeywords]
    ) -> None:
        """``settings``: those of ``SkillsConfig``; nothing is read yet. Raises: ConfigError."""
        self.config = decoded_settings(SkillsConfig, config, settings)
        self.context_label = self.config.context_label or "skills"
        self.passive, self.active = self.config.passive, self.config.active
        self._grants = current_grants()

    def skills(self) -> dict[str, Skill]:
        """Return the skills by name, sorted.

        Raises: ContextError (AX896): a skill cannot be read, is missing, or occurs twice.
        """
        found: dict[str, Skill] = {}
        for path in self.config.paths:
            for skill in read_skills(Path(path), self.config.max_file_bytes):
                if self._grants is not None:  # a link may lead elsewhere
                    self._grants.path(str(skill.folder / SKILL_FILE), "read", self.context_label)
                if skill.name in found:
                    both = f"{found[skill.name].folder} and {skill.folder}"
                    message = f'two skills are called "{skill.name}": {both}.'
                    raise ContextError("AX896", message, "Rename one.")
                found[skill.name] = skill
        allow = self.config.allow
        missing = [name for name in allow if name not in found]
        if missing:
            known = f"Available: {format_names(sorted(found), 20) or 'none'}."
            hint = did_you_mean(missing[0], found) or known
            raise ContextError("AX896", f'there is no skill "{missing[0]}".', hint)
        return {name: found[name] for name in sorted(found) if not allow or name in allow}

    def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return one block: the names and descriptions of all skills. Raises: as ``skills``."""
        skills = self.skills()
        if not skills or top_k < 1 or query.filters:
            return []
        lines = [f"- {name}: {' '.join(s.description.split())}" for name, s in skills.items()]
        metadata = {"skills": list(skills), "provider": self.context_label}
        text = "\n".join([_HEAD, *lines])
        return [ContextBlock(text, "skills:catalogue", title="Skills", metadata=metadata)]

    async def tools(self) -> list[Tool]:
        """``read_skill`` and ``read_skill_file``; none, if there is no skill."""
        skills = await call_async(self.skills)
        if not skills:
            return []

        def chosen(name: str) -> Skill:
            if name not in skills:
                known = f"{did_you_mean(name, skills)} There are {format_names(list(skills), 20)}."
                raise Refused(f'there is no skill "{name}". {known}')
            return skills[name]

        def read_skill(name: str) -> str:
            skill = chosen(name)
            text, files = skill.body.strip(), skill.files()
            if files:
                text += f"\n\nFiles of this skill, for read_skill_file: {', '.join(files)}"
            return text

        def read_skill_file(name: str, path: str) -> str:
            return chosen(name).read(path, self.config.max_file_bytes)

        which = {"type": "string", "enum": list(skills), "description": "The skill."}
        below = {"type": "string", "description": "The file, as the skill names it."}
        one, two = {"name": which}, {"name": which, "path": below}
        why = "Read how something is done, before doing it."
        return [
            _tool("read_skill", why, one, read_skill),
            _tool("read_skill_file", "Read a file of a skill.", two, read_skill_file),
        ]

    def __repr__(self) -> str:
        return f"Skills({self.config.paths!r})"


def _tool(name: str, description: str, properties: Mapping[str, Any], call: Any) -> Tool:
    def validate(arguments: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        are_texts = all(isinstance(value, str) for value in arguments.values())
        if arguments.keys() != properties.keys() or not are_texts:
            raise Refused(f"expected {format_names(list(properties))}, each a text.")
        return (), arguments

    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name=name, description=description, parameters=schema, call=call, validate=validate)


def read_skills(path: Path, most_bytes: int = LARGEST_SKILL_BYTES) -> list[Skill]:
    """Return the skill of a folder, or those inside it. Raises: ContextError (AX896)."""
    try:
        os.fsencode(path)
        if (path / SKILL_FILE).is_file():
            return [_read(path, most_bytes)]
        folders = [each for each in sorted(path.iterdir()) if (each / SKILL_FILE).is_file()]
        return [_read(each, most_bytes) for each in folders]
    except ContextError:
        raise
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no folder can have this name"
        shown = path.as_posix().encode("utf-8", "backslashreplace").decode()
        message = f'the folder of skills "{shown}" cannot be read: {why or error}.'
        raise ContextError("AX896", message, "Give the folder that holds the skills.") from error


def _read(folder: Path, most_bytes: int) -> Skill:
    import yaml

    file = folder / SKILL_FILE
    try:
        if file.stat().st_size > most_bytes:
            raise ValueError(f"it is larger than {most_bytes} bytes")
        parts = _FRONT.match(file.read_bytes().decode("utf-8"))
        if parts is None:
            raise ValueError("it does not begin with front matter between two lines of ---")
        depth = 0
        events: Any = cast("Any", yaml).parse(parts[1], Loader=yaml.SafeLoader)
        for event in events:
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):  # merges of merges double with each level
                raise ValueError("its front matter has aliases (*name); write them out")
            if depth > _DEEPEST:
                raise ValueError(f"its front matter is nested deeper than {_DEEPEST} levels")
        front: Any = yaml.safe_load(parts[1])
        if not isinstance(front, dict):
            raise ValueError("its front matter is no mapping")
        data = cast("dict[str, Any]", front)
        name, description = data.get("name"), data.get("description")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"expected a name of letters, digits, - and _, found {name!r:.60}")
        if not isinstance(description, str) or not description.strip():
            raise ValueError("it has no description")
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        message = f'the skill "{file.as_posix()}" cannot be read: {reason}.'
        raise ContextError("AX896", message, "See the format in the README.") from error
    return Skill(name=name, description=description, folder=folder, body=parts[2], front=data)
