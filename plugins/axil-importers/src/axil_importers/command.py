"""``axil import``: a workflow of another system as a workflow file, with a list of losses."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from axil_cli import Exit, Session, add_shared_arguments
from axil_importers.choosing import importer_for, parsed
from axil_importers.errors import ImportProblem
from axil_importers.imported import Finding, Imported

_LARGEST_BYTES = 32 * 1024 * 1024


class Import:
    """Make a workflow file of what another system exports, and say what became of each part.

    The system is recognised by the file. Nothing of the file is run, nothing is fetched. Exit
    code 1 if something was left: no node does it yet.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "file",
            help="what the system exported, JSON or YAML; or a folder, such as CrewAI's config",
        )
        parser.add_argument(
            "--from", dest="system", default="", metavar="SYSTEM", help="its importer: dify, n8n …"
        )
        parser.add_argument(
            "--out", metavar="FILE", help="where the workflow is written; without it, shown"
        )
        add_shared_arguments(parser, "--format")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Import the file."""
        file = Path(options.file)
        document = _document(file)
        importer = importer_for(document, options.system, session.registry)
        made = importer.read(document, file.stem)
        if options.out:
            _write(Path(options.out), made.text())
        if options.format == "json":
            whole: dict[str, Any] = {"file": options.file, "out": options.out, **made.as_data()}
            session.say_json(whole if options.out else {**whole, "workflow": made.document})
        elif options.out:
            session.say("\n".join(_lines(made)))
        else:
            session.say(made.text().rstrip())
            session.tell("\n".join(_lines(made)))
        return Exit.FAILED if made.counts()["left"] else Exit.DONE


def _lines(made: Imported) -> Iterator[str]:
    """Yield the list of losses, and how much of the source arrived."""
    for each in made.losses:
        yield _line(each)
    counts = made.counts()
    said = ", ".join(f"{number} {status}" for status, number in counts.items())
    yield f"{sum(counts.values())} parts: {said}"


def _line(each: Finding) -> str:
    became = f"; now {each.became}" if each.became else ""
    advice = f" {each.advice}" if each.advice else ""
    return f"{each.status}: {each.place} ({each.kind}): {each.reason}{became}.{advice}"


def _document(file: Path) -> Any:
    """Return the data of a file; of a folder, that of its files, by their names.

    Raises: ImportProblem (AX988).
    """
    if not file.is_dir():
        return parsed(_text(file))
    files = sorted(each for each in file.iterdir() if each.suffix in (".yaml", ".yml", ".json"))
    if not files:
        fault = f"{file} holds no YAML or JSON files."
        raise ImportProblem("AX988", fault, "Name the folder that holds them; CrewAI's is config.")
    return {each.stem: parsed(_text(each)) for each in files}


def _text(file: Path) -> str:
    """Return the text of the file. Raises: ImportProblem (AX988)."""
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            fault = f"{file} is larger than {_LARGEST_BYTES} bytes."
            raise ImportProblem("AX988", fault, "Export one workflow.")
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ImportProblem(
            "AX988", f"{file} cannot be read: {reason}.", "Check the path."
        ) from error


def _write(file: Path, text: str) -> None:
    """Raises: ImportProblem (AX988)."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        fault = f"{file} cannot be written: {error.strerror}."
        raise ImportProblem("AX988", fault, "Name another file with --out.") from error
