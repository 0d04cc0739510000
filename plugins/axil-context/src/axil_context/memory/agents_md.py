"""``context:agents_md``: what a project tells agents, in files ``AGENTS.md``.

They are read anew for each prompt, from the outermost folder inwards: the nearest one comes last,
and counts where they differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

from pydantic import Field

from axil.plugin import ReadPath, current_grants
from axil_models import (
    ContextBlock,
    ContextError,
    ContextQuery,
    ProviderSettings,
    decoded_settings,
)

if TYPE_CHECKING:
    from axil_context.keywords import AgentsMdKeywords

_HINT: Final = "Name the folder that has it, or leave the provider out."


class AgentsMdConfig(ProviderSettings):
    """The folder that is worked in."""

    folder: ReadPath = Field(min_length=1, description="The folder that is worked in.")
    root: ReadPath = Field(
        "", description="The outermost folder whose file counts; empty: only that of folder."
    )
    names: list[str] = Field(
        default_factory=lambda: ["AGENTS.md"],
        min_length=1,
        description="Names of the file; of each folder the first one that is there.",
    )
    max_bytes: int = Field(64 * 1024, ge=1, description="The largest size of all files together.")


class AgentsMd:
    """The notes of a project for agents, as a part of the prompt."""

    examples = ({"folder": "."},)
    kit_excuse = "it needs a folder with AGENTS.md; the tests of axil-context make one"

    Config = AgentsMdConfig

    def __init__(
        self, config: AgentsMdConfig | None = None, **settings: Unpack[AgentsMdKeywords]
    ) -> None:
        """``settings``: those of ``AgentsMdConfig``; nothing is read yet. Raises: ConfigError."""
        self.config = decoded_settings(AgentsMdConfig, config, settings)
        self.context_label = self.config.context_label or "notes of the project"
        self.passive, self.active = self.config.passive, self.config.active
        self._grants = current_grants()

    def files(self) -> list[Path]:
        """Return the files, the outermost first.

        Raises: ContextError (AX896): there is none, or ``folder`` is not in ``root``.
        """
        folder = Path(self.config.folder).resolve()
        root = Path(self.config.root).resolve() if self.config.root else folder
        if not folder.is_relative_to(root):
            message = f'"{folder.as_posix()}" is not in "{root.as_posix()}".'
            raise ContextError("AX896", message, "Let root be a folder above folder.")
        inwards = [
            each for each in (*reversed(folder.parents), folder) if each.is_relative_to(root)
        ]
        found: list[Path] = []
        for each in inwards:
            there = (each / name for name in self.config.names if (each / name).is_file())
            found += [file for file in [next(there, None)] if file is not None]
        if not found:
            wanted = " or ".join(self.config.names)
            raise ContextError("AX896", f'"{folder.as_posix()}" has no {wanted}.', _HINT)
        return found

    def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return a block for each file, in their order. Raises: ContextError (AX896)."""
        if query.filters or top_k < 1:
            return []
        blocks: list[ContextBlock] = []
        left = self.config.max_bytes
        for file in self.files():
            if self._grants is not None:  # a link may lead elsewhere
                self._grants.path(str(file), "read", self.context_label)
            try:
                with file.open("rb") as opened:
                    data = opened.read(left + 1)
                text = data.decode("utf-8-sig").strip()
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                message = f'"{file.as_posix()}" cannot be read: {why}.'
                raise ContextError("AX896", message, _HINT) from error
            left -= len(data)
            if left < 0:
                message = f"its files have more than {self.config.max_bytes} bytes."
                raise ContextError("AX896", message, "Shorten them, or raise max_bytes.")
            if text:
                metadata = {"path": file.as_posix(), "provider": self.context_label}
                blocks.append(
                    ContextBlock(text, f"agents_md:{file}", title=file.name, metadata=metadata)
                )
        return blocks[-top_k:]

    def __repr__(self) -> str:
        return f"AgentsMd({self.config.folder!r})"
