"""The importer of a file: by the name that the user gave, else the one that recognises it."""

from __future__ import annotations

import json
from typing import Any, cast

import yaml

from axil.plugin import Registry, default_registry, did_you_mean, format_names
from axil_importers.errors import ImportProblem
from axil_importers.imported import Imported, Importer


def import_text(
    text: str, name: str = "", system: str = "", registry: Registry | None = None
) -> Imported:
    """Return the workflow in a text, JSON or YAML, of whatever system; ``system`` names it.

    Raises: ImportProblem (AX988).
    """
    document = parsed(text)
    return importer_for(document, system, registry).read(document, name)


def importer_for(document: object, system: str = "", registry: Registry | None = None) -> Importer:
    """Return the importer called ``system``; empty: the only one that recognises the document.

    Raises: ImportProblem (AX988): there is none, or there are several.
    """
    installed = registry or default_registry()
    names = sorted(installed.names("importers"))
    if system:
        if system not in names:
            hint = did_you_mean(system, names) or f"Available: {format_names(names) or 'none'}."
            raise ImportProblem("AX988", f'there is no importer "{system}".', hint)
        return _made(installed, system)
    found = {each: made for each in names if (made := _made(installed, each)).recognises(document)}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        message = f"the file may be of {format_names(list(found))}."
    else:
        message = "the file is not what a system exports that is known here."
    hint = f"Say which with --from: {format_names(names)}."
    raise ImportProblem("AX988", message, hint)


def _made(installed: Registry, name: str) -> Importer:
    return cast("Importer", installed.resolve("importers", name)())


class _Loader(yaml.SafeLoader):
    """A loader without aliases: a small file cannot become large data."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if cast("Any", self).check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def parsed(text: str) -> Any:
    """Return the data in a text, JSON or YAML.

    Raises: ImportProblem (AX988): it is neither.
    """
    try:
        if text.lstrip().startswith("{"):
            return json.loads(text)
        return _Loader(text).get_single_data()
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        fault = f"the file is neither JSON nor YAML: {error}."
        raise ImportProblem("AX988", fault, "Export it again.") from error
