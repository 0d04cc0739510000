"""Redaction: values without secrets, for journals, recordings and traces.

Secrets are known by their form (``redact_text``), by the names that values have (``redact_data``),
and by value (``without_secrets``): what filled a setting that is a secret is known to the process
(``keep_secret``), and is found wherever it turns up, also inside longer texts.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast
from urllib.parse import quote, unquote, urlsplit

REDACTED = "[redacted]"
"""The text in the place of a secret."""
_HEADER = re.compile(r"(?:^|[_\-.])(?:authorization|cookie)$", re.IGNORECASE)
_SECRET_TEXT = re.compile(
    r"(?i:\bbearer\s+[a-z0-9._~+/=-]{8,})"
    r"|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}"
    r"|\bgh[opsur]_[A-Za-z0-9]{16,}|\bxox[a-z]-[A-Za-z0-9-]{10,}|\bAKIA[A-Z0-9]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
    r"|[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"
)


_PRIVATE = re.compile(
    r"secret|passw(or)?d|passphrase|token$|api_?key|credential|dsn$|authorization$", re.IGNORECASE
)


def is_private(name: str) -> bool:
    """Return whether the name of a setting or of a variable says that its value is a secret.

    >>> is_private("OPENAI_API_KEY"), is_private("rounds")
    (True, False)
    """
    return _PRIVATE.search(name) is not None


_SHORTEST: Final = 8
"""Letters of a value that is looked for everywhere; a shorter one would be found in ordinary words.
"""
_MOST: Final = 1_000
"""Values that are known at once; the oldest are forgotten."""
_SCHEME: Final = re.compile(r"(?:basic|bearer|token)\s+(\S+)", re.IGNORECASE)
_lock = threading.Lock()
_values: dict[str, str] = {}
_known: tuple[tuple[str, str], ...] = ()
"""Values and what stands in their place, the longest first; replaced as a whole."""


def keep_secret(value: str, shown: str = REDACTED) -> None:
    """Let ``without_secrets`` know a secret of this process.

    With it are known the password of a URL, the token behind ``Bearer``, and how JSON and URLs
    write them. Paths, and what has fewer than 8 characters, are not looked for.
    """
    global _known
    found = [str.__str__(value)]
    with suppress(ValueError):  # it is no URL
        found.append(urlsplit(found[0]).password or "")
    if scheme := _SCHEME.fullmatch(found[0]):
        found.append(scheme[1])
    forms = [
        form
        for each in (*found, *map(unquote, found))
        for form in (each, json.dumps(each)[1:-1], json.dumps(each, ensure_ascii=False)[1:-1])
    ]
    forms += [quote(each, safe="") for each in forms]
    wanted = {f: shown for f in forms if len(f) >= _SHORTEST and not os.path.isabs(f)}
    if wanted.keys() <= _values.keys():
        return
    with _lock:
        _values.update({form: shown for form in wanted if form not in _values})
        while len(_values) > _MOST:
            del _values[next(iter(_values))]
        _known = tuple(sorted(_values.items(), key=lambda pair: -len(pair[0])))


def without_secrets(value: Any, known: Sequence[tuple[str, str]] | None = None) -> Any:
    """Return plain data with what stands for them in the place of secrets of this process.

    ``known``: others, to be looked for as well. Names of mappings stay.

    >>> keep_secret("sk-canary-1", "${KEY}")
    >>> without_secrets({"said": ["Bearer sk-canary-1", 2]})
    {'said': ['Bearer ${KEY}', 2]}
    """
    pairs = _known if known is None else (*_known, *known)
    return _covered(value, pairs) if pairs else value


def _covered(value: Any, pairs: Sequence[tuple[str, str]]) -> Any:
    if isinstance(value, str):
        for secret, shown in pairs:
            if secret in value:
                value = value.replace(secret, shown)
        return value
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {name: _covered(each, pairs) for name, each in items}
    if isinstance(value, (list, tuple)):
        return [_covered(each, pairs) for each in cast("Sequence[Any]", value)]
    return value


def redact_text(text: str) -> str:
    """Return a text without known secrets, forms of secrets and mail addresses.

    >>> redact_text("Authorization: Bearer abcdefgh12345, from ann@example.org")
    'Authorization: [redacted], from [redacted]'
    """
    return _SECRET_TEXT.sub(REDACTED, without_secrets(text))


def secret_spans(text: str) -> list[tuple[int, int]]:
    """Return where in a text are known forms of secrets and mail addresses.

    >>> secret_spans("from ann@example.org")
    [(5, 20)]
    """
    return [match.span() for match in _SECRET_TEXT.finditer(text)]


def redact_data(value: Any, redact: Callable[[str], str] = redact_text) -> Any:
    """Return a value as plain data, each text in it redacted; what a name calls a secret is
    replaced.

    >>> redact_data({"api_key": "x", "lines": ["ann@example.org wrote", 2]})
    {'api_key': '[redacted]', 'lines': ['[redacted] wrote', 2]}
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        given = cast("Mapping[Any, Any]", value)
        return {
            str(name): REDACTED if _is_secret(str(name)) else redact_data(each, redact)
            for name, each in given.items()
        }
    if isinstance(value, (list, tuple)):
        return [redact_data(each, redact) for each in cast("Sequence[Any]", value)]
    return redact(str(value))


def _is_secret(name: str) -> bool:
    return is_private(name) or _HEADER.search(name) is not None


__all__ = [
    "REDACTED",
    "is_private",
    "keep_secret",
    "redact_data",
    "redact_text",
    "secret_spans",
    "without_secrets",
]
