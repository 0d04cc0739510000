"""Workflows of other systems as workflow files of axil, with a list of losses."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Importing": {
        "choosing": "import_text importer_for",
        "imported": "Finding Imported Importer Status",
        "langgraph": "ImportedGraph from_langgraph",
    },
    "For authors of importers": {
        "draft": "Draft Step literal prompt_literal",
        "values": "Value",
    },
    "Errors": {
        "errors": "ImportProblem ScriptError",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)
