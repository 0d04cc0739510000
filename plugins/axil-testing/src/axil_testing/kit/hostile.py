"""Values that break careless code: what people, models, files and plugins really send."""

from __future__ import annotations

from typing import Any, Final

TEXTS: Final[tuple[str, ...]] = (
    "",
    " ",
    "\n\n",
    "plain",
    "ünïcödé 中文 🧑‍🚀",
    "e\u0301\u202egnp.exe\u200b",
    "line\r\nline\rline\u2028line\x85line",
    "null",
    "{}",
    "[]",
    '{"a": [1, {"b": null}]}',
    '{"a": ',
    "```json\n{}\n```",
    "{message} {0} %s %(a)s ${HOME} {{ x }}",
    "'; DROP TABLE runs; --",
    "<script>alert(1)</script>",
    "\x00\x1b[2J\x07",
    "../../etc/passwd",
    "(" * 300,
    "a" * 20_000,
    "9" * 400,
)
"""Texts."""

DEEP: Final[dict[str, Any]] = {}
_inner = DEEP
for _ in range(30):
    _inner["in"] = {}
    _inner = _inner["in"]

FIELDS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"message": None},
    {"message": ""},
    {"message": {}},
    {"message": []},
    {"message": [{}]},
    {"message": 0},
    {"message": float("nan"), "other": float("inf")},
    {"message": 2**70},
    {"message": True, "list": [1, "two", None, {"three": 3}]},
    {"": "no name", "a.b": 1, "a/b": 2, "@odd": 3},
    {"message": {"role": "user", "content": "a message"}},
    {"deep": DEEP},
    {"message": b"bytes"},
)
"""Fields of a payload."""

JSON: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    2**70,
    0.1,
    float("nan"),
    float("inf"),
    "",
    "text \ud800 with half a surrogate",
    [],
    {},
    [[], {}],
    {"": None, "@": 1},
    ("tuple", 1),
    {1, 2},
    b"\x00\xff",
    DEEP,
)
"""Values that a journal has to hold exactly."""

CLUMSY: Final[tuple[type[BaseException], ...]] = (
    AttributeError,
    TypeError,
    IndexError,
    NameError,
    RecursionError,
    MemoryError,
    AssertionError,
    ArithmeticError,
    NotImplementedError,
    SystemExit,
)
"""The errors of code that did not expect its input; they explain nothing to a user."""


def is_clumsy(error: BaseException) -> bool:
    """Return whether an error is an accident rather than an answer: axil's own errors,
    ``ValueError`` and ``OSError`` are answers.
    """
    from axil import AxilError
    from axil.plugin import KernelBug

    if isinstance(error, KernelBug):
        return True
    if isinstance(error, (AxilError, OSError)):
        return False
    return isinstance(error, CLUMSY) or type(error) in (KeyError, Exception)


def shown(value: Any) -> str:
    """Return a value in a message: short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
