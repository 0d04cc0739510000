"""Redaction: values without secrets, for journals, recordings and traces.

Secrets are known by their form (``redact_text``), by the names that values have (``redact_data``),
and by value (``axil.secrecy``), also inside longer texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

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


def redact_text(text: str) -> str:
    """Return a text without known secrets, forms of secrets and mail addresses.

    >>> redact_text("Authorization: Bearer abcdefgh12345, from ann@example.org")
    'Authorization: [redacted], from [redacted]'
    """
    from axil.secrecy import REDACTED, without_secrets

    return _SECRET_TEXT.sub(REDACTED, without_secrets(text))


def secret_spans(text: str) -> list[tuple[int, int]]:
    """Return where in a text are known forms of secrets and mail addresses.

    >>> secret_spans("from ann@example.org")
    [(5, 20)]
    """
    return [match.span() for match in _SECRET_TEXT.finditer(text)]


def redact_data(value: object, redact: Callable[[str], str] = redact_text) -> Any:
    """Return a value as plain data, each text in it redacted; what a name calls a secret is
    replaced.

    >>> redact_data({"api_key": "x", "lines": ["ann@example.org wrote", 2]})
    {'api_key': '[redacted]', 'lines': ['[redacted] wrote', 2]}
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    from axil.secrecy import REDACTED

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


__all__ = ["is_private", "redact_data", "redact_text", "secret_spans"]
