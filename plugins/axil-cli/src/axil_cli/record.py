"""The place of runs: the journal that a command uses, and the data beside each run that it needs to
resume.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from shlex import quote
from typing import Any, Final

from axil import AxilError, SpecError, Workflow
from axil.plugin import (
    FromEnvironment,
    JournalError,
    UnknownComponent,
    format_names,
    make_component,
    without_secrets,
)
from axil_cli.arguments import JOURNAL_FOLDER
from axil_cli.command import Session, misuse, problems_of
from axil_cli.leave import changed_functions, digests_of, is_sealed, sealed
from axil_cli.source import hooked
from axil_files import PythonTarget, load, load_spec, python_target, spec_changes

_OFF: Final = ("off", "none", "no", "0")
_SHOWN: Final = 5  # of several runs that begin so
_LISTED: Final = "axil runs list shows them."
_MORE: Final = {
    "direct_url": "AXIL_JOURNAL_DIRECT",
    "objects": "AXIL_JOURNAL_OBJECTS",
    "retain_days": "AXIL_JOURNAL_RETAIN_DAYS",
}
"""Settings of a journal at an address, and the variables that have them."""
_UNREADABLE: Final = ("AX513", "AX514", "AX515")
"""Errors of keys: a journal that is encrypted is never left out silently."""


def opened(
    options: argparse.Namespace, session: Session, *, needed: str = "", kept: bool = False
) -> Any:
    """Return the journal, or None: nothing is kept.

    ``needed``: what cannot do without; empty: a usual journal that cannot be used is a warning.
    ``kept``: a folder that is named has to be there.
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
        journal = _made(where, session, cipher)
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


def damaged(options: argparse.Namespace, session: Session) -> Any:
    """Return the journal that is named, which may not be able to be opened. Raises: ConfigError."""
    where: str = options.journal or os.environ.get("AXIL_JOURNAL", "") or JOURNAL_FOLDER
    return _made(where, session, _cipher(session))


def _made(where: str, session: Session, cipher: Any) -> Any:
    """Return a journal that was not yet opened. Raises: ConfigError, UnknownComponent."""
    kind, settings = _place(where)
    found = session.registry.resolve("journals", kind, "--journal")
    journal: Any = make_component(found, settings, "--journal")
    if cipher is not None:
        journal.cipher = cipher
    return journal


def _place(where: str) -> tuple[str, dict[str, str]]:
    """Return the journal that a place names, and its settings: a folder, or an address.

    >>> _place("postgresql://host/name"), _place("runs")
    (('postgresql', {'url': 'postgresql://host/name'}), ('sqlite', {'folder': 'runs'}))
    """
    scheme, separator, _ = where.partition("://")
    if not separator:
        return "sqlite", {"folder": where}
    more = {name: os.environ.get(variable, "") for name, variable in _MORE.items()}
    return scheme, {"url": where, **{name: value for name, value in more.items() if value}}


def _cipher(session: Session) -> Any:
    """Return the cipher of the journal, where its key is set; else None.

    Raises: UnknownComponent: none is installed.
    """
    for variable in ("AXIL_JOURNAL_KEY", "AXIL_JOURNAL_KEY_FILE"):
        if os.environ.get(variable):
            found = session.registry.resolve("ciphers", "aes", f"${variable}")
            return make_component(found, {}, f"${variable}")
    return None


def find_run(journal: Any, name: str) -> str:
    """Return the id of the run that is called ``name``, or the only one that begins so.

    Raises: JournalError (AX503): none, or several.
    """
    if journal.infos([name]):
        return name
    near: list[str] = list(journal.named(name, _SHOWN + 1)) if name else []
    if len(near) == 1:
        return near[0]
    if not near:
        raise unknown_run(name)
    message = f'several runs begin with "{name}": {", ".join(near[:_SHOWN])}.'
    raise JournalError(message, id="AX503", hint=_LISTED)


def unknown_run(name: str) -> JournalError:
    """Return the error of a name that no run has."""
    return JournalError(f'the journal knows no run "{name}".', id="AX503", hint=_LISTED)


def origin(
    file: str, workflow: Workflow, reading: Mapping[str, Any], functions: str | None = None
) -> dict[str, Any]:
    """Return what is kept with a run, so that it continues with what it began with: the texts of
    its file and of those it includes; of a graph in Python its name, and a digest of its file.

    ``functions``: the folder of functions, which is kept by its name.
    """
    workflow.plan  # noqa: B018  # what the file includes is read when it is compiled
    leave = {"allow": sorted(reading.get("allow") or ()), **_functions(functions)}
    if (python := python_target(file)) is not None:
        kept = {
            "python": python.kept,
            "folder": python.folder,
            "digests": python.sources,
            "vars": {},
        }
        return sealed({**kept, **leave, "allow_code": True})
    declared = {*workflow.spec.extras.get("secrets", ()), *(reading.get("secret_vars") or ())}
    kept = {
        "file": os.path.realpath(file),
        "texts": dict(workflow.spec.extras.get("texts", {})),
        **_kept_variables(reading, declared),
    }
    return sealed({**kept, **leave, "allow_code": "code" in leave["allow"]})


def _functions(folder: str | None) -> dict[str, Any]:
    """Return what is kept of a folder of functions."""
    if folder is None:
        return {"functions": None}
    real = os.path.realpath(folder)
    return {"functions": real, "function_digests": digests_of(real)}


def _kept_variables(reading: Mapping[str, Any], declared: Collection[str]) -> dict[str, Any]:
    """Return what is kept of variables: of secrets their names."""
    variables: dict[str, Any] = dict(reading.get("vars") or {})
    secret = {
        name
        for name, value in variables.items()
        if name in declared or isinstance(value, FromEnvironment) or without_secrets(value) != value
    }
    return {
        "vars": {
            name: value.template if isinstance(value, FromEnvironment) else value
            for name, value in variables.items()
            if name not in secret
        },
        "secret_vars": sorted(secret.union(reading.get("secret_vars") or ())),
    }


def continued(
    kept: Mapping[str, Any], reading: Mapping[str, Any], session: Session
) -> dict[str, Any]:
    """Return what is kept with a run that goes on: what was, with the settings and the leave of
    this time.

    ``reading``: ``vars`` and ``allow``, as for ``origin``.
    """
    from axil_cli.launch import kept_options, remaining

    given = {**kept, "vars": {**kept.get("vars", {}), **reading["vars"]}}
    found = {**kept, **_kept_variables(given, kept.get("secret_vars", ()))}
    allow: frozenset[str] = reading["allow"]
    found |= {"allow": sorted(allow), "allow_code": bool(kept.get("python")) or "code" in allow}
    if (folder := session.functions or kept.get("functions")) and "code" in allow:
        found |= _functions(folder)
    options = {
        **{
            name: data
            for name, _, data in remaining(
                kept.get("options", {}), session.registry, session.options
            )
        },
        **kept_options(session.options),
    }
    found.pop("options", None)
    return sealed({**found, "options": options} if options else found)


def granted(kept: Mapping[str, Any], given: frozenset[str], session: Session) -> frozenset[str]:
    """Return the leave of a run that goes on as it began: what is given now, and what this user
    gave before and is kept with the run.

    Raises: ConfigError (AX700): its functions are not what they were, and code is not allowed now.
    """
    if not is_kept(kept):  # nothing that it says is to be relied on
        return given
    words = given | leave_of(kept)
    if session.functions is None and (files := changed_functions(kept)):
        shown = format_names(files, 5)
        what = f"since the run began, functions in {kept['functions']} have changed: {shown}"
        if "code" not in given:
            hint = "Look at them; then give leave again: add --allow code."
            raise misuse("--functions", f"{what}.", hint)
        session.tell(f"note: {what}.")
    return words


def is_kept(kept: Mapping[str, Any]) -> bool:
    """Return whether the leave of a run holds without being given again."""
    python = _python(kept)
    # of a module by its name nothing says what it was
    is_same = python is None or bool(python.sources and python.sources == kept.get("digests"))
    return is_same and is_sealed(kept)


def needed_leave(kept: Mapping[str, Any]) -> set[str]:
    """Return the leave that has to be given again where a run goes on as it began."""
    return set() if is_kept(kept) else leave_of(kept)


def source_of(kept: Mapping[str, Any]) -> str:
    """Return the source of a run's workflow: a file, or a graph in Python; empty: neither."""
    return str(kept.get("python") or kept.get("file") or "")


def reopened(
    kept: Mapping[str, Any],
    session: Session,
    *,
    allow: frozenset[str],
    current: bool = False,
    hooks: Any = None,
) -> Workflow:
    """Return the workflow of a run, as it was when the run began; ``current``: as its files are.

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


def installed(pins: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the versions that are installed of the distributions to which a run is pinned."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, dict[str, str]] = {}
    for name in pins:
        with suppress(PackageNotFoundError):
            found[name] = {"version": version(name)}
    return found


def unfit(
    error: AxilError, before: Mapping[str, Any], now: Mapping[str, dict[str, str]]
) -> AxilError:
    """Return the error of a run whose files cannot be read, where other plugins may be why: AX524;
    else ``error``.
    """
    from axil_journals import version_changes  # journals, which a first run may do without

    changes = version_changes(before, now) if isinstance(error, SpecError) else ()
    if not changes:
        return error
    message = f"the run was begun with other plugins: {'; '.join(changes)}. They cannot read what "
    return JournalError(f"{message}it began with: {error}", id="AX524")


def _python(kept: Mapping[str, Any]) -> PythonTarget | None:
    named = kept.get("python")
    return python_target(str(named), folder=str(kept["folder"])) if named else None


def _variables(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a run. Raises: ConfigError (AX700): a secret one, which is not kept,
    is neither given again nor in the environment.
    """
    found: dict[str, Any] = dict(kept["vars"])
    for name in kept.get("secret_vars", ()):
        if name in found:
            continue
        if name not in os.environ:
            raise misuse(
                name,
                "the run was begun with this secret, which is not kept.",
                f"Set the environment variable {name}.",
            )
        found[name] = FromEnvironment(os.environ[name], "${" + name + "}")
    return found


def changed(kept: Mapping[str, Any]) -> list[str]:
    """Return the files of a run that are not what they were, or are gone."""
    python = _python(kept)
    if python is not None:
        before: dict[str, str] = kept.get("digests", {})
        return [os.path.basename(name) for name in before if python.sources != before]
    root = os.path.dirname(kept.get("file", ""))
    texts: dict[str, str] = kept.get("texts", {})
    return [name for name, text in texts.items() if _text(os.path.join(root, name)) != text]


def differences(kept: Mapping[str, Any], session: Session, *, allow: frozenset[str]) -> list[str]:
    """Return the differences, in lines, between the graph that a run began with and that of its
    files now; or why they are unknown.
    """
    if kept.get("python"):
        return ["a graph in Python goes on as it is now"]
    reading: dict[str, Any] = {
        "registry": session.registry,
        "vars": _variables(kept),
        "allow": allow,
    }
    try:
        before = load_spec(kept["file"], texts=dict(kept["texts"]), **reading)
        now = load_spec(kept["file"], **reading)
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
