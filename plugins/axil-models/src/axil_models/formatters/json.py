"""``json`` and ``lenient_json``: one JSON object.

``json`` looks for the object behind thoughts, in code fences and between other words, and repairs
what has one meaning only: commas too many, control characters inside strings, brackets that were
not closed. A string that breaks off is not repaired.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from axil.plugin import check_time
from axil_models.formatters.text import FormatError, excerpt, fenced
from axil_models.thoughts import without_thoughts
from axil_models.values import plain_data

_INTRODUCTION = "Answer with a single JSON object: no code fence, no other text."


class Json:
    """``json``: one JSON object; reading repairs what models get wrong and keeps all that is there,
    empty objects too.
    """

    capabilities = ("keeps_types",)

    introduction = _INTRODUCTION

    def dump(self, fields: Any) -> str:
        """Return the fields as one JSON object, keys in the order given, those within sorted."""
        parts = [
            f"{_dumps(str(name))}: {_dumps(plain_data(value))}" for name, value in fields.items()
        ]
        return f"{{{', '.join(parts)}}}"

    def parse(self, text: str, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return the object in ``text``.

        Raises: FormatError (AX690): there is none; (AX691): it is JSON, but no object.
        """
        text = without_thoughts(text)
        fault: FormatError | None = None
        for candidate in _candidates(text):
            for form in _forms(candidate):
                check_time()
                try:
                    found = _loads(form)
                except ValueError as error:
                    fault = fault or _not_json(text, error)
                    continue
                if isinstance(found, dict):
                    return cast("dict[str, Any]", found)
                fault = _no_object(found)
        raise fault or _not_json(text, None)


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


class LenientJson:
    """``lenient_json``: one JSON object, or the same written as Python does, with single quotes and
    ``True``. No repairs.
    """

    capabilities = ("keeps_types",)

    introduction = _INTRODUCTION

    def dump(self, fields: object) -> str:
        """Return the fields as one JSON object, keys in the order given."""
        return Json().dump(fields)

    def parse(self, text: str, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return the object in ``text``. Raises: FormatError (AX690, AX691): as ``json``."""
        text = without_thoughts(text)
        fault: FormatError | None = None
        for candidate in (*fenced(text), _widest(text), text):
            for read in (_loads, _literal):
                check_time()
                try:
                    found = read(candidate.strip())
                except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
                    fault = fault or _not_json(text, error)
                    continue
                if isinstance(found, dict):
                    return {
                        str(name): value for name, value in cast("dict[Any, Any]", found).items()
                    }
                fault = _no_object(found)
        raise fault or _not_json(text, None)


_LONGEST_LITERAL: Final = 100_000
"""Characters: each costs Python some 500 bytes while it reads one, and it cannot be interrupted."""


def _literal(text: str) -> object:
    if len(text) > _LONGEST_LITERAL:
        raise ValueError("longer than what is read as Python writes it")
    return ast.literal_eval(text)


def _not_json(text: str, error: Exception | None) -> FormatError:
    where = ""
    if isinstance(error, json.JSONDecodeError):
        where = f" ({error.msg} at line {error.lineno}, column {error.colno})"
    found = f'"{excerpt(text)}"' if text else "nothing"
    message = f"expected one JSON object, found {found}{where}."
    return FormatError("AX690", message, "Answer with one JSON object and nothing else.")


_KINDS: dict[object, str] = {
    **{list: "a list", tuple: "a list", str: "text"},
    **{bool: "true or false", type(None): "null"},
}


def _no_object(found: object) -> FormatError:
    message = f"expected one JSON object, found {_KINDS.get(cast('Any', type(found)), 'a number')}."
    return FormatError("AX691", message, "Answer with { and }.")


def _constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _loads(text: str) -> object:
    try:
        return json.loads(text, strict=False, parse_constant=_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _widest(text: str) -> str:
    first, last = text.find("{"), text.rfind("}")
    return text[first : last + 1] if 0 <= first < last else ""


def _candidates(text: str) -> Iterator[str]:
    """Yield the texts that may be the object, likeliest first."""
    yield text
    yield from fenced(text)
    if widest := _widest(text):
        yield widest
    first = text.find("{")
    if first >= 0:
        try:
            _, end = json.JSONDecoder(strict=False).raw_decode(text, first)
            yield text[first:end]
        except (ValueError, RecursionError):
            # it is no object as it stands: what is left is to repair it
            yield text[first:]


def _forms(candidate: str) -> Iterator[str]:
    """Yield a text as it is, and repaired, least changed first."""
    yield candidate
    yield repaired(candidate)
    yield repaired(softened(candidate))


def repaired(text: str) -> str:
    """``text`` without trailing commas and with open brackets closed; unchanged inside strings.

    >>> repaired('{"a": [1, 2,], "b": {"c": 1,')
    '{"a": [1, 2], "b": {"c": 1}}'
    >>> repaired('{"a": ",}')
    '{"a": ",}'
    """
    kept: list[str] = []
    closing: list[str] = []
    opened = {"}": 0, "]": 0}
    quoted = escaped = False
    for sign in text.strip():
        if quoted:
            kept.append(sign)
            quoted, escaped = escaped or sign != '"', sign == "\\" and not escaped
            continue
        if sign == '"':
            quoted = True
        elif sign in "{[":
            closing.append("}" if sign == "{" else "]")
            opened[closing[-1]] += 1
        elif sign in "}]":
            if not opened[sign]:
                continue  # closes what was never opened
            _drop_comma(kept)
            while closing[-1] != sign:  # closes more than one: the inner ones were forgotten
                opened[closing[-1]] -= 1
                kept.append(closing.pop())
            opened[closing.pop()] -= 1
            kept.append(sign)
            if not closing:
                break
            continue
        kept.append(sign)
    if not quoted and closing:
        _drop_comma(kept)
        kept.extend(reversed(closing))
    return "".join(kept)


_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:[^"\\]|\\.)*"|“[^”]*”|'(?:[^'\\\n]|\\.)*')
      | (?P<word>[^\W\d][\w-]*)
      | (?P<number>-?\d[\d.eE+-]*)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_COLON = re.compile(r"\s*:")
_WORDS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "true": "true",
    "false": "false",
    "null": "null",
}


def softened(text: str) -> str:
    """``text`` as JSON, where it is written as in JavaScript or Python: other quotes, names without
    quotes, comments, ``True``, forgotten commas.

    >>> softened("{a: 'x', /* one */ 'b': True 'c': None}")
    '{"a": "x",  "b": true, "c": null}'
    """
    kept: list[str] = []
    last = ""
    for match in _TOKEN.finditer(text):
        kind, token = str(match.lastgroup), match[0]
        if kind == "blank":
            kept.append(token if token.isspace() else "")
            continue
        if kind == "sign" and token not in "{}[]:,":
            return text  # no JSON, whatever comes: a string that does not end, say
        is_key = _COLON.match(text, match.end()) is not None
        if kind == "string" and token[0] != '"':
            token = json.dumps(re.sub(r"\\(['\\])", r"\1", token[1:-1]), ensure_ascii=False)
        elif kind == "word":
            if not is_key and token not in _WORDS:
                return text
            token = f'"{token}"' if is_key else _WORDS[token]
        if last and last not in "{[,:" and (kind != "sign" or token in "{["):
            place = len(kept)
            while place and not kept[place - 1].strip():
                place -= 1
            kept.insert(place, ",")
        kept.append(token)
        last = token if kind == "sign" else kind
    return "".join(kept)


def _drop_comma(kept: list[str]) -> None:
    blank = len(kept)
    while blank and kept[blank - 1].isspace():
        blank -= 1
    if blank and kept[blank - 1] == ",":
        del kept[blank - 1 :]
