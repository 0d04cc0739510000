"""Variables of workflow files: ``${NAME}`` in a document, replaced by values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from axil import Problem
from axil.plugin import (
    FromEnvironment,
    Grants,
    Place,
    Want,
    did_you_mean,
    format_names,
    is_private,
    keep_password,
    keep_secret,
    note_want,
)
from axil_files.documents import MAX_DEPTH, MAX_SIZE, Document, KeyPath, too_deep, too_large

_MAKERS_KEY: Final = re.compile(r"[A-Z0-9]+_API_KEY")
_FILLED: Final = re.compile(r"\b(?:basic|bearer)\s+\$\{|://[^/\s@]*\$\{[^/\s]*@", re.IGNORECASE)
"""A text in which a variable is a token, or the password of a URL."""
PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z0-9_]+)\}")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A document without placeholders."""

    document: Document
    environment: tuple[str, ...]
    """The names of the environment variables that it took values from."""
    secrets: tuple[str, ...] = ()
    """The names of the variables that are the whole of a setting which is secret by its name."""


def resolve(
    document: Document,
    variables: Mapping[str, Any],
    environment: Mapping[str, str],
    report: Callable[[Problem], None],
    grants: Grants | None = None,
) -> Resolved:
    """Replace ``${NAME}`` in all values: a text that is one placeholder takes the variable's value
    and type, else its text.

    Variables may use variables. Other names are looked up in the environment; what comes from there
    is marked (``FromEnvironment``) and not searched for placeholders. Reported are unknown names,
    each once with all its places, circles, and names of the environment that ``grants`` does not
    hold (AX138). Raises: SpecError (AX110, AX144): values that grow without bound.
    """
    work, data = _Resolver(document, variables, environment, report, grants), document.data
    if isinstance(data, dict):
        data = {key: value for key, value in cast("dict[str, Any]", data).items() if key != "vars"}
    if "${" in repr(data):  # which is found sooner than by a walk through all values
        work.find_secrets(data, ())
        data = work.walk(data, ())
    work.tell_unknown()
    return Resolved(
        Document(data=data, lines=document.lines, name=document.name),
        tuple(sorted(work.used)),
        tuple(sorted(work.secrets)),
    )


class _Resolver:
    def __init__(
        self,
        document: Document,
        variables: Mapping[str, Any],
        environment: Mapping[str, str],
        report: Callable[[Problem], None],
        grants: Grants | None,
    ) -> None:
        self._document, self._variables, self._environment = document, variables, environment
        self._report, self._grants = report, grants
        self._withheld: set[str] = set()
        self.secrets: set[str] = set()
        self._known: dict[str, Any] = {}  # each variable is resolved once, however often it is used
        self._open: list[str] = []
        self._depth = 0  # of the values that the open variables are used in
        self._unknown: dict[str, list[Place]] = {}
        self.used: set[str] = set()

    def find_secrets(self, value: Any, keys: KeyPath, *, is_secret: bool = False) -> None:
        """Note the variables that fill secrets, also by way of others, before any is used."""
        if isinstance(value, dict):
            for key, item in cast("dict[str, Any]", value).items():
                self.find_secrets(item, (*keys, key), is_secret=is_secret)
        elif isinstance(value, list):
            for number, item in enumerate(cast("list[Any]", value)):
                self.find_secrets(item, (*keys, number), is_secret=is_secret)
        elif isinstance(value, str) and "${" in value and (is_secret or _is_secret(value, keys)):
            for name in {found[1] for found in PLACEHOLDER.finditer(value)} - self.secrets:
                self.secrets.add(name)
                self.find_secrets(self._variables.get(name), ("vars", name), is_secret=True)

    def walk(self, value: Any, keys: KeyPath) -> Any:
        if isinstance(value, str):
            return self.text(value, keys) if "${" in value else value
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {key: self.walk(item, (*keys, key)) for key, item in members.items()}
        if isinstance(value, list):
            return [self.walk(v, (*keys, i)) for i, v in enumerate(cast("list[Any]", value))]
        return value

    def text(self, text: str, keys: KeyPath) -> Any:
        if whole := PLACEHOLDER.fullmatch(text):
            return self.value(whole[1], keys, is_whole=True)
        parts: list[str] = []
        end = size = 0
        marked = False
        for found in PLACEHOLDER.finditer(text):
            value = self.value(found[1], keys)
            marked = marked or isinstance(value, FromEnvironment)
            parts += [text[end : found.start()], _as_text(value)]
            end = found.end()
            size += len(parts[-1])
            if size > MAX_SIZE:
                message = f"variables make more than {MAX_SIZE} characters of it."
                raise too_large(self._document.place(*keys), message)
        joined = "".join([*parts, text[end:]])
        return FromEnvironment(joined, text) if marked else joined

    def value(self, name: str, keys: KeyPath, *, is_whole: bool = False) -> Any:
        """Return the value of a name; its placeholder where there is none. ``is_whole``: nothing
        stands beside it.
        """
        found = "${" + name + "}"
        if name in self._known:
            return self._known[name]
        if name in self._variables:
            if name in self._open or len(self._open) >= MAX_DEPTH:
                begun = self._open.index(name) if name in self._open else 0
                circle = " → ".join([*self._open[begun:], name])
                message = f"the variable {name} needs itself: {circle}."
                where = str(self._document.place(*keys))
                self._report(Problem("AX147", where, message, "Give one of them a plain value."))
                return found
            inside = max(0, len(keys) - 2)
            self._depth += inside
            if self._depth > MAX_DEPTH:
                message = f"variables nest deeper than {MAX_DEPTH} levels."
                raise too_deep(self._document.place(*keys), message)
            self._open.append(name)
            value = self.walk(self._variables[name], ("vars", name))
            self._open.pop()
            self._depth -= inside
        elif name in self._environment:
            if self._grants is not None and not self._grants.allows(f"env:{name}"):
                is_key = is_whole and bool(keys) and keys[-1] == "api_key"
                if not (is_key and _MAKERS_KEY.fullmatch(name)):
                    self.withhold(name, keys)
                return found
            status = "own" if self._grants is None else "granted"
            where = str(self._document.place(*keys))
            note_want(Want(word=f"env:{name}", where=where, status=status))
            self.used.add(name)
            value = FromEnvironment(self._environment[name], "${" + name + "}")
        else:
            self._unknown.setdefault(name, []).append(self._document.place(*keys))
            return found
        if isinstance(value, str) and (name in self.secrets or is_private(name)):
            keep_secret(value, "${" + name + "}")
            value = FromEnvironment(value, "${" + name + "}")
        elif isinstance(value, str) and keep_password(value):  # of an address
            value = FromEnvironment(value, "${" + name + "}")
        self._known[name] = value
        return value

    def withhold(self, name: str, keys: KeyPath) -> None:
        """Report a variable that the file may not read.

        A maker's key, as the whole of an ``api_key``, is none: it stays a reference, and the
        adapter that gets it decides whether it goes to its maker.
        """
        if name not in self._withheld:
            self._withheld.add(name)
            problem = Problem(
                "AX138",
                str(self._document.place(*keys)),
                f"the workflow file tries to read the environment variable {name}.",
                f"Allow it if you trust the workflow: --allow env:{name}; "
                f"or give a value: --set {name}=…",
            )
            want = Want(word=f"env:{name}", where=problem.where, status="missing", problem=problem)
            if not note_want(want):
                self._report(problem)

    def tell_unknown(self) -> None:
        """Report what nothing is known for."""
        for name, (first, *others) in self._unknown.items():
            hint = did_you_mean(name, self._variables) or (
                f"Add it to vars, give it with --set {name}=…, "
                f"or set the environment variable {name}."
            )
            lines = dict.fromkeys(f"line {at.line}" if at.line else at.path for at in others)
            also = f", nor at {format_names(list(lines))}" if lines else ""
            message = f"there is no value for ${{{name}}}{also}."
            self._report(Problem("AX146", str(first), message, hint))


def _is_secret(text: str, keys: KeyPath) -> bool:
    """Return whether what fills a text is a secret, by the name of its setting or by the text."""
    names = [key for key in keys[-2:] if isinstance(key, str)]
    return (
        any(is_private(name) for name in names)
        or any(name.lower() == "headers" for name in names[:-1])
        or _FILLED.search(text) is not None
    )


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)
