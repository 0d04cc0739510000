"""Facts about a function that its text says: the fields that it reads and gives.

Only what is certain counts: a field is *needed* where each call reads it by a constant name; all
*uses* are known where the parameter is used in no other way; what it *gives* is known where each
``return`` has a dict with constant names.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, MethodType

_METHODS = frozenset(dir(dict)) | frozenset({"model_copy", "model_dump"})


@dataclass(frozen=True, slots=True)
class Access:
    """Reads and writes of one parameter by a function."""

    needs: frozenset[str] = frozenset()
    """Fields that each call reads."""
    uses: frozenset[str] | None = frozenset()
    """All fields that it may read; None: unknown."""
    writes: frozenset[str] | None = frozenset()
    """All fields that it may assign; None: unknown."""
    named: frozenset[str] = frozenset()
    """Fields that it reads or assigns as an item or an attribute, in some call."""


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """Facts that the text of a function shows."""

    names: tuple[str, ...]
    """Its parameters, ``self`` left out."""
    access: Mapping[str, Access]
    gives: frozenset[str] | None
    """Fields that it may return; None: unknown."""
    always: frozenset[str]
    """Fields that each return has."""
    constants: Mapping[str, Sequence[object]]
    """All values of fields that only constants are returned for."""


def function_facts(function: object) -> FunctionFacts | None:
    """Return what the text of a function says; None: it has no text that can be read."""
    is_method = isinstance(function, MethodType)
    plain = function.__func__ if isinstance(function, MethodType) else function
    plain = inspect.unwrap(plain) if callable(plain) else plain
    if not isinstance(plain, FunctionType):
        return None
    tree = _trees(plain.__code__.co_filename).get(plain.__code__.co_firstlineno)
    if tree is None or tree.name != plain.__code__.co_name:
        return None
    found = _read(tree)
    return replace(found, names=found.names[1:]) if is_method else found


Definition = ast.FunctionDef | ast.AsyncFunctionDef


@functools.lru_cache(maxsize=256)
def _trees(path: str) -> Mapping[int, Definition]:
    """Return the functions of a file by the line that their code begins on."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return {
        min([node.lineno, *(each.lineno for each in node.decorator_list)]): node
        for node in ast.walk(tree)
        if isinstance(node, Definition)
    }


@functools.lru_cache(maxsize=4096)
def _read(tree: Definition) -> FunctionFacts:
    spec = tree.args
    names = tuple(each.arg for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))
    own = list(_own(tree.body))
    access = {name: _access(name, tree, own) for name in names}
    return FunctionFacts(names, access, *_gives(tree, own))


def _own(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of a body, functions inside it left out but for their names."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*_INNER, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


_Gives = tuple[frozenset[str] | None, frozenset[str], Mapping[str, Sequence[object]]]
_NOTHING: _Gives = (None, frozenset(), {})


def _gives(tree: Definition, own: Sequence[ast.AST]) -> _Gives:
    """Return the fields that a function may return, those that each return has, and the values of
    those that are constants.
    """
    fields: list[Mapping[str, ast.expr]] = []
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own):
        return _NOTHING
    returns = [node for node in own if isinstance(node, ast.Return)]
    for node in sorted(returns, key=lambda node: node.lineno):
        one = _fields(node.value)
        if one is None:
            return _NOTHING
        fields.append(one)
    if not fields or not isinstance(tree.body[-1], (ast.Return, ast.Raise)):
        return _NOTHING  # it may end without a return
    names = [frozenset(one) for one in fields]
    constants: dict[str, Sequence[object]] = {}
    for name in frozenset[str]().union(*names):
        values = [_constants(one[name]) for one in fields if name in one]
        if None not in values:
            found = {(type(value), value): value for some in values for value in some or ()}
            constants[name] = list(found.values())
    return frozenset[str]().union(*names), names[0].intersection(*names), constants


def _fields(value: ast.expr | None) -> Mapping[str, ast.expr] | None:
    if not isinstance(value, ast.Dict):
        return None
    names = [_text(key) for key in value.keys]
    if None in names:
        return None
    return {name: each for name, each in zip(names, value.values, strict=True) if name is not None}


def _constants(value: ast.expr) -> Sequence[object] | None:
    """Return all values that an expression may have; None: they are not known."""
    if isinstance(value, ast.IfExp):
        one, other = _constants(value.body), _constants(value.orelse)
        return None if one is None or other is None else [*one, *other]
    is_known = isinstance(value, ast.Constant) and isinstance(value.value, (str, bool, int, float))
    return [value.value] if isinstance(value, ast.Constant) and is_known else None


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _access(name: str, tree: Definition, own: Sequence[ast.AST]) -> Access:
    uses, writes, named = set[str](), set[str](), set[str]()
    seen: set[ast.AST] = set()
    is_known = True
    for node in own:
        found = _field_of(node, name)
        if found is not None:
            field, holder = found
            seen.add(holder)
            if isinstance(node, (ast.Subscript, ast.Attribute)):
                named.add(field)
            if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(
                node.ctx, ast.Load
            ):
                writes.add(field)
            else:
                uses.add(field)
        if isinstance(node, ast.AugAssign) and (at := _field_of(node.target, name)):
            uses.add(at[0])
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name and node not in seen:
            is_known = False
    return Access(
        frozenset(_needed(tree.body, name)) - writes if is_known else frozenset(),
        frozenset(uses) if is_known else None,
        frozenset(writes) if is_known else None,
        frozenset(named),
    )


def _field_of(node: ast.AST, name: str) -> tuple[str, ast.AST] | None:
    """Return the field that a node reads or assigns, and the parameter's own node."""
    if isinstance(node, ast.Subscript) and _is_name(node.value, name):
        field = _text(node.slice)
        return None if field is None else (field, node.value)
    if isinstance(node, ast.Attribute) and _is_name(node.value, name):
        return None if node.attr in _METHODS else (node.attr, node.value)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
        and _is_name(node.func.value, name)
        and node.args
    ):
        field = _text(node.args[0])
        return None if field is None else (field, node.func.value)
    if (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], (ast.In, ast.NotIn))
        and _is_name(node.comparators[0], name)
    ):
        field = _text(node.left)
        return None if field is None else (field, node.comparators[0])
    return None


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _needed(body: Sequence[ast.stmt], name: str) -> Iterator[str]:
    """Yield the fields that are read on the way that each call takes."""
    for statement in body:
        simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Assert)
        if isinstance(statement, simple):
            yield from _certain(statement, name)
            if isinstance(statement, (ast.Return, ast.Assert)):
                return
        elif isinstance(statement, ast.If):
            yield from _certain(statement.test, name)
            if any(isinstance(node, (ast.Return, ast.Raise)) for node in ast.walk(statement)):
                return
        elif not isinstance(statement, (*_INNER, ast.Import, ast.ImportFrom)):
            return


def _certain(node: ast.AST, name: str) -> Iterator[str]:
    """Yield the fields that are read wherever a node is evaluated."""
    stack: list[ast.AST] = [node]
    while stack:
        one = stack.pop()
        if (
            isinstance(one, ast.Subscript)
            and isinstance(one.ctx, ast.Load)
            and _is_name(one.value, name)
            and (field := _text(one.slice))
        ):
            yield field
        if isinstance(one, _INNER):
            continue
        if isinstance(one, ast.BoolOp):
            stack.append(one.values[0])
        elif isinstance(one, ast.IfExp):
            stack.append(one.test)
        elif isinstance(one, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            stack.append(one.generators[0].iter)
        elif isinstance(one, ast.Compare) and len(one.ops) > 1:
            stack.extend((one.left, one.comparators[0]))
        else:
            stack.extend(ast.iter_child_nodes(one))
