"""``axil lock``: what a workflow was when it was approved, and ``axil run --locked``: that it still
is.

A lock lies beside its workflow (``flow.yaml.lock``) and is JSON: the distributions that the
workflow needs and those that they require, each with its version and a digest of its ``RECORD`` (of
an editable one, of its source); its files and models; what it wants and what it was granted, in
words of ``--allow``, as a record and no leave; and what components say of things outside, if they
have ``pinned(config, allow)``: a class or static method that gives plain data, such as digests of a
server's tools by their names. ``allow`` is what may be done for that, as for a run. A component
with ``hold(config, pinned)`` holds to it in the run that follows in this process.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from axil import AxilError, ConfigError, Problem
from axil.plugin import (
    KERNEL,
    Compiler,
    Dependencies,
    FromEnvironment,
    Grants,
    Registry,
    canonical_name,
    format_names,
    granted,
    noting_wants,
    recorded_files,
    without_secrets,
)
from axil_cli import Exit, Session, add_shared_arguments, as_json
from axil_files import AnyVariable, dependencies_of, load, python_target
from axil_plugins.closure import closure, metadata_of, source_of
from axil_plugins.output import put
from axil_plugins.pylock import pylock_of
from axil_plugins.records import altered_files, direct_url

VERSION: Final = 1
SUFFIX: Final = ".lock"
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z0-9_]+)\}")
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
"""Characters that the name of a pylock file cannot have."""
_PASSED: Final = frozenset({"__pycache__", ".git", ".venv"})
"""Folders of a source that are no part of it."""
_PLACE: Final = re.compile(r"(?P<file>.+?)(?::\d+)? (?P<path>\S+)")


class Lock:
    """Write down what workflows are made of: distributions, files, models.

    A workflow is a file, or a graph in Python, as module:graph or file.py:graph. The lock lies
    beside the file, as FILE.lock. `axil run --locked FILE` runs only what is as the
    lock says; --check says what is not.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="WORKFLOW")
        parser.add_argument(
            "--check", action="store_true", help="write nothing; print what has changed since"
        )
        add_shared_arguments(parser, "--workflow", "--format")
        parser.add_argument(
            "--pylock",
            action="store_true",
            help="write also pylock.NAME.toml beside the lock: its distributions for installers, "
            "with what pip says of their files",
        )

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Lock the files, or check their locks; 2: something has changed."""
        lines: list[dict[str, Any]] = []
        reading = session.reading(options)
        for file in options.files:
            if options.check:
                changed = drift(file, session.registry, **reading)
                lines.append({"file": file, "lock": place_of(file), "changed": changed})
            else:
                made = lock_of(file, session.registry, **reading)
                for name in made["distributions"]:
                    for line in _altered(name):
                        session.tell(f"warning: {name}: {line}")
                text = as_json(made) + "\n"
                place = Path(place_of(file))
                if options.pylock:
                    aside = place.with_name(f"pylock.{_NAME.sub('-', Path(file).stem)}.toml")
                    put(aside, pylock_of(_installable(made), str(aside)))
                before = place.read_text("utf-8", "replace") if place.is_file() else ""
                if before != text:
                    put(place, text)
                lines.append({"file": file, "lock": str(place), "written": before != text})
        if options.format == "json":
            session.say_json(lines)
        for each in lines if options.format == "text" else ():
            if "written" in each:
                session.say(f"{each['lock']}: {'written' if each['written'] else 'current'}")
            elif each["changed"]:
                session.say("\n    ".join([f"{each['file']}: changed:", *each["changed"]]))
            else:
                session.say(f"{each['file']}: as locked")
        return Exit.MISUSE if any(each.get("changed") for each in lines) else Exit.DONE


class Locked:
    """run only what FILE.lock says: an error tells what has changed since"""

    def prepare(self, value: Any, launch: Any) -> None:
        """Compare, before the file is read for the run.

        Raises: ConfigError: AX736 there is no lock, AX737 something has changed.
        """
        given = (
            launch.file,
            launch.registry,
            launch.reading.get("vars"),
            launch.running.get("allow") or frozenset[str](),
        )
        if not (changed := drift(*given)):
            _hold(*given)
        else:
            place = place_of(launch.file)
            hint = f"If that is meant: {_way(launch)}"
            hints = [*[""] * (len(changed) - 1), hint]
            raise ConfigError(
                Problem("AX737", place, each, hint)
                for each, hint in zip(changed, hints, strict=True)
            )


# --------------------------------------------------------------------------------------------------


def place_of(file: str) -> str:
    """Return where the lock of a workflow lies: ``flow.yaml.lock``, ``flow.py.graph.lock``."""
    if python_target(file) is None:
        return f"{file}{SUFFIX}"
    place, _, name = file.rpartition(":")
    return f"{place}.{name}{SUFFIX}" if place else f"{file}{SUFFIX}"


def lock_of(
    file: str,
    registry: Registry,
    vars: Mapping[str, Any] | None = None,
    allow: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return the composition of a workflow, as data.

    Raises: SpecError; PluginError: something that it needs is not there; and what components raise
    that ask outside.
    """
    found = dependencies_of([file], registry=registry, vars=vars)
    for need in found.found:
        if need.error is not None:
            raise need.error
    return _made_of(file, found, registry, vars, allow)


def _made_of(
    file: str,
    found: Dependencies,
    registry: Registry,
    vars: Mapping[str, Any] | None,
    allow: frozenset[str],
) -> dict[str, Any]:
    roots = sorted({KERNEL, *found.distributions()})
    target = python_target(file)
    folder = target.folder if target is not None else os.path.dirname(os.path.realpath(file))
    return {
        "lock": VERSION,
        "workflow": os.path.basename(file),
        "distributions": {
            name: _distribution(name, name in roots) for name in closure(roots, found.extras())
        },
        "files": {
            _inside(each, folder): _digest(Path(each).read_bytes()) for each in sorted(found.files)
        },
        "models": sorted(found.models),
        "outside": _outside(found, registry, folder, allow),
        "not_looked_into": sorted(found.blind),
        "wants": sorted(_wanted(file, registry, vars, allow, folder)),
        "allow": sorted(_beside(word, folder) for word in Grants.of(allow).words),
    }


def _wanted(
    file: str,
    registry: Registry,
    vars: Mapping[str, Any] | None,
    allow: frozenset[str],
    folder: str,
) -> set[str]:
    """Return what a file wants, in words; what cannot be made here is left out."""
    if python_target(file) is not None:
        return set()
    with noting_wants() as wants, suppress(AxilError):
        workflow = load(file, registry=registry, vars=vars, allow=allow, environment=AnyVariable())
        Compiler(workflow.setting).compile(workflow.spec)
    return {_beside(each.word, folder) for each in wants}


def _beside(word: str, folder: str) -> str:
    """Return a word with a path from the workflow's folder, as the lock travels with it."""
    kind, _, name = word.partition(":")
    if kind not in ("read", "write") or not name:
        return word
    return f"{kind}:{_inside(name, folder)}"


def _inside(file: str, folder: str) -> str:
    return os.path.relpath(os.path.realpath(file), folder).replace(os.sep, "/")


def _outside(
    found: Dependencies, registry: Registry, folder: str, allow: frozenset[str]
) -> dict[str, Any]:
    """Return the components' digests of things beyond files and distributions, by their places: of
    tools and context with ``pinned``.
    """
    data: dict[str, Any] = {}
    grants = Grants.of(allow, folder)
    for need in found.found:
        if need.kind not in ("tools", "context") or need.component is None:
            continue
        pinned = getattr(registry.resolve(need.kind, need.name, need.where), "pinned", None)
        if pinned is not None:
            place = _PLACE.fullmatch(need.where)
            where = f"{_inside(place['file'], folder)} {place['path']}" if place else need.where
            with granted(grants):
                data[where] = pinned(_granted(dict(need.config), grants, where), allow)
    return data


def _hold(
    file: str, registry: Registry, vars: Mapping[str, Any] | None, allow: frozenset[str]
) -> None:
    """Have components hold what is outside to the lock while the run lasts, too."""
    pins: Mapping[str, Any] = _read(file)["outside"]
    target = python_target(file)
    folder = target.folder if target is not None else os.path.dirname(os.path.realpath(file))
    grants = Grants.of(allow, folder)
    for need in dependencies_of([file], registry=registry, vars=vars).found if pins else ():
        place = _PLACE.fullmatch(need.where)
        where = f"{_inside(place['file'], folder)} {place['path']}" if place else need.where
        if where not in pins or need.component is None:
            continue
        hold = getattr(registry.resolve(need.kind, need.name, need.where), "hold", None)
        if hold is not None:
            with granted(grants):
                hold(_granted(dict(need.config), grants, where), pins[where])


def _granted(value: Any, grants: Grants, where: str) -> Any:
    """Return settings that hold no variable which the file may not read.

    Raises: ConfigError (AX138).
    """
    if isinstance(value, FromEnvironment):
        for name in _VARIABLE.findall(value.template):
            message = f"the workflow file tries to read the environment variable {name}."
            grants.need(f"env:{name}", message, where)
    elif isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {key: _granted(part, grants, where) for key, part in pairs}
    elif isinstance(value, (list, tuple)):
        return [_granted(part, grants, where) for part in cast("Sequence[Any]", value)]
    return value


def _distribution(name: str, is_root: bool) -> dict[str, Any]:
    metadata = metadata_of(name)
    package = _package(metadata)
    content = _record(metadata) if package is None else _tree(package)
    return {
        "version": str(metadata.version),
        "digest": _digest(content.encode()),
        "editable": package is not None,
        "named": is_root,
    }


def _installable(lock: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the version of each distribution of a lock, the folder of an editable one, and where
    one came from that came from no index.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, each in cast("Mapping[str, Any]", lock["distributions"]).items():
        metadata = metadata_of(name)
        folder = str(source_of(metadata)) if each["editable"] else ""
        found[name] = {"version": each["version"], "source": folder, "direct": direct_url(metadata)}
    return found


def _record(metadata: Any) -> str:
    """Return a distribution's list of installed files, and what became of them since.

    The list has paths and hashes, without those that the installer added.
    """
    lines = [f"{name} {fault} {_now(metadata, name)}" for name, fault in altered_files(metadata)]
    return "\n".join([recorded_files(metadata), *lines])


def _now(metadata: Any, name: str) -> str:
    path = Path(metadata.locate_file(name))
    return _digest(path.read_bytes()) if path.is_file() else ""


def _altered(name: str) -> Iterator[str]:
    """Yield the files of a distribution that are not as they were installed, in words.

    There are none of one that is installed in place.
    """
    metadata = metadata_of(name)
    if metadata is not None and source_of(metadata) is None:
        for file, fault in altered_files(metadata):
            yield f"{file} {fault}."


def _package(metadata: Any) -> Path | None:
    """Return the package of an editable distribution; None: it is not editable.

    It is the project's folder where no package is found by its name or its entry points.
    """
    project = source_of(metadata)
    if project is None:
        return None
    names = [canonical_name(metadata.name).replace("-", "_")]
    names += [re.split(r"[.:]", each.value)[0].strip() for each in metadata.entry_points]
    for name in dict.fromkeys(names):
        spec = importlib.util.find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            if name == names[0] or Path(folder).is_relative_to(project):
                return Path(folder)
    return project


def _tree(folder: Path) -> str:
    """Return the paths and digests of the files in a folder."""
    return "\n".join(
        f"{file.relative_to(folder).as_posix()},{_digest(file.read_bytes())}"
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not _PASSED.intersection(file.relative_to(folder).parts)
    )


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


# --------------------------------------------------------------------------------------------------


def _way(launch: Any) -> str:
    """Return the command that locks a workflow as it is run."""
    words = ["axil", "lock", launch.file]
    words += ["--functions", launch.functions] if launch.functions else []
    variables: Mapping[str, Any] = launch.reading.get("vars") or {}
    for name, value in variables.items():
        if not isinstance(value, FromEnvironment) and without_secrets({name: value})[name] == value:
            words += ["--set", f"{name}={json.dumps(value)}"]
    for each in sorted(launch.running.get("allow") or ()):
        words += ["--allow", each]
    return shlex.join(words)


def drift(
    file: str,
    registry: Registry,
    vars: Mapping[str, Any] | None = None,
    allow: frozenset[str] = frozenset(),
) -> list[str]:
    """Return the changes since a workflow was locked, in words; none: it is unchanged.

    Raises: ConfigError (AX736): there is no lock, or it cannot be read. SpecError: the workflow
    cannot; and what components raise that ask outside.
    """
    before = _read(file)
    found = dependencies_of([file], registry=registry, vars=vars)
    gone = [need.error for need in found.found if need.error is not None]
    if gone:
        return [f"something that it needs is not there any more: {error}" for error in gone]
    now = _made_of(file, found, registry, vars, allow)
    return list(_changes(before, now))


def _read(file: str) -> Mapping[str, Any]:
    """Return the lock of a workflow.

    Raises: ConfigError (AX736): there is none, or it is damaged.
    """
    place = place_of(file)
    try:
        found: Any = json.loads(Path(place).read_text("utf-8"))
        if not isinstance(found, dict) or cast("dict[str, Any]", found).get("lock") != VERSION:
            message = f"expected a lock of version {VERSION}."
        elif fault := _fault(cast("dict[str, Any]", found)):
            message = f"the lock is damaged: {fault}."
        else:
            return cast("dict[str, Any]", found)
    except FileNotFoundError:
        message = "there is no lock."
    except (OSError, ValueError, RecursionError) as error:
        message = f"the lock cannot be read: {error}."
    raise ConfigError(Problem("AX736", place, message, f"axil lock {file}")) from None


def _fault(lock: Mapping[str, Any]) -> str:
    """Return what is wrong with the parts of a lock; empty: nothing. A part that is missing, or has
    another name, would be compared with nothing.
    """
    if apart := sorted(lock.keys() ^ _PARTS.keys()):
        known = ", ".join(_PARTS)
        return (
            f"{format_names(apart)} should {'' if apart[0] in _PARTS else 'not '}be in it: {known}"
        )
    for part, kind in _PARTS.items():
        given = lock[part]
        if not isinstance(given, kind):
            return f"{part} is no {_KINDS[kind]}"
        if kind is list and not all(map(_is_text, given)):
            return f"{part} is no list of texts"
    for name, each in cast("dict[str, Any]", lock["distributions"]).items():
        stated = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        if {key: type(value) for key, value in stated.items()} != _DISTRIBUTION:
            return f"the distribution {name} has not exactly {', '.join(_DISTRIBUTION)}"
    for name, each in cast("dict[str, Any]", lock["files"]).items():
        if not _is_text(each):
            return f"the file {name} has no digest"
    return ""


_PARTS: Final[Mapping[str, type]] = {
    "lock": int, "workflow": str, "distributions": dict, "files": dict, "models": list,
    "outside": dict, "not_looked_into": list, "wants": list, "allow": list,
}  # fmt: skip
_KINDS: Final = {int: "number", str: "text", dict: "mapping", list: "list of texts"}
_DISTRIBUTION: Final = {"version": str, "digest": str, "editable": bool, "named": bool}


def _is_text(given: Any) -> bool:
    return isinstance(given, str)


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, (was, found) in _apart(before, now, "distributions"):
        if was is None or found is None:
            state = "not installed or needed any more" if found is None else "needed and was not"
            yield f"the distribution {name} is {state}."
            continue
        version = was["version"]
        if version != found["version"]:
            yield f"the distribution {name} was {version}, and is {found['version']}."
        elif was["editable"] != found["editable"]:
            how = "in place" if found["editable"] else "from a wheel"
            yield f"the distribution {name} {version} is installed {how} now."
        elif was["digest"] != found["digest"]:
            yield f"the distribution {name} {version} has other contents under the same version."
            yield from (f"{name}: {line}" for line in _altered(name))
        else:
            yield f"the distribution {name} is needed {'by it' if found['named'] else 'by others'}."
    for name, (was, found) in _apart(before, now, "files"):
        gone = "is not part of it any more" if found is None else "has changed"
        yield f"the file {name} {'was not part of it' if was is None else gone}."
    were, are = set(before["models"]), set(now["models"])
    gone, new = sorted(were - are), sorted(are - were)
    if gone or new:
        models = f"{format_names(gone) or 'none'} became {format_names(new) or 'none'}"
        yield f"the models changed: {models}."
    grown = sorted(set(now["wants"]) - set(before["wants"]))
    if grown:
        yield f"it wants more than when it was locked: {format_names(grown, 20)}."
    for where, (was, found) in _apart(before, now, "outside"):
        if was is None or found is None:
            state = "was not locked" if was is None else "is not part of it any more"
            yield f"{where}: what it gives from outside {state}."
        else:
            yield f"{where}: {format_names(list(_differences(was, found)), 20)}."


def _differences(was: Any, now: Any, name: str = "") -> Iterator[str]:
    """Yield the differences between two pieces of plain data, each by its path."""
    if not isinstance(was, Mapping) or not isinstance(now, Mapping):
        values = cast("tuple[Any, ...]", (was, now))
        short = not any(isinstance(v, (list, Mapping)) or len(str(v)) > 40 for v in values)
        yield f"{name or 'it'} was {was}, and is {now}" if short else f"{name or 'it'} has changed"
        return
    before, after = cast("Mapping[str, Any]", was), cast("Mapping[str, Any]", now)
    for key in sorted({*before, *after}):
        inner = f"{name}.{key}" if name else key
        if key not in before or key not in after:
            yield f"{inner} is {'gone' if key in before else 'new'}"
        elif before[key] != after[key]:
            yield from _differences(before[key], after[key], inner)


def _apart(
    before: Mapping[str, Any], now: Mapping[str, Any], part: str
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    first: Mapping[str, Any] = before[part]
    second: Mapping[str, Any] = now[part]
    for name in sorted({*first, *second}):
        if first.get(name) != second.get(name):
            yield name, (first.get(name), second.get(name))
