"""Pages of public modules: every name with its signature and its summary.

`make manifests` writes them, and a test holds them current.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

INTRODUCTIONS = {
    "axil": (
        "docs/reference/user-api.md",
        """# The user API: `axil`

`axil` has the names that make and run graphs. [Python](python.md) says what belongs together and
shows it; this page lists every name. Authors of components find more in
[`axil.plugin`](plugin-api.md), authors of journals, engines and executors in
[`axil.driver`](driver-api.md).
""",
    ),
    "axil.plugin": (
        "docs/reference/plugin-api.md",
        """# The plugin API: `axil.plugin`

`axil.plugin` has the names that authors of components need: of nodes, conditions, processors,
wrappers, reducers, channels, loaders, hooks and commands.
[Write a plugin](../tutorials/write-a-plugin.md) is where to begin. What users of axil need as well,
`Out`, `Context` or `Schema`, is in [`axil`](user-api.md); what journals, engines and executors need
is in [`axil.driver`](driver-api.md).
""",
    ),
    "axil.driver": (
        "docs/reference/driver-api.md",
        """# The driver API: `axil.driver`

`axil.driver` has the names that authors of journals, engines and executors need, and authors of
tools that inspect recorded runs. Users find their names in [`axil`](user-api.md), authors of other
components in [`axil.plugin`](plugin-api.md).
""",
    ),
}
PROMISE = """Each name belongs to one of the three modules and is stable within a major version. Any
other module of axil may move or change in any version.

This page is made of the code (`make manifests`) and tested to be current. Methods of protocols are
in [plugins: groups, hooks, protocols](plugins.md).
"""
LONGEST_VALUE = 80
"""Characters of a constant's value that are shown."""


PACKAGES = (
    "docs/reference/packages.md",
    """# Packages of plugins

The names of the packages that plugins are used by: `from axil_journals import MemoryJournal`. A
package is the whole face of its distribution; its modules may move or change in any version.
Packages with few names are described in the README of their distribution.

This page is made of the code (`make manifests`) and tested to be current.
""",
)


def pages() -> dict[str, str]:
    """Return the text of each page, by its path."""
    from tests.house.stubs import DOORS, public_modules

    made = {path: page_of(door, text) for door, (path, text) in INTRODUCTIONS.items()}
    path, introduction = PACKAGES
    lines = [introduction]
    for package in public_modules():
        if package not in DOORS:
            lines += [f"## {package}", "", *_entries(package, "###")]
    return {**made, path: "\n".join(lines) + "\n"}


def page_of(door: str, introduction: str) -> str:
    return "\n".join([introduction, PROMISE, *_entries(door)]) + "\n"


def _entries(name: str, heading: str = "##") -> Iterator[str]:
    module = importlib.import_module(name)
    for subject, modules in module._SUBJECTS.items():
        yield f"{heading} {subject}"
        yield ""
        found = {
            each: f"{module.__package__}.{source}"
            for source, names in modules.items()
            for each in names.split()
        }
        for each in sorted(found, key=str.lower):
            yield _entry(each, getattr(module, each), found[each])
        yield ""


def _entry(name: str, value: Any, source: str) -> str:
    value = getattr(value, "__wrapped__", value)  # of a function whose answers are kept
    if inspect.isfunction(value) or inspect.isclass(value):
        called = "async " if inspect.iscoroutinefunction(value) else ""
        title, summary = f"{called}{name}{_signature(value)}", _first(value.__doc__ or "")
    else:
        shown, summary = _assigned(source, name)
        title = f"{name} = {shown}" if len(shown) <= LONGEST_VALUE else name
    return f"* `{title}`: {summary}"


def _signature(value: Any) -> str:
    """Return how a function or class is called; empty: a protocol, which is not."""
    if getattr(value, "_is_protocol", False):
        return ""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return ""
    parts: list[str] = []
    kind = None
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and kind not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            parts.append("*")
        kind = parameter.kind
        parts.append(_parameter(parameter))
    gives = signature.return_annotation
    known = inspect.isfunction(value) and gives is not signature.empty
    return f"({', '.join(parts)}){f' -> {_annotation(gives)}' if known else ''}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    typed = parameter.annotation is not parameter.empty
    text = f"{stars}{parameter.name}{f': {_annotation(parameter.annotation)}' if typed else ''}"
    if parameter.default is parameter.empty:
        return text
    equals = " = " if typed else "="
    return f"{text}{equals}{_default(parameter.default)}"


def _annotation(given: Any) -> str:
    text = given if isinstance(given, str) else getattr(given, "__forward_arg__", None)
    # Python 3.11 names the module, later versions do not
    text = text or inspect.formatannotation(given).replace("typing.", "")
    return re.sub(r"Annotated\[(.*), as_given\]", r"\1", text)


def _default(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return repr(value) if isinstance(value, tuple) and not value else "…"


@cache
def _tree(source: str) -> ast.Module:
    file = importlib.import_module(source).__file__
    assert file is not None
    return ast.parse(Path(file).read_text("utf-8"))


def _assigned(source: str, name: str) -> tuple[str, str]:
    """Return the value of a constant or an alias as its module writes it, and its summary."""
    body = _tree(source).body
    for each, after in zip(body, [*body[1:], None], strict=True):
        targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(each, (ast.Assign, ast.AnnAssign))
            assert each.value is not None
            text = after.value if isinstance(after, ast.Expr) else None
            documented = isinstance(text, ast.Constant) and isinstance(text.value, str)
            summary = _first(text.value) if documented else ""
            return ast.unparse(each.value), summary
    raise LookupError(f"{source} assigns no {name}")


def _first(text: str) -> str:
    paragraph = inspect.cleandoc(text).replace("``", "`").split("\n\n")[0]
    return re.sub(r"\s+", " ", paragraph)
