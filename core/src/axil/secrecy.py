"""Secrets of this process, known by value, and texts without them.

What filled a setting that is a secret is made known (``keep_secret``); it is then replaced wherever
text leaves the process (``without_secrets``). The places where text leaves are few: rows of
journals, recordings, spans, what errors and results say of themselves, records of ``logging``, what
is shown of replies while they arrive, the output of the command, and the answers of servers.

A secret is found as it is, and as JSON, URLs and Python write it, also where these are mixed: a
text is folded, which takes all escapes out of it, and only where the folded text has a secret is
the place of it looked for.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, cast

REDACTED: Final = "[redacted]"
"""The text in the place of a secret."""
_LONGEST_KNOWN: Final = 100_000
"""Characters of a value that is looked for; no key is longer."""
_SHORTEST: Final = 8
"""Letters of a value that is looked for everywhere; a shorter one would be found in ordinary words.
"""
_MOST: Final = 1_000
"""Values that are known at once; the oldest are forgotten."""
_HEAD: Final = 12
"""Letters at the beginning of a key that are enough to find it by."""
_KEY: Final = re.compile(r"(?=.*\d|.+[A-Z])(?=.*[a-z\d])[^\s{}\[\]<>,;]{12}", re.DOTALL)
_DEEPEST: Final = 4
"""The number of times that a text is looked for within escapes within escapes."""
_SCHEME: Final = re.compile(r"(?:basic|bearer|token)\s+(\S+)", re.IGNORECASE)
_URL: Final = re.compile(r"://([^\s/?#:@]{0,1000}):([^\s/?#@]{1,1000})@")
_WORD: Final = re.compile(
    r"(?:^|[\s?&;])(?:password|passwd|sslpassword|api_?key|access_?token|token|secret|sig)"
    r"\s{0,9}=\s{0,9}"
    r"(?:'([^']{1,1000})'|([^\s'&;]{1,1000}))",
    re.IGNORECASE,
)
"""The password in a text of the form ``host=… password=…``, the key in that of a URL."""
_UNFIT: Final = re.compile(r'["\\\x00-\x1f]')
"""Characters that would change the JSON around a text."""
_ESCAPE: Final = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\"'\\/bfnrt]))"
)
_CUT: Final = re.compile(r"(?:\\+(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|%(?:25)*[0-9a-fA-F]?)$")
"""An escape whose end is missing."""
_LONGEST: Final = 2_000
"""Characters at the end of a text in which the beginning of a secret with escapes is looked for."""
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LETTER_OF: Final = {character: letter for letter, character in _LETTERS.items()}
_lock = threading.Lock()
_values: dict[str, str] = {}
_known: tuple[tuple[str, str], ...] = ()
"""Values and what stands in their place, the longest first; replaced as a whole."""


def keep_secret(value: str, shown: str = REDACTED) -> None:
    """Let ``without_secrets`` know a secret of this process.

    With it are known the password of a URL, the token behind ``Bearer``, and how JSON and URLs
    write them. Paths, and what has fewer than 8 characters, are not looked for.
    """
    text = str.__str__(value)
    _keep((text, *_inner(text)), shown)


def forget_secrets() -> None:
    """Forget all secrets of this process: for tests, which share one."""
    global _known
    with _lock:
        _values.clear()
        _known = ()


def keep_password(value: str) -> bool:
    """Let ``without_secrets`` know the password in a URL or a text of connection, and not the rest
    of it; return whether there is one.
    """
    found = tuple(filter(None, _inner(str.__str__(value))))
    _keep(found, REDACTED)
    return bool(found)


def _inner(text: str) -> Iterator[str]:
    """Yield what is a secret by itself in a text that is one."""
    if scheme := _SCHEME.fullmatch(text):
        yield scheme[1]
        if text[:1] in "bB" and text[1:2] in "aA":
            yield _decoded(scheme[1]).partition(":")[2]
    if "=" in text:
        yield from (found[1] or found[2] for found in _WORD.finditer(text))
    for found in _URL.finditer(text):
        from base64 import b64encode
        from urllib.parse import unquote

        yield found[2]
        pair = f"{unquote(found[1])}:{unquote(found[2])}"
        yield b64encode(pair.encode("utf-8", "surrogatepass")).decode()


def _decoded(text: str) -> str:
    from base64 import b64decode

    with suppress(ValueError):
        return b64decode(text).decode()
    return ""


def _keep(found: Sequence[str], shown: str) -> None:
    global _known
    found = [each for each in found if _SHORTEST <= len(each) <= _LONGEST_KNOWN]
    if not found:
        return
    import json
    from urllib.parse import quote, quote_plus, unquote

    forms = [
        form
        for each in (*found, *map(unquote, found))
        for form in (each, json.dumps(each)[1:-1], json.dumps(each, ensure_ascii=False)[1:-1])
    ]
    for each in tuple(forms):
        with suppress(UnicodeEncodeError):  # half a character is in no URL
            forms += (quote(each, safe=""), quote_plus(each))
    shown = REDACTED if _UNFIT.search(shown) else shown
    wanted = {f: shown for f in forms if len(f) >= _SHORTEST and not os.path.isabs(f)}
    if wanted.keys() <= _values.keys():
        return
    with _lock:
        _values.update({form: shown for form in wanted if form not in _values})
        while len(_values) > _MOST:
            del _values[next(iter(_values))]
        _known = tuple(sorted(_values.items(), key=lambda pair: -len(pair[0])))
    _watch_logs()


def without_secrets(value: object, known: Sequence[tuple[str, str]] | None = None) -> Any:
    """Return plain data with what stands for them in the place of secrets of this process.

    ``known``: others, to be looked for as well. Names of mappings stay.

    >>> keep_secret("sk-canary-2", "${KEY}")
    >>> without_secrets({"said": ["Bearer sk-canary-2", 2, "key%3Dsk%2dcanary%2D2"]})
    {'said': ['Bearer ${KEY}', 2, 'key%3D${KEY}']}
    """
    pairs = _known if known is None else (*_known, *known)
    return _covered(value, pairs) if pairs else value


def file_without_secrets(text: str) -> str:
    """Return the text of a workflow file that a model has written, with ``${NAME}`` in the place of
    secrets that have a name; a key that stands in a file itself stays.
    """
    pairs = tuple(pair for pair in _known if pair[1] != REDACTED)
    return _replaced(text, pairs) if pairs else text


def _covered(value: object, pairs: tuple[tuple[str, str], ...]) -> object:
    if isinstance(value, str):
        return _replaced(value, pairs)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {name: _covered(each, pairs) for name, each in items}
    if isinstance(value, (list, tuple)):
        return [_covered(each, pairs) for each in cast("Sequence[Any]", value)]
    return value


def text_without_secrets(text: str) -> str:
    """Return a text with what stands for them in the place of secrets that are written as they are,
    or wholly as JSON or URLs write them: quicker than ``without_secrets`` for long JSON.
    """
    return _replaced(text, _known, is_spelled=False)


def _replaced(
    text: str,
    pairs: tuple[tuple[str, str], ...],
    *,
    is_cut: bool = True,
    is_spelled: bool = True,
) -> str:
    """``is_cut``: the text may have the beginning of a secret alone, which is replaced, too;
    ``is_spelled``: escapes may be mixed.
    """
    found = [each for each in pairs if _head(each[0]) in text]
    for secret, shown in found:
        text = text.replace(secret, shown)
    for secret, shown in found if is_cut else ():
        if _head(secret) in text:
            text = _without_cut(text, re.compile(re.escape(_head(secret))), secret, shown)
    has_escapes = is_spelled and ("\\" in text or "%" in text)
    return _without_spelled(text, pairs, is_cut=is_cut) if has_escapes else text


def _without_spelled(text: str, pairs: tuple[tuple[str, str], ...], *, is_cut: bool) -> str:
    """Return a text without secrets that are written with escapes."""
    plain = _folded(text)
    for secret, shown, forms in _folded_values(pairs):
        if _head(secret) not in plain:
            continue
        for form in forms:
            text = _spelled(form).sub(lambda _, shown=shown: shown, text)
        for form in forms if is_cut else ():
            text = _without_cut(text, _spelled(_head(form)), form, shown)
        plain = _folded(text)
        if secret in plain:  # in a spelling that is none of those
            return _as_data(text, pairs, shown)
    return text


@lru_cache(maxsize=4 * _MOST)
def _head(secret: str) -> str:
    """Return the beginning of a secret by which it is found where a text was cut inside it; all of
    it, where this could be found in ordinary words.
    """
    head = secret[:_HEAD]
    return head if _KEY.fullmatch(head) and "://" not in secret else secret


def _without_cut(text: str, head: re.Pattern[str], secret: str, shown: str) -> str:
    """Return a text without what it has of a secret, from the head on."""
    parts: list[str] = []
    end = 0
    while found := head.search(text, end):
        parts += [text[end : found.start()], shown]
        end = found.end()
        for character in secret[len(_head(secret)) :]:
            if (further := _spelled(character).match(text, end)) is None:
                break
            end = further.end()
    return "".join([*parts, text[end:]])


def _as_data(text: str, pairs: tuple[tuple[str, str], ...], shown: str) -> str:
    """Return a text as JSON with the secrets of each value replaced; if it is none, ``shown``."""
    import json

    if text[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return json.dumps(_covered(json.loads(text), pairs))
    return shown


def has_secrets() -> bool:
    """Return whether this process knows any secret."""
    return bool(_known)


def shown_and_held(text: str) -> tuple[str, str]:
    """Return what may be shown of a text of which more may come, without secrets; and the end that
    may be the beginning of a secret.

    >>> keep_secret("canary-3")
    >>> shown_and_held("the key is canar"), shown_and_held("no")
    (('the key is ', 'canar'), ('no', ''))
    """
    text = _replaced(text, _known, is_cut=False)
    end = len(text) - _held_back(text)
    return without_secrets(text[:end]), text[end:]


def _held_back(text: str) -> int:
    most = 0
    for secret, _ in _known:
        # where the first letter of a secret is, from the longest end on
        at = text.find(secret[0], max(0, len(text) - len(secret) + 1))
        while 0 <= at < len(text) - most:
            if secret.startswith(text[at:]):
                most = len(text) - at
            at = text.find(secret[0], at + 1)
    return max(most, _spelled_end(text)) if "%" in text or "\\" in text else most


def _spelled_end(text: str) -> int:
    """Return the same for secrets that are written with escapes, of which the last may be cut."""
    wanted = [secret for secret, _, _ in _folded_values(_known)]
    first = {"%", "\\", *(secret[0] for secret in wanted)}
    end = text[-_LONGEST:]
    for at, character in enumerate(end):
        if character in first:
            plain = _folded(_CUT.sub("", end[at:])).rstrip("\ufffd")
            if any(secret.startswith(plain) for secret in wanted):
                return len(end) - at
    return 0


# ------------------------------------------------------------------------------------- spellings


def _folded(text: str) -> str:
    r"""Return a text without the escapes of JSON, URLs and Python.

    >>> _folded(r"a\"b%2522 \u00e4")
    'a"b" ä'
    """
    from urllib.parse import unquote

    for _ in range(_DEEPEST):
        before = text
        if "\\" in text:
            text = _ESCAPE.sub(_unescaped, text)
        if "%" in text:
            text = unquote(text)
        if text == before:
            break
    return text


def _unescaped(found: re.Match[str]) -> str:
    if found[5]:
        return _LETTERS.get(found[5], found[5])
    if found[1]:
        return chr(0x10000 + (int(found[1], 16) - 0xD800) * 0x400 + int(found[2], 16) - 0xDC00)
    return chr(int(found[3] or found[4], 16))


@lru_cache(maxsize=8)
def _folded_values(
    pairs: tuple[tuple[str, str], ...],
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the values in their folded form, each once, the longest first; with what stands in
    their place, and the forms that fold to it.
    """
    folded: dict[str, tuple[str, list[str]]] = {}
    for secret, shown in pairs:
        if len(plain := _folded(secret)) >= _SHORTEST:
            folded.setdefault(plain, (shown, []))[1].append(secret)
    found = ((plain, shown, (*forms, plain)) for plain, (shown, forms) in folded.items())
    return tuple(sorted(found, key=lambda each: -len(each[0])))


_BACK: Final = r"(?:\\|%(?:25)*5[cC])"
"""A backslash, as it is or as URLs write it."""


@lru_cache(maxsize=1_000)
def _spelled(secret: str) -> re.Pattern[str]:
    """Return the pattern of all spellings of a value."""
    return re.compile("".join(map(_spellings, secret)))


def _spellings(character: str) -> str:
    code = ord(character)
    pairs = character.encode("utf-16-be", "surrogatepass")
    units = [pairs[at : at + 2].hex() for at in range(0, len(pairs), 2)]
    urls = "".join(
        f"%(?:25)*(?i:{byte:02x})" for byte in character.encode("utf-8", "surrogatepass")
    )
    ways = [
        urls,
        "".join(f"{_BACK}+u(?i:{unit})" for unit in units),
        f"{_BACK}*{re.escape(character)}" if character in "\"'/" else re.escape(character),
    ]
    if code < 0x100:
        ways.append(f"{_BACK}+x(?i:{code:02x})")
    if character in _LETTER_OF:
        ways.append(f"{_BACK}+{_LETTER_OF[character]}")
    if character in "\"'/":
        ways.append(f"{_BACK}+{urls}")
    if character == "\\":
        ways.append(f"{_BACK}+")
    return f"(?:{'|'.join(ways)})"


# ------------------------------------------------------------------------------------- logs


def _watch_logs() -> None:
    """Let records of ``logging`` be made without secrets, from the first secret on.

    All of them: libraries log the addresses that they ask, and the arguments of calls.
    """
    import logging

    before = logging.getLogRecordFactory()
    if getattr(before, "is_without_secrets", False):
        return

    def record(*args: object, **kwargs: object) -> logging.LogRecord:
        made = before(*args, **kwargs)
        with suppress(Exception):  # a message that does not fit its arguments: ``logging`` says so
            said = made.getMessage()
            if (left := without_secrets(said)) != said:
                made.msg, made.args = left, ()
        if made.exc_info and made.exc_info[0] is not None and not made.exc_text:
            said = logging.Formatter().formatException(made.exc_info)
            if (left := without_secrets(said)) != said:
                made.exc_text = left
        return made

    record.is_without_secrets = True  # type: ignore[attr-defined]  # a mark, for the next call
    logging.setLogRecordFactory(record)


__all__ = [
    "REDACTED",
    "file_without_secrets",
    "has_secrets",
    "keep_password",
    "keep_secret",
    "shown_and_held",
    "without_secrets",
]
