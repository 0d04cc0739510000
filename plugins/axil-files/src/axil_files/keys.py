"""Keys that are written out in a workflow file, where the name of a variable belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from axil import Problem
from axil.plugin import is_private
from axil_files.documents import Document, KeyPath

_SHORTEST: Final = 8
"""Letters of a secret; what is shorter is a word that says there is none."""
_HOLDERS: Final = (str, dict, list)
"""Types of values that are a key, or may hold one."""
_FORM: Final = re.compile(
    r"\b(?:sk|rk)[-_](?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{12,}"
    r"|\bgh[opsur]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bhf_[A-Za-z0-9]{20,}|\bxox[a-z]-(?=[A-Za-z-]{0,40}\d)[A-Za-z0-9-]{10,}|\bAKIA[A-Z0-9]{16}\b"
    r"|\bAIza[A-Za-z0-9_-]{30,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
"""Keys that are known by how they are written."""
_ADDRESS: Final = re.compile(
    r"://([^\s/?#:@]{0,1000}):([^\s/?#@]{1,1000})@(\[[^\]\s]{0,100}\]|[^\s/:?#]{0,300})"
)
_HERE: Final = ("localhost", "127.0.0.1", "[::1]")
_HEADER: Final = re.compile(r"authorization|cookie|(?:^|-)(?:api-?)?(?:key|token|secret)$")
_BEARER: Final = re.compile(r"(?:basic|bearer|token)\s+", re.IGNORECASE)
_NONE: Final = re.compile(
    r"(?:no|not|none|null|empty|dummy|fake|test|example|sample|unused|any|some|your|my|the|change"
    r"|replace|insert|secret|token|password|api[_-]?key|key|ollama|lm[_-]?studio|local|xxx|\*|<|\.)"
    r"(?:$|[^a-z0-9].*|.*(?:here|needed|given|used|required|xxx|\.\.\.|[>*…])$)",
    re.IGNORECASE | re.DOTALL,
)
"""Words in the place of a key that say there is none, or which one is meant."""
_HINT: Final = "Write ${NAME}, and give it with --set NAME=… or in the environment variable NAME."


def literal_keys(document: Document) -> Iterator[Problem]:
    """Yield a warning for each key that stands in a file (AX178). No message shows one."""
    waiting: list[tuple[Any, KeyPath]] = [(document.data, ())]
    while waiting:
        value, keys = waiting.pop()
        if isinstance(value, dict):
            named = reversed(cast("dict[Any, Any]", value).items())
            # most values are short texts: nothing is called for those
            waiting += [
                (each, (*keys, str(key)))
                for key, each in named
                if (len(each) >= _SHORTEST if type(each) is str else isinstance(each, _HOLDERS))
            ]
        elif isinstance(value, list):
            items = reversed([*enumerate(cast("list[Any]", value))])
            waiting += [(each, (*keys, at)) for at, each in items if isinstance(each, _HOLDERS)]
        elif (
            isinstance(value, str)
            and len(value) >= _SHORTEST
            and (what := _written_out(value, keys))
        ):
            message = f"{what} is written out in the file, and known to everybody who can read it."
            yield Problem("AX178", str(document.place(*keys)), message, _HINT, "warning")


def _written_out(text: str, keys: KeyPath) -> str:
    """Return what a text has that should not be in a file; empty: nothing."""
    if _FORM.search(text):
        return "a key"
    for found in _ADDRESS.finditer(text):
        user, password, host = found.groups()
        if "${" not in password and password != user and host not in _HERE and _is_key(password):
            return "the password of an address"
    names = [key for key in keys[-2:] if isinstance(key, str)]
    name = names[-1] if names and names[-1] == keys[-1] else ""
    is_header = len(names) > 1 and names[0].lower() == "headers" and _HEADER.search(name.lower())
    value = _BEARER.sub("", text, 1) if is_header else text
    return f'the secret "{name}"' if (is_header or is_private(name)) and _is_key(value) else ""


def _is_key(text: str) -> bool:
    """Return whether a value is a key, rather than the name of one, words, or a word for none."""
    return (
        len(text) >= _SHORTEST
        and "${" not in text
        and not re.search(r"\s|://", text)
        and not re.fullmatch(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+", text)  # the name of a variable
        and not _NONE.match(text)
    )


__all__ = ["literal_keys"]
