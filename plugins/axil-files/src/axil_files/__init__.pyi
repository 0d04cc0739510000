"""Names of ``axil_files`` for type checkers; written by ``make manifests``."""

from axil_files.changes import spec_changes as spec_changes
from axil_files.documents import (
    MAX_DEPTH as MAX_DEPTH,
    MAX_DIGITS as MAX_DIGITS,
    MAX_SIZE as MAX_SIZE,
    MAX_VALUES as MAX_VALUES,
    Document as Document,
    KeyPath as KeyPath,
    Loader as Loader,
    check_document as check_document,
    document_error as document_error,
    parse_json as parse_json,
)
from axil_files.durations import (
    format_duration as format_duration,
    parse_duration as parse_duration,
)
from axil_files.format import (
    is_version_0 as is_version_0,
    notes_field as notes_field,
    workflow_schema as workflow_schema,
)
from axil_files.functions import with_functions as with_functions
from axil_files.graph_edits import (
    edit_text as edit_text,
    graph_items as graph_items,
    written_names as written_names,
)
from axil_files.loading import (
    LoadOptions as LoadOptions,
    include_spec as include_spec,
    inline_spec as inline_spec,
    like_file as like_file,
    load_spec as load_spec,
    parse_workflow as parse_workflow,
    spec_from_document as spec_from_document,
)
from axil_files.needs import AnyVariable as AnyVariable, dependencies_of as dependencies_of
from axil_files.options import FileOptions as FileOptions, ReadingOptions as ReadingOptions
from axil_files.python import PythonTarget as PythonTarget, python_target as python_target
from axil_files.templates import match_path as match_path
from axil_files.text_edits import EditError as EditError
from axil_files.workflows import load as load
from axil_files.writer import dump_spec as dump_spec
from axil_files.yaml_loader import parse_yaml as parse_yaml
from axil_files.yaml_writer import dump_yaml as dump_yaml
