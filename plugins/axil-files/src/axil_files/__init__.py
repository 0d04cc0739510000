"""Workflow files: their format, a reader that reports every problem at once, and a writer."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Graphs": {
        "workflows": "load",
    },
    "Graphs as data, and their files": {
        "changes": "spec_changes",
        "documents": """
            Document KeyPath Loader MAX_DEPTH MAX_DIGITS MAX_SIZE MAX_VALUES
            check_document document_error parse_json
        """,
        "durations": "format_duration parse_duration",
        "format": "is_version_0 notes_field workflow_schema",
        "functions": "with_functions",
        "graph_edits": "edit_text graph_items written_names",
        "loading": """
            LoadOptions include_spec inline_spec like_file load_spec
            parse_workflow spec_from_document
        """,
        "options": "FileOptions ReadingOptions",
        "python": "PythonTarget python_target",
        "needs": "AnyVariable dependencies_of",
        "writer": "dump_spec",
        "templates": "match_path",
        "text_edits": "EditError",
    },
    "Workflow files": {
        "yaml_loader": "parse_yaml",
        "yaml_writer": "dump_yaml",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)
