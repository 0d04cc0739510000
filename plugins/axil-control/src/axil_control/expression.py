"""A small total language for conditions: literals, comparisons, ``in``, ``and``, ``or``, ``not``,
``len`` and field paths.

Theory of operation
-------------------
A text is read once, when the plan is made, into nested closures; nothing in it can call, assign,
import or loop, and its cost is bounded by its length and the values it looks at. Running it never
raises; hence two rules:

- A path that leads nowhere is *missing*. Every comparison with it is false, ``!=`` and ``not in``
  included, and so is its truth: ``message.score`` asks whether there is a score, ``not (state.mode
  == "draft")`` covers a mode that is not set.
- A comparison of things that cannot be compared (``1 < "a"``) is false, the length of what has none
  is missing.

``and`` and ``or`` give one of their operands, so that ``state.next or "writer"`` is a value with a
default.

Paths begin at ``text`` (of the payload), ``message`` (its fields; of several messages the
last) or ``state``, and continue with ``.name``, ``[0]``, ``[-1]`` or ``["any name"]``. They follow
mappings, sequences and declared fields of typed state; no attribute of any object can be reached.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final, NoReturn, cast

from axil import MISSING
from axil.plugin import EdgeInput, check_time, did_you_mean
from axil_control.errors import ExpressionError

Value = Callable[[EdgeInput], object]
Key = str | int

LONGEST: Final = 10_000
"""Characters of an expression."""
DEEPEST: Final = 40
"""Brackets inside each other."""


class Expression:
    """A condition's text, read. Calling it gives its value; ``holds`` its truth.

    >>> from axil import Schema
    >>> seen = EdgeInput({"role": "user", "content": "ok", "score": 7},
    ...     Schema().start({"limit": 5}))
    >>> Expression('message.score > state.limit and "ok" in text').holds(seen)
    True
    >>> Expression("message.grade or 'none'")(seen)
    'none'
    """

    __slots__ = ("_value", "reads", "says", "text")

    def __init__(self, text: str) -> None:
        """Raises: ExpressionError (AX600), with the column."""
        self.text = text
        reader = _Reader(text)
        self._value = reader.whole()
        self.reads: frozenset[tuple[str, str]] = frozenset(reader.reads)
        """The fields of ``message`` and ``state`` that it looks at."""
        self.says = reader.formula(self._value)
        """The same as plain data: see "Facts for the check" in the reference of plugins."""

    def __call__(self, seen: EdgeInput) -> object:
        return self._value(seen)

    def holds(self, seen: EdgeInput) -> bool:
        """Return whether the value counts as true."""
        return is_true(self._value(seen))

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def is_true(value: object) -> bool:
    """Return the truth of a value; what has none (an array, say) is false."""
    try:
        return bool(value)
    except (TypeError, ValueError):
        return False


# ---------------------------------------------------------------------- paths

_STEP = re.compile(r'\.([^\W\d]\w*|\d+)|\[(-?\d+)\]|\["([^"\]]*)"\]')
_NAME = re.compile(r"[^\W\d]\w*")
ROOTS: Final = ("text", "message", "state")


def path_of(text: str) -> tuple[Key, ...]:
    """Return a dotted path as keys and positions. Raises: ValueError.

    >>> path_of('message.items[0]["a b"]')
    ('message', 'items', 0, 'a b')
    """
    first = _NAME.match(text)
    if first is None:
        raise ValueError(f"expected a name, found {text!r}")
    keys: list[Key] = [first[0]]
    at = first.end()
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise ValueError(f'expected .name, [0] or ["name"], found {text[at:]!r}')
        name, index, quoted = step.groups()
        if quoted is not None:
            keys.append(quoted)
        else:
            keys.append(int(index or name) if index or name.isdecimal() else name)
        at = step.end()
    return tuple(keys)


def follow(value: object, keys: Sequence[Key]) -> object:
    """Return the value that the keys lead to, through mappings, sequences and declared fields;
    ``MISSING`` where they lead nowhere.
    """
    for key in keys:
        if isinstance(value, Mapping):
            there = cast("Mapping[object, object]", value)
            value = there.get(key, MISSING)
            if value is MISSING and isinstance(key, int):
                value = there.get(str(key), MISSING)
        elif isinstance(key, int):
            items: Sequence[object] = (
                cast("Sequence[object]", value)
                if isinstance(value, Sequence) and not isinstance(value, (str, bytes))
                else ()
            )
            value = items[key] if -len(items) <= key < len(items) else MISSING
        else:
            value = getattr(value, key, MISSING) if key in _declared(value) else MISSING
    return value


def _declared(value: object) -> Sequence[str]:
    kind = cast("Any", type(value))
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return tuple(getattr(kind, "model_fields", ()))


def root_of(seen: EdgeInput, name: str) -> object:
    """Return the start of a path: ``text``, ``message`` or ``state``.

    Raises: LimitReached (AX415): the time of the run is over.
    """
    check_time()
    if name == "text":
        return seen.text
    if name == "state":
        return seen.state
    payload = seen.payload
    if (
        isinstance(payload, list)
        and payload
        and isinstance(payload[-1], dict)
        and "content" in payload[-1]
    ):
        return cast("list[object]", payload)[-1]
    return seen.fields


# ---------------------------------------------------------------------- operations


def _never(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    """Return a comparison that is false where it would raise, or where a side is missing."""

    def total(a: Any, b: Any) -> bool:
        if a is MISSING or b is MISSING:
            return False
        try:
            return is_true(compare(a, b))
        except (TypeError, ValueError):
            return False

    return total


def _is_in(item: Any, where: Any) -> bool:
    if isinstance(where, str):
        return isinstance(item, str) and item in where
    return isinstance(where, (Mapping, Sequence, Set)) and item in where


def _is_not_in(item: Any, where: Any) -> bool:
    return isinstance(where, (str, Mapping, Sequence, Set)) and not _is_in(item, where)


def _len(value: object) -> object:
    return len(cast("Any", value)) if isinstance(value, (str, Mapping, Sequence, Set)) else MISSING


COMPARISONS: Final = {
    "==": _never(operator.eq),
    "!=": _never(operator.ne),
    "<": _never(operator.lt),
    "<=": _never(operator.le),
    ">": _never(operator.gt),
    ">=": _never(operator.ge),
    "in": _never(_is_in),
    "not in": _never(_is_not_in),
}
LITERALS: Final = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
WORDS: Final = {"and", "or", "not", "in"}

# ---------------------------------------------------------------------- reading

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<name>[^\W\d]\w*)
      | (?P<sign>==|!=|<=|>=|[<>()\[\],.-])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}


class _Reader:
    """One text being read: tokens first, then one method per level of binding, loosest first."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []  # (kind, text, column)
        self.reads: set[tuple[str, str]] = set()
        self._terms: dict[Value, tuple[Any, ...]] = {}
        self._formulas: dict[Value, object] = {}
        self.next = self.depth = 0
        if len(text) > LONGEST:
            self.fail(LONGEST, f"more than {LONGEST} characters")
        at = 0
        while text[at:].strip():
            token = _TOKEN.match(text, at)
            if token is None:
                start = at + len(text[at:]) - len(text[at:].lstrip())
                self.fail(start, f"found {text[start]!r}", self._hint(text[start:]))
            kind = str(token.lastgroup)
            self.tokens.append((kind, token[kind], token.start(kind)))
            at = token.end()

    def _hint(self, rest: str) -> str:
        if rest[0] in "\"'":
            return "The text in quotes does not end."
        ways = {
            "=": "Compare with ==.",
            "&": "Write and.",
            "|": "Write or.",
            "!": "Write not, or !=.",
        }
        return ways.get(rest[0], "There is no arithmetic and nothing can be called but len.")

    def fail(self, column: int, found: str, hint: str = "") -> NoReturn:
        raise ExpressionError(
            "AX600", f"expression {self.text[:200]!r}, column {column + 1}: {found}.", hint
        )

    def peek(self) -> tuple[str, str, int]:
        return (
            self.tokens[self.next]
            if self.next < len(self.tokens)
            else ("end", "the end", len(self.text))
        )

    def take(self, *texts: str) -> str | None:
        """Return the next token's text, if it is one of these words or signs; it is consumed."""
        kind, text, _ = self.peek()
        if kind in ("name", "sign") and text in texts:
            self.next += 1
            return text
        return None

    def need(self, text: str) -> None:
        if self.take(text) is None:
            self.fail(self.peek()[2], f"expected {text!r}, found {self.peek()[1]!r}")

    def formula(self, value: Value) -> object:
        """Return what the truth of a value means, as plain data."""
        term = self._terms.get(value)
        if term is not None:
            return is_true(term[1]) if term[0] == "value" else ("truth", term[1])
        return self._formulas.get(value, ("?", f"{self.text}#{id(value)}"))

    def _joined(self, parts: list[Value], word: str) -> Value:
        wanted = word == "or"

        def joined(seen: EdgeInput) -> object:
            return _first(parts, seen, wanted)

        self._formulas[joined] = (word, *map(self.formula, parts))
        return joined

    def whole(self) -> Value:
        value = self.either()
        kind, text, column = self.peek()
        if kind != "end":
            self.fail(
                column,
                f"expected the end, found {text!r}",
                "There is no arithmetic; join conditions with and, or.",
            )
        return value

    def either(self) -> Value:
        parts = [self.both()]
        while self.take("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else self._joined(parts, "or")

    def both(self) -> Value:
        parts = [self.negated()]
        while self.take("and"):
            parts.append(self.negated())
        return parts[0] if len(parts) == 1 else self._joined(parts, "and")

    def negated(self) -> Value:
        count = 0
        while self.take("not"):
            count += 1
        value = self.compared()
        if not count:
            return value
        odd = count % 2 == 1

        def turned(seen: EdgeInput) -> bool:
            return is_true(value(seen)) is not odd

        formula = self.formula(value)
        self._formulas[turned] = ("not", formula) if odd else formula
        return turned

    def compared(self) -> Value:
        left = self.value()
        sign = self.take(*COMPARISONS)
        if (
            sign is None
            and self.peek()[1] == "not"
            and self.next + 1 < len(self.tokens)
            and self.tokens[self.next + 1][1] == "in"
        ):
            self.next += 2
            sign = "not in"
        if sign is None:
            return left
        right = self.value()
        column = self.peek()[2]
        if self.take(*COMPARISONS) is not None:
            self.fail(column, "a second comparison", "Join two comparisons with and.")
        compare = COMPARISONS[sign]

        def compared(seen: EdgeInput) -> bool:
            return compare(left(seen), right(seen))

        a, b = self._terms.get(left), self._terms.get(right)
        if a is not None and b is not None:
            self._formulas[compared] = _comparison(sign, a, b)
        return compared

    def value(self) -> Value:
        kind, text, column = self.peek()
        self.next += 1
        if kind == "number":
            return self._constant(_number(text))
        if kind == "string":
            return self._constant(
                re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), text[1:-1], flags=re.DOTALL)
            )
        if kind == "name" and text not in WORDS:
            return self.named(text, column)
        if text == "-" and self.peek()[0] == "number":
            self.next += 1
            return self._constant(-_number(self.tokens[self.next - 1][1]))
        if text in ("(", "["):
            self.depth += 1
            if self.depth > DEEPEST:
                self.fail(column, f"more than {DEEPEST} brackets inside each other")
            inner = self.either() if text == "(" else self.items()
            self.need(")" if text == "(" else "]")
            self.depth -= 1
            return inner
        self.fail(column, f"expected a value, found {text!r}")

    def items(self) -> Value:
        parts: list[Value] = []
        while self.peek()[1] != "]":
            parts.append(self.either())
            if self.take(",") is None:
                break

        def listed(seen: EdgeInput) -> list[object]:
            return [part(seen) for part in parts]

        terms = [self._terms.get(part, ("?",)) for part in parts]
        if all(term[0] == "value" for term in terms):
            self._terms[listed] = ("value", [term[1] for term in terms])
        return listed

    def named(self, name: str, column: int) -> Value:
        if name in LITERALS:
            return self._constant(LITERALS[name])
        if self.peek()[1] == "(" and self.peek()[0] == "sign":
            if name != "len":
                self.fail(column, f"{name!r} cannot be called", "Only len can.")
            self.next += 1
            inner = self.either()
            self.need(")")

            def length(seen: EdgeInput) -> object:
                return _len(inner(seen))

            term = self._terms.get(inner)
            if term is not None and term[0] == "path":
                self._terms[length] = ("path", ("len", *term[1]))
            return length
        if name not in ROOTS:
            hint = (
                did_you_mean(name, ROOTS)
                or f"A path begins with text, message or state: message.{name}, state.{name}."
            )
            self.fail(column, f"unknown name {name!r}", hint)
        keys = self.steps()
        if keys and isinstance(keys[0], str):
            self.reads.add((name, keys[0]))

        def followed(seen: EdgeInput) -> object:
            return follow(root_of(seen, name), keys)

        self._terms[followed] = ("path", (name, *keys))
        return followed

    def _constant(self, value: object) -> Value:
        def constant(seen: EdgeInput) -> object:
            return value

        self._terms[constant] = ("value", value)
        return constant

    def steps(self) -> tuple[Key, ...]:
        keys: list[Key] = []
        while (sign := self.take(".", "[")) is not None:
            kind, text, column = self.peek()
            self.next += 1
            if sign == "." and (kind == "name" or (kind == "number" and text.isdecimal())):
                keys.append(int(text) if kind == "number" else text)
                continue
            if sign == "[" and kind == "string":
                keys.append(text[1:-1])
            elif sign == "[" and (text == "-" or (kind == "number" and text.isdecimal())):
                minus = text == "-"
                keys.append(-int(self.digits()) if minus else int(text))
            else:
                self.fail(column, f"expected a field or a position, found {text!r}")
            self.need("]")
        return tuple(keys)

    def digits(self) -> str:
        kind, text, column = self.peek()
        if kind != "number" or not text.isdecimal():
            self.fail(column, f"expected a position, found {text!r}")
        self.next += 1
        return text


def _number(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)


_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _comparison(sign: str, left: tuple[object, ...], right: tuple[object, ...]) -> object:
    """Return a comparison of two terms as plain data: a path with a constant, where it is one."""
    kinds = left[0], right[0]
    if kinds == ("value", "value"):
        return COMPARISONS[sign](left[1], right[1])
    if kinds == ("path", "value"):
        return (sign, left[1], right[1])
    if kinds == ("value", "path") and sign in _MIRRORED:
        return (_MIRRORED[sign], right[1], left[1])
    if kinds == ("value", "path"):
        holds = ("has", right[1], left[1])
        return holds if sign == "in" else ("lacks", right[1], left[1])
    return ("?", f"{left[1]} {sign} {right[1]}")


def _first(parts: Sequence[Value], seen: EdgeInput, wanted: bool) -> object:
    """Return the first part whose truth is as wanted, else the last."""
    value: object = MISSING
    for part in parts:
        value = part(seen)
        if is_true(value) is wanted:
            return value
    return value
