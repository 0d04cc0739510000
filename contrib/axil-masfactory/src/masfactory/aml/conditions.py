"""Conditions of AML: comparisons as Python writes them, read and never run as code.

A name that is none of the known ones is a field of the message, else an attribute, else None.
"""

from __future__ import annotations

import ast
import operator
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

Names = Mapping[str, Any]


def _contains(whole: Any, part: Any) -> bool:
    return part in (whole or "")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len,
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "any": any,
    "all": all,
    "max": max,
    "min": min,
    "sum": sum,
    "contains": _contains,
    "empty": operator.not_,
}
_METHODS = ("get", "lower", "upper", "strip", "startswith", "endswith", "split", "count", "find")
_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_WORDS = {"true": True, "false": False, "null": None}
_COMPUTED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mod: operator.mod,
}


_PLAIN = (
    *(ast.BoolOp, ast.Compare, ast.Constant, ast.Subscript, ast.List, ast.Tuple, ast.IfExp),
    *(ast.And, ast.Or, ast.Not, ast.USub, ast.Load),
)


def condition_of(text: str, where: str = "condition") -> Callable[[Any, Any], bool]:
    """Give the function ``(message, attributes) -> bool`` of a condition.

    It may use ``message`` (or ``input``), ``attributes``, constants, comparisons, ``and``, ``or``,
    ``not``, ``+``, ``-``, ``%``, subscripts, a few functions and a few methods of texts and dicts,
    and names of fields and attributes.

    >>> condition_of("len(message['plan']) > 3 and 'x' in message['plan']")({"plan": "axil"}, {})
    True

    Raises: ValueError: it is none, or holds something else.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(
            f"{where}: found {text!r}, which cannot be read ({error.msg}). "
            "Write a comparison of message and attributes."
        ) from error
    _checked(tree, text, where)

    def holds(message: Any, attributes: Any) -> bool:
        known = {"message": message, "input": message, "attributes": attributes}
        names = ChainMap(known, message, attributes, _WORDS)
        return bool(_value(tree, names))

    return holds


def _checked(node: ast.AST, text: str, where: str) -> None:
    allowed = (
        isinstance(node, _PLAIN)
        or type(node) in (_COMPARED | _COMPUTED)
        or (isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)))
        or (isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED)
        or isinstance(node, ast.Name)
    )
    if isinstance(node, ast.Call) and not node.keywords:
        called = node.func
        if isinstance(called, ast.Name) and called.id in _FUNCTIONS:
            for each in node.args:
                _checked(each, text, where)
            return
        if isinstance(called, ast.Attribute) and called.attr in _METHODS:
            for each in (called.value, *node.args):
                _checked(each, text, where)
            return
    if not allowed:
        raise ValueError(
            f"{where}: found {ast.unparse(node)!r} in {text!r}, expected comparisons of message "
            f"and attributes, with {', '.join(_FUNCTIONS)} and the methods "
            f"{', '.join(_METHODS)}. Decide the rest in a node."
        )
    for each in ast.iter_child_nodes(node):
        _checked(each, text, where)


def _value(node: ast.expr, names: Names) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names.get(name)
        case ast.List(elts=several) | ast.Tuple(elts=several):
            return [_value(each, names) for each in several]
        case ast.BoolOp(op=op, values=several):
            found: Any = None
            for each in several:
                found = _value(each, names)
                if bool(found) is isinstance(op, ast.Or):
                    return found
            return found
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _value(inner, names)
        case ast.UnaryOp(operand=inner):
            return -_value(inner, names)
        case ast.BinOp(left=left, op=op, right=right):
            return _COMPUTED[type(op)](_value(left, names), _value(right, names))
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, names) else other, names)
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _compared(_value(left, names), ops, [_value(each, names) for each in others])
        case ast.Subscript(value=inner, slice=key):
            return _value(inner, names)[_value(key, names)]
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name](*(_value(each, names) for each in args))
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=args):
            method = getattr(_value(inner, names), name)
            return method(*(_value(each, names) for each in args))
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is no condition.")


def _compared(left: Any, ops: Sequence[ast.cmpop], others: Sequence[Any]) -> bool:
    for op, right in zip(ops, others, strict=True):
        if not cast("Any", _COMPARED[type(op)])(left, right):
            return False
        left = right
    return True
