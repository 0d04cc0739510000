"""Names of ``axil_importers`` for type checkers; written by ``make manifests``."""

from axil_importers.choosing import import_text as import_text, importer_for as importer_for
from axil_importers.draft import (
    Draft as Draft,
    Step as Step,
    literal as literal,
    prompt_literal as prompt_literal,
)
from axil_importers.errors import ImportProblem as ImportProblem, ScriptError as ScriptError
from axil_importers.imported import (
    Finding as Finding,
    Imported as Imported,
    Importer as Importer,
    Status as Status,
)
from axil_importers.langgraph import (
    ImportedGraph as ImportedGraph,
    from_langgraph as from_langgraph,
)
from axil_importers.values import Value as Value
