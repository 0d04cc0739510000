"""``aes``: AES-256-GCM, with keys from the environment or a file.

A sealed text is a byte for the format, four bytes that identify the key, a random nonce of twelve
bytes, and the ciphertext with its tag. Keys for sealing and for digests are derived from each key.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import EnvName, JournalError, NotInstalled, install_advice

if TYPE_CHECKING:
    from axil_journals.keywords import AesKeywords

_FORMAT: Final = b"\x01"
_NONCE: Final = 12
_HEAD: Final = 5
"""Bytes of the format and of the key's id."""
_MAKE: Final = "openssl rand -base64 32"


class Settings(BaseModel):
    """The settings of the cipher."""

    model_config = ConfigDict(extra="forbid")

    variable: EnvName = Field(
        default="AXIL_JOURNAL_KEY",
        description="The environment variable that holds the keys.",
    )
    file: Path | None = Field(
        default=None,
        description="A file that holds the keys, readable by its user alone; it has priority "
        "over the environment. Without it: the file that the environment variable `variable` + "
        "`_FILE` names.",
    )


class _Key(NamedTuple):
    id: bytes
    seals: Any
    """An ``AESGCM``."""
    digests: bytes


class Aes:
    """AES-256-GCM for journals: a ``Cipher``.

    A key has 32 bytes in Base64. Of several, on lines or separated by spaces, the first one seals
    and each opens, so that a new key is put before the old one, which is removed when no run that
    it sealed is left. Keys are read at the first use, which needs the library cryptography.

    Raises: NotInstalled (AX306); JournalError: AX513, AX514.
    """

    Config = Settings

    def __init__(self, config: Settings | None = None, **settings: Unpack[AesKeywords]) -> None:
        self.config = Settings.model_validate(settings) if config is None else config

    def seal(self, text: bytes, about: bytes) -> bytes:
        key, nonce = self._first, os.urandom(_NONCE)
        sealed: bytes = key.seals.encrypt(nonce, text, about)
        return _FORMAT + key.id + nonce + sealed

    def open(self, sealed: bytes, about: bytes) -> bytes:
        key = self._keys.get(sealed[1:_HEAD]) if sealed[:1] == _FORMAT else None
        if key is None:
            raise JournalError(
                f"this was encrypted with the key {sealed[1:_HEAD].hex()}, which is not among the "
                f"keys of {self._given()[0]}: {', '.join(id.hex() for id in self._keys)}.",
                id="AX514",
                hint="Add the key of the journal after the first key, which encrypts.",
            )
        from cryptography.exceptions import InvalidTag

        nonce = sealed[_HEAD : _HEAD + _NONCE]
        try:
            opened: bytes = key.seals.decrypt(nonce, sealed[_HEAD + _NONCE :], about)
        except (InvalidTag, ValueError):
            message = "an encrypted text was changed or belongs to another entry."
            hint = "Keep a copy of the journal, and restore a backup."
            raise JournalError(message, id="AX514", hint=hint) from None
        return opened

    def digest(self, text: bytes) -> bytes:
        return hashlib.blake2b(text, digest_size=24, key=self._first.digests).digest()

    def is_current(self, sealed: bytes) -> bool:
        return sealed[:_HEAD] == _FORMAT + self._first.id

    @property
    def _first(self) -> _Key:
        return next(iter(self._keys.values()))

    @cached_property
    def _keys(self) -> Mapping[bytes, _Key]:
        place, text = self._given()
        found = [_key(word, place) for word in text.split()]
        if not found:
            raise _unusable(f"{place} contains no key", f"Write the output of `{_MAKE}` there.")
        return {key.id: key for key in found}

    def _given(self) -> tuple[str, str]:
        """Return the place of the keys, and its text."""
        variable = self.config.variable
        named = self.config.file or os.environ.get(f"{variable}_FILE")
        if named:
            return f"the file {named}", _private_text(Path(named))
        if text := os.environ.get(variable):
            return f"${variable}", text
        raise _unusable(
            f"neither ${variable} nor ${variable}_FILE is set",
            f"Set ${variable} to a key or ${variable}_FILE to a file that contains one; "
            f"`{_MAKE}` makes a key.",
        )

    def __repr__(self) -> str:
        return f"Aes({self.config!r})"


def _key(word: str, place: str) -> _Key:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        message = "encryption needs the library cryptography, which is not installed."
        raise NotInstalled(message, hint=install_advice("axil-journals[encryption]")) from error
    try:
        raw = base64.b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        raw = b""
    if len(raw) != 32:  # it is not shown: it may be a key with a typing error
        raise _unusable(f"a key in {place} is not 32 bytes in Base64", f"`{_MAKE}` makes a key.")

    def derived(use: bytes, size: int) -> bytes:
        return hashlib.blake2b(key=raw, person=use, digest_size=size).digest()

    return _Key(
        derived(b"axil id", 4), AESGCM(derived(b"axil seal", 32)), derived(b"axil name", 32)
    )


def _private_text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name != "nt" and stat.S_IMODE(mode) & 0o077:
                found = f"can be read or changed by other users (mode {stat.S_IMODE(mode):04o})"
                raise _unusable(f"the file {path} {found}", f"chmod 600 {path}")
            return file.read(65_536)
    except OSError as error:
        fact = f"the file {path} cannot be read: {error.strerror or error}"
        raise _unusable(fact, "Check the path and the permissions.") from None


def _unusable(fact: str, hint: str) -> JournalError:
    return JournalError(f"there is no usable key: {fact}.", id="AX513", hint=hint)
