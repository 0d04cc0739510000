"""The record of a draft: what was said and written, kept beside the file."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from axil.plugin import without_secrets
from axil_cli.draft.errors import DraftError

RECORD: Final = "draft.json"
LAST: Final = "last.yaml"
_VERSION: Final = 1


@dataclass(slots=True, kw_only=True)
class DraftRecord:
    """The facts from which the next drafting goes on."""

    said: list[str] = field(default_factory=list[str])
    """Sentences and remarks of the user, oldest first."""
    source: str = ""
    """The text that it was drafted from."""
    text: str = ""
    """The newest draft."""
    is_fine: bool = False
    """True if it passes the check."""
    summary: str = ""
    """Its drawing, what it does and wants; or the findings of its check."""
    run_id: str = ""
    """The run that has not ended; empty: there is none."""
    question: str = ""
    """The id of its open question."""
    variables: dict[str, Any] = field(default_factory=dict[str, Any])
    """The variables that it was begun with."""

    @classmethod
    def read(cls, folder: Path) -> DraftRecord:
        """Return the record in a folder; a new one, where there is none.

        Raises: DraftError (AX996): it cannot be read.
        """
        try:
            data = json.loads((folder / RECORD).read_text("utf-8"))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, RecursionError) as error:
            raise _unreadable(folder, str(error)) from error
        try:
            if data.pop("version") != _VERSION:
                raise ValueError("it is of another version")
            return TypeAdapter(cls).validate_python(asdict(cls(**data)))
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise _unreadable(folder, " ".join(str(error).split())) from error

    def write(self, folder: Path) -> None:
        """Write the record, and the newest draft beside it as a file to look at."""
        folder.mkdir(parents=True, exist_ok=True)
        data = {"version": _VERSION, **asdict(self)}
        kept = {**without_secrets(data), "text": self.text, "source": self.source}
        put(folder / RECORD, json.dumps(kept, ensure_ascii=False, indent=2) + "\n")
        if self.text:
            put(folder / LAST, self.text)

    def task(self, sentence: str, present: str) -> str:
        """Return the message that a drafting begins with.

        Args:
            present: the file as it is now; empty: there is none.
        """
        parts = [f"What is wanted: {sentence}"]
        if self.said:
            parts.append("Said before, oldest first:\n" + "\n".join(f"- {s}" for s in self.said))
        if self.source:
            parts.append(f"The text that it is drafted from:\n\n{self.source}")
        if present:
            parts.append(
                "The file as it is now; keep what is not to be changed:\n\n"
                f"```yaml\n{present.rstrip()}\n```"
            )
        return "\n\n".join(parts)


def _unreadable(folder: Path, why: str) -> DraftError:
    return DraftError(
        "AX996",
        f"{folder / RECORD} cannot be read: {why}.",
        f"Remove {folder}, and the draft begins anew.",
    )


def put(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises: DraftError (AX995): it cannot be written."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        temporary.write_text(text, "utf-8", errors="backslashreplace")
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        message = f"{path} cannot be written: {error.strerror or error}."
        raise DraftError("AX995", message, "Name another file with -o.") from error


__all__ = ["LAST", "DraftRecord", "put"]
