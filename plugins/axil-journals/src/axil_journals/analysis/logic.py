"""Proofs that conditions can never hold together, as far as they can be found.

A formula is plain data: ``True``, ``False``, ``("and", …)``, ``("or", …)``, ``("not", formula)``,
or an atom ``(operation, path, constant)``; what nothing is known about is ``("?", name)``. A path
is ``("message", "score")``, ``("text",)`` or ``("state", "mode")``; ``("len", …)`` before one is
its length. Each comparison with what is missing is false.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, TypeAlias, cast

Formula: TypeAlias = Any
Path = tuple[str | int, ...]
Atom = tuple[Any, ...]

_MOST_CUBES: Final = 64
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], object]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ORDER: Final = ("<", "<=", ">", ">=")
_TURNED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that a path may have."""

    type: str = ""
    """A type of JSON; empty: unknown."""
    values: tuple[object, ...] | None = None
    """All of them; None: unknown."""


Domains = Callable[[Path], Domain | None]


def anything(path: Path) -> None:
    """Give no domain: nothing is known of a path."""


def never(formulas: Sequence[Formula], domains: Domains = anything) -> bool:
    """Return whether it is proved that formulas never hold together.

    >>> never([(">", ("len", "text"), 9), ("<", ("len", "text"), 5)])
    True
    >>> never([("==", ("message", "a"), 1), ("==", ("message", "b"), 2)])
    False
    """
    return may_hold(formulas, domains) is False


def may_hold(formulas: Sequence[Formula], domains: Domains = anything) -> bool | None:
    """Return whether formulas may hold together; None: there are too many ways to try.

    >>> may_hold([("==", ("message", "a"), 1), ("==", ("message", "b"), 2)])
    True
    """
    for tried, cube in enumerate(_cubes([(formula, True) for formula in formulas])):
        if tried == _MOST_CUBES:
            return None
        if cube is not None and _may_hold(cube, domains):
            return True
    return False


def atoms(formula: Formula) -> Iterator[Atom]:
    """Yield the atoms of a formula, those that nothing is known about included."""
    stack = [formula]
    while stack:
        one = stack.pop()
        if isinstance(one, bool):
            continue
        if one[0] in ("and", "or", "not"):
            stack.extend(one[1:])
        else:
            yield one


def mapped(
    formula: Formula, path: Callable[[Path], Path], unknown: Callable[[str], str]
) -> Formula:
    """Return a formula with other paths, and other names of what nothing is known about."""
    if isinstance(formula, bool):
        return formula
    if formula[0] in ("and", "or", "not"):
        return (formula[0], *(mapped(part, path, unknown) for part in formula[1:]))
    if formula[0] == "?":
        return ("?", unknown(str(formula[1])))
    return (formula[0], path(formula[1]), *formula[2:])


def renamed(formula: Formula, roots: Mapping[str, str], suffix: str = "") -> Formula:
    """Return a formula whose paths begin at other roots; ``suffix`` ends the names of what nothing
    is known about.
    """

    def moved(path: Path) -> Path:
        at = 1 if path[0] == "len" else 0
        return (*path[:at], roots.get(str(path[at]), path[at]), *path[at + 1 :])

    return mapped(formula, moved, lambda name: name + suffix)


Signed = tuple[Formula, bool]
"""A formula, and whether it holds."""
Cube = list[tuple[Atom, bool]]


def _cubes(formulas: Sequence[Signed]) -> Iterator[Cube | None]:
    """Yield the ways in which formulas may hold together; None: one in which they do not.

    One after the other: most often what is asked for holds in the first of them.
    """
    cube: Cube = []
    choices: list[list[Signed]] = []
    waiting = [*formulas]
    while waiting:
        formula, sign = waiting.pop()
        if isinstance(formula, bool):
            if formula is not sign:
                yield None
                return
        elif formula[0] == "not":
            waiting.append((formula[1], not sign))
        elif formula[0] not in ("and", "or"):
            cube.append((formula, sign))
        elif (formula[0] == "and") is sign:
            waiting += [(part, sign) for part in formula[1:]]
        else:
            choices.append([(part, sign) for part in formula[1:]])
    if choices:
        for way in product(*choices):
            yield from _cubes([*cube, *way])
    else:
        yield cube


def _may_hold(cube: Cube, domains: Domains) -> bool:
    signs: dict[str, bool] = {}
    by_path: dict[Path, tuple[Cube, Cube]] = {}
    for atom, positive in cube:
        if signs.setdefault(repr(atom), positive) is not positive:
            return False
        if atom[0] != "?":
            path: Path = atom[1]
            is_length = path[0] == "len"
            own = by_path.setdefault(path[1:] if is_length else path, ([], []))
            own[is_length].append((atom, positive))
    return all(_path_may(path, *own, domains(path)) for path, own in by_path.items())


def _path_may(path: Path, cube: Cube, lengths: Cube, domain: Domain | None) -> bool:
    """Return whether what is asked of a path, and of its length, may hold."""
    values = _values(cube, domain)
    if values is not None:
        is_missing = not any(sign for _, sign in (*cube, *lengths)) and not _is_text(path)
        return is_missing or any(_value_may(value, cube, lengths) for value in values)
    is_whole = domain is not None and domain.type == "integer"
    return _interval_may(cube, is_whole=is_whole) and _length_may(path, lengths)


def _is_text(path: Path) -> bool:
    """Return whether a path is the text of a payload, which is never missing."""
    return len(path) == 1 and str(path[0]).startswith("text")


def _value_may(value: object, cube: Cube, lengths: Cube) -> bool:
    if not all(_fits(atom, value, sign) for atom, sign in cube):
        return False
    if isinstance(value, (str, list, tuple, dict)):
        length = len(cast("str", value))
        return all(_fits(atom, length, sign) for atom, sign in lengths)
    return not any(sign for _, sign in lengths)  # it has none: each comparison is false


def _values(cube: Cube, domain: Domain | None) -> Sequence[object] | None:
    """Return all values that are left to try; None: too many."""
    if domain is not None and domain.values is not None:
        return domain.values
    for atom, positive in cube:
        operation = atom[0]
        if positive and operation == "==":
            return [atom[2]]
        if positive and operation == "in" and isinstance(atom[2], list):
            return cast("list[object]", atom[2])
        if positive and operation == "names" and domain is not None and domain.type == "string":
            return cast("tuple[object, ...]", atom[2])
    return None


def _fits(atom: Atom, value: Any, positive: bool) -> bool:
    """Return whether a value may make an atom true, or false; what is not known may."""
    holds = holds_for(atom, value)
    return holds is None or holds is positive


def holds_for(atom: Atom, value: Any) -> bool | None:
    """Return whether an atom holds for a value; None: that is not known."""
    operation = atom[0]
    try:
        if operation in _COMPARISONS:
            return bool(_COMPARISONS[operation](value, atom[2]))
        if operation == "truth":
            return bool(value)
        if operation == "names":
            return value in atom[2] if isinstance(value, str) else None
        if operation == "in":
            where = atom[2]
            return (
                isinstance(value, str) and value in where
                if isinstance(where, str)
                else (value in where)
            )
        if operation == "not in":
            return not holds_for(("in", *atom[1:]), value)
        if operation in ("has", "lacks") and isinstance(value, str):
            word = atom[2]
            return (isinstance(word, str) and word in value) is (operation == "has")
        if operation == "has folded" and isinstance(value, str):
            return atom[2] in value.lower()
    except TypeError:
        return False
    return None


def _length_may(path: Path, cube: Cube) -> bool:
    """Return whether something has such a length."""
    if not cube or not (_is_text(path) or any(sign for _, sign in cube)):
        return True  # it may be missing
    values = _values(cube, None)
    if values is not None:
        lengths = [n for n in values if isinstance(n, (int, float)) and n >= 0 and n % 1 == 0]
        return any(all(_fits(atom, n, sign) for atom, sign in cube) for n in lengths)
    return _interval_may([*cube, ((">=", path, 0), True)], is_whole=True)


def _interval_may(cube: Cube, *, is_whole: bool) -> bool:
    """Return whether some number, or some text, is within all bounds."""
    ordered = [
        (atom[0], atom[2], sign) for atom, sign in cube if atom[0] in _ORDER and _is_number(atom[2])
    ]
    if not any(sign for _, _, sign in ordered):
        return True  # it may be missing, or no number
    low, high = float("-inf"), float("inf")
    low_open = high_open = False
    for operation, bound, sign in ordered:
        if not sign:
            operation = _TURNED[operation]
        if operation in (">", ">="):
            if (bound, operation == ">") > (low, low_open):
                low, low_open = bound, operation == ">"
        elif (bound, operation == "<=") < (high, not high_open):
            high, high_open = bound, operation == "<"
    if low == high:
        return not (low_open or high_open)
    if is_whole and low > -math.inf and high < math.inf:
        least = math.floor(low) + 1 if low_open else math.ceil(low)
        return least < high or (least == high and not high_open)
    return low < high


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool, int, float),  # True equals 1
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def type_conflict(formula: Formula, domains: Domains) -> tuple[Path, str, object] | None:
    """Return a path that is compared with a constant of a type it never has: path, type, constant.

    >>> type_conflict((">", ("message", "score"), "high"), lambda path: Domain("integer"))
    (('message', 'score'), 'integer', 'high')
    """
    for atom in atoms(formula):
        if atom[0] not in _COMPARISONS or atom[0] == "!=":
            continue
        domain = domains(atom[1])
        known = _TYPES.get(domain.type) if domain is not None else None
        if domain is None or known is None or isinstance(atom[2], known):
            continue
        if domain.type in ("integer", "number") and isinstance(atom[2], bool):
            continue
        return atom[1], domain.type, atom[2]
    return None
