"""The settings of components as typed keywords: what type checkers and editors know of
``Retry(tries=3)``, which takes the fields of its ``Config`` by name.

A class declares ``**settings: Unpack[RetryKeywords]``, imported from ``keywords`` of its package
where types are checked; ``make manifests`` writes that module from the Config, and a test holds it
current.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from pydantic import BaseModel, BeforeValidator, SecretStr

from axil.plugin import Secret
from axil_models import Remote

ROOT = Path(__file__).resolve().parents[2]
DECLARED = re.compile(r"Unpack\[(\w+)Keywords\]")
WIDTH = 100
WIDER = {
    "tuple": "Sequence",
    "list": "Sequence",
    "set": "Collection",
    "frozenset": "Collection",
    "dict": "Mapping",
}
"""Types of fields, and what is as good where a value is given."""

TEXTS: Mapping[Any, str] = {
    Path: "str",
    SecretStr: "str",
    Secret: "str | Mapping[str, str]",
}
"""Types of fields that are made of what else."""

OTHERWISE = {"model_name": "str", "model": "str", "invoke_settings": "Mapping[str, object]"}
"""Other names of settings that adapters of services take."""

Imports = dict[str, set[str]]


def keywords() -> dict[str, str]:
    """Return the text of each package's module of keywords, by its path."""
    return {
        (folder / "keywords.py").relative_to(ROOT).as_posix(): _module(folder.name, classes)
        for folder in sorted(ROOT.glob("*/*/src/*"))
        if (classes := list(_declaring(folder)))
    }


def _declaring(folder: Path) -> Iterator[tuple[str, type]]:
    """Give the name and the class of each that declares typed keywords."""
    for file in sorted(folder.rglob("*.py")):
        names = dict.fromkeys(DECLARED.findall(file.read_text("utf-8")))
        if names and file.name != "keywords.py":
            parts = file.relative_to(folder.parent).with_suffix("").parts
            module = importlib.import_module(".".join(parts))
            yield from ((name, getattr(module, name)) for name in names)


def _module(package: str, classes: list[tuple[str, type]]) -> str:
    imports: Imports = defaultdict(set)
    imports["typing"].add("TypedDict")
    texts = [_keywords_of(name, kind, package, imports) for name, kind in sorted(classes)]
    lines = [_import(source, names) for source, names in sorted(imports.items(), key=_order)]
    first, *rest = (line for _, line in lines)
    groups = [group for group, _ in lines]
    head = [first]
    for before, group, line in zip(groups, groups[1:], rest, strict=False):
        head += ["", line] if group != before else [line]
    return "\n".join(
        [
            f'"""Settings of ``{package}`` as typed keywords; written by ``make manifests``."""',
            "",
            "from __future__ import annotations",
            "",
            *head,
            "",
            "",
            "\n\n\n".join(texts),
            "",
        ]
    )


def _order(entry: tuple[str, set[str]]) -> tuple[int, str]:
    return _group(entry[0]), entry[0]


def _group(source: str) -> int:
    word = source.partition(".")[0]
    if word in ("collections", "typing", "pathlib", "datetime", "decimal"):
        return 0
    return 2 if word.startswith("axil") else 1


def _import(source: str, names: set[str]) -> tuple[int, str]:
    ordered = sorted(names, key=lambda name: (not name.isupper(), name.lower()))
    line = f"from {source} import {', '.join(ordered)}"
    if len(line) > WIDTH:
        line = "\n".join([f"from {source} import (", *(f"    {name}," for name in ordered), ")"])
    return _group(source), line


def _config(kind: Any) -> type[BaseModel]:
    """Return the config of a component; the class itself, if it is one."""
    return kind if issubclass(kind, BaseModel) else kind.Config


def _keywords_of(name: str, kind: type, package: str, imports: Imports) -> str:
    """Return the class of the keywords that a config gives, but for the constructor's own."""
    config = _config(kind)
    own = _named_parameters(kind) if config is not kind else set[str]()
    lines = [
        f"class {name}Keywords(TypedDict, total=False):",
        f'    """The settings of ``{name}``; see ``{config.__qualname__}``."""',
    ]
    for key, field in config.model_fields.items():
        if key in own:
            continue
        owner = next(kind for kind in config.__mro__ if key in inspect.get_annotations(kind))
        module = importlib.import_module(owner.__module__)
        lines += [
            "",
            f"    {field.alias or key}: {_type(_annotation(owner, key), module, package, imports)}",
        ]
        if field.description:
            lines += _docstring(field.description)
    if issubclass(kind, Remote):
        known = OTHERWISE if "settings" in config.model_fields else list(OTHERWISE)[:2]
        lines += ["", *(f"    {key}: {OTHERWISE[key]}" for key in known)]
        imports["collections.abc"].add("Mapping")
    return "\n".join(lines)


def _named_parameters(kind: type) -> set[str]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(kind).parameters.values()
    return {each.name for each in parameters if each.kind in named}


def _docstring(text: str) -> list[str]:
    text = text if text.endswith((".", "!", "?", "…")) else f"{text}."
    text = text.replace("\\", "\\\\")
    if len(text) + 10 <= WIDTH:
        return [f'    """{text}"""']
    lines = textwrap.wrap(text, WIDTH - 4, initial_indent='"""', break_on_hyphens=False)
    return textwrap.indent("\n".join([*lines, '"""']), "    ").splitlines()


def _annotation(owner: type, key: str) -> ast.expr:
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return next(
        each.annotation
        for each in tree.body
        if isinstance(each, ast.AnnAssign) and getattr(each.target, "id", "") == key
    )


def _type(annotation: ast.expr, module: ModuleType, package: str, imports: Imports) -> str:
    """Return the type of a keyword: what the field takes, as wide as the config reads it."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    widened = _Widened(module, package).visit(annotation)
    for each in ast.walk(widened):
        if not isinstance(each, ast.Name) or hasattr(builtins, each.id):
            continue
        if each.id in ("Sequence", "Collection", "Mapping"):
            imports["collections.abc"].add(each.id)
        elif each.id == "Any":
            imports["typing"].add(each.id)
        else:
            imports[_source(each.id, module, package)].add(each.id)
    return ast.unparse(widened).replace("'", '"')


def _source(name: str, module: ModuleType, package: str) -> str:
    """Return the module that a package has a name of one of its modules from: another package's
    face, which may lack it.
    """
    source = _origins(module).get(name, module.__name__)
    owner = source.partition(".")[0]
    if owner == package or owner == "axil" or not owner.startswith("axil_"):
        return source
    return owner


def _origins(module: ModuleType) -> Mapping[str, str]:
    """Return the module of each name that a module imports."""
    tree = ast.parse(inspect.getsource(module))
    return {
        name.asname or name.name: each.module or ""
        for each in ast.walk(tree)
        if isinstance(each, ast.ImportFrom)
        for name in each.names
    }


class _Widened(ast.NodeTransformer):
    """A type as what a config reads into it: any sequence for a list, a mapping for a model."""

    def __init__(self, module: ModuleType, package: str) -> None:
        self._module, self._package = module, package

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        name = getattr(node.value, "id", "")
        if name == "Literal":
            return node
        if name == "Annotated":
            inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            return self.visit(inner)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "tuple" and not (len(items) == 2 and _is_ellipsis(items[1])):
            return ast.Name("Sequence") if len(items) > 2 else self._of("Sequence", items)
        items = [item for item in items if not _is_ellipsis(item)]
        if name in ("dict", "Mapping") and len(items) == 2:  # keys are invariant
            items = [items[0], self.visit(items[1])]
            return ast.Subscript(ast.Name("Mapping"), ast.Tuple(items))
        return self._of(WIDER.get(name, name), items)

    def _of(self, name: str, items: list[ast.expr]) -> ast.expr:
        items = [self.visit(item) for item in items]
        return ast.Subscript(ast.Name(name), items[0] if len(items) == 1 else ast.Tuple(items))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        kind: Any = getattr(self._module, node.id, None)
        if node.id in WIDER:
            return ast.Name(WIDER[node.id])
        if kind in TEXTS:
            return ast.parse(f"{node.id} | {TEXTS[kind]}", mode="eval").body
        if reads := [each for each in get_args(kind) if isinstance(each, BeforeValidator)]:
            (given, *_) = inspect.signature(reads[0].func).parameters.values()
            return ast.parse(f"{node.id} | {given.annotation}", mode="eval").body
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            mapping = ast.parse("Mapping[str, object]", mode="eval").body
            face = importlib.import_module(_source(node.id, self._module, self._package))
            return ast.BinOp(node, ast.BitOr(), mapping) if hasattr(face, node.id) else mapping
        return node


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
