"""Tokens: the callers of a server, their rights, and the runs that they see."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from axil.plugin import CallerSecrets
from axil_serve.errors import NotAllowed, Unserved

Right = Literal["look", "prompts", "run", "answer", "limits", "edit", "audit"]
RIGHTS: Final[tuple[Right, ...]] = ("look", "prompts", "run", "answer")
"""The rights of a caller for which none are named. ``look`` reads runs; ``prompts`` reads what is
inside their nodes, too: what models are asked and reply; ``run`` starts, resumes, cancels and forks
them; ``answer`` answers their questions. Three have to be named: ``limits`` resumes them with other
limits, ``edit`` reads and writes workflow files, ``audit`` reads who did what."""
ALL_RIGHTS: Final[tuple[Right, ...]] = get_args(Right)
_LEAST: Final = 16
_NAME: Final = re.compile(r"[\w.@-]+")  # no "/": it ends the name in the names of sessions


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The owner of a token, or a person who signed in. Its runs belong to its name."""

    name: str
    rights: frozenset[Right] = frozenset(RIGHTS)
    sees_all: bool = False
    """True if it sees the runs of all callers, and those that no server started."""
    way: str = "token"
    """The way in: ``token``, ``session`` or ``jwt``."""
    place: str = ""
    """The address that its request came from."""
    secrets: CallerSecrets | None = field(default=None, repr=False, compare=False)
    """Its own credentials for tools and MCP servers; None: it gave none."""
    has_lapsed: Callable[[], bool] = field(default=_never, repr=False, compare=False)
    """Returns true if its token or session is over by now: a stream to it ends."""

    def check(self, right: Right) -> None:
        """Raises: NotAllowed (AX962): the caller does not have the right."""
        if right not in self.rights:
            message = f'the caller "{self.name}" does not have the right "{right}".'
            raise NotAllowed("AX962", message, "Use a token or a sign-in that has this right.")

    def sees(self, owner: str | None) -> bool:
        """Return whether the caller sees the runs of an owner; None: no server started them."""
        return self.sees_all or owner == self.name


class Access:
    """The callers of a server, found by their tokens. No token is kept, only its digest."""

    def __init__(self, callers: Iterable[tuple[str, Caller]]) -> None:
        """``callers``: each with the SHA-256 digest of its token, in hexadecimal digits.

        Raises: Unserved (AX960): two callers have one name or one token, or a digest is malformed.
        """
        self._callers: list[tuple[bytes, Caller]] = []
        names: set[str] = set()
        for digest, caller in callers:
            try:
                known = bytes.fromhex(digest)
            except ValueError:
                known = b""
            if len(known) != hashlib.sha256().digest_size:
                message = f'the digest of the token of "{caller.name}" is not a SHA-256 digest.'
                raise Unserved("AX960", message, "Write 64 hexadecimal digits.")
            if caller.name in names or any(known == each for each, _ in self._callers):
                message = f'"{caller.name}" has the same name or the same token as another caller.'
                raise Unserved("AX960", message, "Give each caller its own name and its own token.")
            if not is_name(caller.name):
                message = f'"{caller.name}" cannot be the name of a caller.'
                raise Unserved("AX960", message, "Use letters, digits, and any of . _ @ -")
            names.add(caller.name)
            self._callers.append((known, caller))

    @staticmethod
    def of_token(token: str, caller: Caller) -> Access:
        """Return the access of one caller. Raises: Unserved (AX960): the token is too short."""
        return Access([(token_digest(token, caller.name), caller)])

    @staticmethod
    def from_file(path: str | Path, environment: Mapping[str, str] = os.environ) -> Access:
        """Return the callers that a JSON file names.

        ``{"ada": {"env": "ADA_TOKEN", "rights": ["look", "run"], "look": "own"}}``; in place of
        ``env``, ``sha256`` gives the digest of the token.

        Raises: Unserved (AX960): the file cannot be read, or is not such a file.
        """
        try:
            found: Any = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            message = f"the file of tokens {path} cannot be read: {error}."
            raise Unserved("AX960", message, "Write a JSON file of callers by name.") from error
        if not isinstance(found, dict) or not found:
            message = f"the file of tokens {path} names no callers."
            raise Unserved("AX960", message, 'Write {"ada": {"env": "ADA_TOKEN"}}.')
        callers = cast("dict[str, Any]", found)
        return Access(_stated(name, each, environment) for name, each in callers.items())

    @property
    def names(self) -> frozenset[str]:
        """The names of the callers."""
        return frozenset(caller.name for _, caller in self._callers)

    def caller(self, token: str) -> Caller | None:
        """Return the owner of a token; None: no caller has it."""
        given, owner = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest(), None
        for digest, caller in self._callers:  # all of them: the time says nothing about the place
            if hmac.compare_digest(digest, given):
                owner = caller
        return owner


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a caller."""
    return _NAME.fullmatch(text) is not None


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(32)


def token_digest(token: str, name: str) -> str:
    """Return the digest of a token. Raises: Unserved (AX960): it is too short to be one."""
    if len(token) < _LEAST:
        message = f'the token of "{name}" has fewer than {_LEAST} characters.'
        hint = 'Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise Unserved("AX960", message, hint)
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _stated(name: str, given: Any, environment: Mapping[str, str]) -> tuple[str, Caller]:
    stated = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    rights, look = stated.get("rights", list(RIGHTS)), stated.get("look", "own")
    is_list = isinstance(rights, list) and all(
        each in ALL_RIGHTS for each in cast("list[Any]", rights)
    )
    is_known = not stated.keys() - {"env", "sha256", "rights", "look"}
    if not (
        is_known
        and is_list
        and look in ("own", "all")
        and ("env" in stated) != ("sha256" in stated)
    ):
        message = f'the entry of the caller "{name}" is not valid.'
        known = ", ".join(ALL_RIGHTS)
        hint = f"Write env or sha256; rights: a list of {known}; look: own or all."
        raise Unserved("AX960", message, hint)
    caller = Caller(
        name=name,
        rights=frozenset(cast("list[Right]", rights)),
        sees_all=look == "all",
    )
    if "sha256" in stated:
        return str(stated["sha256"]), caller
    variable = str(stated["env"])
    if variable not in environment:
        message = f'the environment variable {variable}, the token of "{name}", is not set.'
        raise Unserved("AX960", message, f"Set it: export {variable}=…")
    return token_digest(environment[variable], name), caller


__all__ = [
    "ALL_RIGHTS",
    "RIGHTS",
    "Access",
    "Caller",
    "Right",
    "is_name",
    "new_token",
    "token_digest",
]
