"""The place of runs: the journal that a command uses, and the data beside each run that it needs to
resume.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any, Final

from axil import AxilError, Workflow
from axil.plugin import (
    FromEnvironment,
    JournalError,
    UnknownComponent,
    make_component,
    without_secrets,
)
from axil_cli.arguments import JOURNAL_FOLDER
from axil_cli.command import Session, misuse, problems_of
from axil_cli.source import hooked
from axil_files import PythonTarget, load, load_spec as read, python_target, spec_changes

_OFF: Final = ("off", "none", "no", "0")
_UNREADABLE: Final = ("AX513", "AX514", "AX515")
"""Errors of keys: a journal that is encrypted is never left out silently."""


def opened(
    options: argparse.Namespace, session: Session, *, needed: str = "", kept: bool = False
) -> Any:
    """Return the journal, or None: nothing is kept.

    ``needed``: what cannot do without; empty: where the journal cannot be used and was not asked
    for, the reason is shown, and the run goes on. ``kept``: a folder that is named has to be there.
    Raises: ConfigError, UnknownComponent, JournalError.
    """
    named = options.journal or os.environ.get("AXIL_JOURNAL", "")
    where = named or JOURNAL_FOLDER
    if where.lower() in _OFF:
        if needed:
            raise misuse(needed, "runs are kept nowhere.", "Name a folder with --journal.")
        return None
    if kept and named and "://" not in named and not os.path.isdir(named):
        raise misuse("--journal", f'there is no folder "{named}".', "Name one with runs in it.")
    cipher = _cipher(session)
    try:
        kind, settings = _place(where)
        found = session.registry.resolve("journals", kind, "--journal")
        journal: Any = make_component(found, settings, "--journal")
        if cipher is not None:
            journal.cipher = cipher
        journal.infos([])
    except UnknownComponent:
        if needed or named:
            raise
        return None
    except JournalError as error:
        if needed or named or error.id in _UNREADABLE:
            raise
        session.tell(
            f"warning: {error.message} The run is kept nowhere; --journal DIR names another "
            "place, --journal off none."
        )
        return None
    return journal


def _place(where: str) -> tuple[str, dict[str, str]]:
    """Return the journal that a place names, and its settings: a folder, or an address.

    >>> _place("postgresql://host/name"), _place("runs")
    (('postgresql', {'url': 'postgresql://host/name'}), ('sqlite', {'folder': 'runs'}))
    """
    scheme, separator, _ = where.partition("://")
    return (scheme, {"url": where}) if separator else ("sqlite", {"folder": where})


def _cipher(session: Session) -> Any:
    """Return the cipher of the journal, where its key is set; else None.

    Raises: UnknownComponent: none is installed.
    """
    for variable in ("AXIL_JOURNAL_KEY", "AXIL_JOURNAL_KEY_FILE"):
        if os.environ.get(variable):
            found = session.registry.resolve("ciphers", "aes", f"${variable}")
            return make_component(found, {}, f"${variable}")
    return None


def origin(
    file: str, workflow: Workflow, reading: dict[str, Any], functions: str | None = None
) -> dict[str, Any]:
    """Return the part of a file that is kept with a run: its texts, those that it includes among
    them, so that the run continues with what it began with. Of a graph in Python: its name, and a
    digest of its file.

    Args:
        functions: the folder of functions of one's own, which is kept by its name.
    """
    folder = None if functions is None else os.path.realpath(functions)
    workflow.plan  # noqa: B018  # what the file includes is read when it is compiled
    python = python_target(file)
    if python is not None:
        return {
            "python": python.kept,
            "folder": python.folder,
            "digests": python.sources,
            "vars": {},
            "allow_code": True,
            "functions": folder,
        }
    variables: dict[str, Any] = dict(reading.get("vars") or {})
    declared = {*workflow.spec.extras.get("secrets", ()), *(reading.get("secret_vars") or ())}
    secret = {
        name
        for name, value in variables.items()
        if name in declared or isinstance(value, FromEnvironment) or without_secrets(value) != value
    }
    kept = {
        "file": os.path.realpath(file),
        "texts": dict(workflow.spec.extras.get("texts", {})),
        "vars": {
            name: value.template if isinstance(value, FromEnvironment) else value
            for name, value in variables.items()
            if name not in secret
        },
        "secret_vars": sorted(secret),
    }
    allow: list[str] = sorted(reading.get("allow") or ())
    return {**kept, "allow": allow, "allow_code": "code" in allow, "functions": folder}


def source_of(kept: dict[str, Any]) -> str:
    """Return the source of a run's workflow: a file, or a graph in Python; empty: neither."""
    return str(kept.get("python") or kept.get("file") or "")


def reopened(
    kept: dict[str, Any],
    session: Session,
    *,
    allow: frozenset[str],
    current: bool = False,
    hooks: Any = None,
) -> Workflow:
    """Return the workflow of a run, as it was when the run began. ``current``: as its files are
    now.

    Raises: ConfigError: the run was not begun from a file; it used code, which is not allowed now.
    """
    python = _python(kept)
    if not source_of(kept):
        raise misuse(
            "RUN",
            "the run was not begun from a workflow file.",
            "Resume it where it was begun: graph.resume(…).",
        )
    # a graph in Python is code, whatever the journal says of it
    if (python is not None or kept.get("allow_code")) and "code" not in allow:
        message = (
            "the run was begun with leave to run code."
            if python is None
            else f"the run is that of the graph {python.text}, which is code."
        )
        raise misuse("--allow-code", message, "Give leave again: add --allow code.")
    wanted = hooks or session.hooks
    if python is not None:
        return hooked(python.load(), wanted)
    texts = {} if current else dict(kept["texts"])
    return load(
        kept["file"],
        registry=session.registry,
        hooks=wanted,
        vars=_variables(kept),
        allow=allow,
        texts=texts,
        functions=kept.get("functions") if session.functions is None else None,
    )


def _python(kept: dict[str, Any]) -> PythonTarget | None:
    named = kept.get("python")
    return python_target(str(named), folder=str(kept["folder"])) if named else None


def _variables(kept: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of a run; those that are secret are not kept, and are in the environment
    or given again.

    Raises: ConfigError (AX700): one is not.
    """
    found: dict[str, Any] = dict(kept["vars"])
    for name in kept.get("secret_vars", ()):
        if name not in found and name not in os.environ:
            raise misuse(
                name,
                "the run was begun with this secret, which is not kept.",
                f"Set the environment variable {name}.",
            )
        if name not in found:
            found[name] = FromEnvironment(os.environ[name], "${" + name + "}")
    return found


def changed(kept: dict[str, Any]) -> list[str]:
    """Return the files of a run that are not what they were, or are gone."""
    python = _python(kept)
    if python is not None:
        before: dict[str, str] = kept.get("digests", {})
        return [os.path.basename(name) for name in before if python.sources != before]
    root = os.path.dirname(kept.get("file", ""))
    texts: dict[str, str] = kept.get("texts", {})
    return [name for name, text in texts.items() if _text(os.path.join(root, name)) != text]


def differences(kept: dict[str, Any], session: Session, *, allow: frozenset[str]) -> list[str]:
    """Return the differences, in lines, between the graph that a run began with and that of its
    files now; or why they are unknown.
    """
    if kept.get("python"):
        return ["a graph in Python goes on as it is now"]
    ways: dict[str, Any] = {
        "registry": session.registry,
        "vars": _variables(kept),
        "allow": allow,
    }
    try:
        before = read(kept["file"], texts=dict(kept["texts"]), **ways)
        now = read(kept["file"], **ways)
    except AxilError as error:
        return [f"the graph as it is now cannot be read: {problems_of(error)[0]}"]
    return spec_changes(before, now) or [
        "nothing in the graph itself; perhaps in one that it includes"
    ]


def way_on(
    doing: str, session: Session, options: argparse.Namespace, leave: Iterable[str] = ()
) -> str:
    """Return a command of ``axil runs``, with the journal and the leave that it needs."""
    place = getattr(options, "journal", None)
    kept = f" --journal {quote(place)}" if place else ""
    allowed = "".join(f" --allow {quote(each)}" for each in sorted(set(leave)))
    return f"{session.program} runs {doing}{kept}{allowed}"


def leave_of(kept: Mapping[str, Any]) -> set[str]:
    """Return the leave that a run was begun with."""
    return {*kept.get("allow", ()), *(("code",) if kept.get("allow_code") else ())}


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None
