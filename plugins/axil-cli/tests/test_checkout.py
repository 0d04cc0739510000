"""Laws of a folder of functions that is laid out as DevAll's: its files are loaded unchanged."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from axil.plugin import Registry
from axil_files import with_functions
from axil_models import tool_of

FILES = {
    "utils/__init__.py": "",
    "utils/catalog.py": """
from dataclasses import dataclass
from entity.kinds import DEFAULT

@dataclass(frozen=True)
class ParamMeta:
    description: str | None = None
    enum: list | None = None
""",
    "utils/attachments.py": """
class AttachmentStore:
    def __init__(self, root):
        self.root = root
""",
    "entity/kinds.py": "import utils\nDEFAULT = 'plain'\nassert utils.__path__\n",
    "functions/edge/conditions.py": "def is_short(text: str) -> bool:\n    return len(text) < 5\n",
    "functions/function_calling/files.py": """
from typing import Annotated, Any, Dict
from utils.catalog import ParamMeta, DEFAULT
from utils.attachments import AttachmentStore

class FileContext:
    def __init__(self, context):
        self.root = context["python_workspace_root"]
        assert isinstance(context["attachment_store"], AttachmentStore)

def note(
    text: Annotated[str, ParamMeta(description="what is noted")],
    kind: Annotated[str, ParamMeta(description="which", enum=["plain", "bold"])] = DEFAULT,
    _context: Dict[str, Any] | None = None,
) -> str:
    '''Note a text.'''
    place = FileContext(_context).root
    place.mkdir(exist_ok=True)
    (place / "note.txt").write_text(f"{kind}: {text}")
    return _context["node_id"]
""",
    "functions/function_calling/more.py": """
from functions.function_calling.files import FileContext
import functions.function_calling.files as files

def later(_context=None) -> str:
    '''Import when it is called.'''
    import entity.kinds
    from utils import catalog
    assert files.FileContext is FileContext
    return entity.kinds.DEFAULT + catalog.DEFAULT

def asked(instruction: str, _context: dict | None = None) -> str:
    '''Ask.'''
    return _context["human_prompt"].request(node_id="n", inputs=instruction).text

class Block:
    def to_dict(self):
        return {"type": "text"}

def blocks(_context: dict | None = None) -> list:
    '''Give blocks.'''
    return [Block()]
""",
    "functions/function_calling/typed.py": """
from __future__ import annotations
from typing import TYPE_CHECKING, Annotated
from utils.catalog import ParamMeta
if TYPE_CHECKING:
    from axil import Context
    from somewhere import FunctionContext

Text = Annotated[str, ParamMeta(description="what is said")]

def say(text: Text, _context: FunctionContext | None = None, **more: str) -> str:
    '''Say a text.'''
    return f"{_context['node_id']}: {text} {more}"

def tell(text: Text, ctx: Context, **more: str) -> str:
    '''Tell a text.'''
    return f"{ctx.activation.node}: {text} {more}"
""",
}


@pytest.fixture
def functions(tmp_path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "checkout" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return tmp_path / "checkout/functions"


@pytest.fixture
def known(functions) -> Registry:
    return with_functions(Registry(), str(functions), print)


class Firing:
    """The source of a function's ``_context``."""

    def __init__(self, workspace: Path) -> None:
        self.workspace, self.run_id = workspace, "run"
        self.activation = SimpleNamespace(node="Writer")

    async def ask(self, question: Any) -> Any:
        return f"answer to {question}"


@pytest.fixture
def use(known, tmp_path):
    def call(name: str, **arguments: Any) -> Any:
        tool = tool_of(known.resolve("tools", name))
        return asyncio.run(tool(arguments, Firing(tmp_path / "run")))

    return call


def test_packages_beside_the_folder_are_imported_from_there(use):
    assert use("later") == "plainplain"


def test_nothing_of_it_is_left_where_other_modules_look(functions):
    before = (list(sys.path), list(sys.meta_path), set(sys.modules))
    with_functions(Registry(), str(functions), print)
    assert (sys.path, sys.meta_path) == before[:2]
    added = {name.partition(".")[0] for name in set(sys.modules) - before[2]}
    assert not added & {"utils", "entity", "functions"}
    assert list(functions.parent.rglob("__pycache__")) == []


def test_a_module_of_that_name_that_is_there_already_is_neither_used_nor_changed(
    functions, monkeypatch
):
    other = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "utils", other)
    with_functions(Registry(), str(functions), print)
    assert sys.modules["utils"] is other
    assert vars(other) == {}


def test_a_function_finds_the_run_in_its_context(use, tmp_path):
    assert use("note", text="rain") == "Writer"
    assert (tmp_path / "run/note.txt").read_text() == "plain: rain"


def test_a_model_is_shown_descriptions_and_choices_and_no_context(known):
    shown = tool_of(known.resolve("tools", "note")).parameters["properties"]
    assert list(shown) == ["text", "kind"]
    assert shown["text"]["description"] == "what is noted"
    assert shown["kind"]["enum"] == ["plain", "bold"]


def test_a_function_asks_the_person_of_the_run(use):
    assert use("asked", instruction="Rain?") == "answer to Rain?"


def test_objects_that_say_themselves_as_data_are_data(use):
    assert use("blocks") == '[{"type": "text"}]'


def test_conditions_stay_functions_of_the_text(known):
    assert known.resolve("conditions", "is_short")("abc") is True


def test_a_folder_of_another_layout_imports_nothing_from_beside_it(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "beside_of_ours.py").write_text("X = 1\n", "utf-8")
    (tmp_path / "own/f.py").write_text("import beside_of_ours\ndef f(): ...\n", "utf-8")
    with pytest.raises(Exception, match=r"AX884.*No module named 'beside_of_ours'"):
        with_functions(Registry(), str(tmp_path / "own"), print)


def test_a_missing_module_is_reported_by_its_own_name(functions):
    (functions / "function_calling/wrong.py").write_text(
        "from utils import missing_of_ours\n", "utf-8"
    )
    with pytest.raises(Exception, match=r"AX884.*wrong.py:1.*missing_of_ours"):
        with_functions(Registry(), str(functions), print)


def test_what_an_earlier_load_read_is_read_anew(functions, tmp_path):
    text = "def f() -> str:\n    '''.'''\n    return 'one'\n"
    for wanted in ("one", "two"):
        (functions / "function_calling/new.py").write_text(text.replace("one", wanted), "utf-8")
        known = with_functions(Registry(), str(functions), print)
        assert known.resolve("tools", "f")() == wanted


@pytest.mark.parametrize("name", ["say", "tell"])
def test_annotations_of_what_a_run_fills_are_not_read(use, known, name):
    shown = tool_of(known.resolve("tools", name)).spec.parameters["properties"]
    assert shown == {"text": {"description": "what is said", "type": "string"}}
    assert use(name, text="hello") == "Writer: hello {}"
