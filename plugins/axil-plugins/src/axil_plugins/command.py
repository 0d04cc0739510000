"""``axil plugins``: the sub-commands, what they are given and what they print."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

from axil import ConfigError, Problem
from axil.plugin import COMPONENT_KINDS, Registry, install_advice
from axil_plugins.output import as_json, put, table, width_of

DONE: Final = 0
FOUND: Final = 2
"""Something is wrong, and it has been said."""


class Session(Protocol):
    """The session that ``axil`` passes to its commands."""

    @property
    def registry(self) -> Registry: ...
    @property
    def stdout(self) -> TextIO: ...
    def say(self, text: str = "") -> None:
        """Write a result."""
        ...

    def tell(self, text: str = "") -> None:
        """Something about the work itself."""
        ...


Act = Callable[[argparse.Namespace, Session], int]


class Plugins:
    """See what is installed, what a workflow needs and what is wrong; write, describe and prove
    plugins of your own.

    Listing and examining import no plugin, so they work with every plugin broken. Exit code 2 says
    that something was found.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the sub-commands."""
        parts = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

        def add(name: str, help: str, act: Act) -> argparse.ArgumentParser:
            part = parts.add_parser(name, help=help, description=help, allow_abbrev=False)
            part.add_argument("--format", choices=("text", "json"), default="text")
            part.set_defaults(act=act)
            return part

        one = add("list", "every component, who provides it, and whether it can be used", _list)
        one.add_argument(
            "--kind",
            choices=sorted(COMPONENT_KINDS),
            metavar="KIND",
            help=f"only one kind: {', '.join(sorted(COMPONENT_KINDS))}",
        )
        one.add_argument(
            "--requirements",
            action="store_true",
            help="the installed plugins, as a requirements file has them",
        )
        one = add("show", "all that is known of a distribution, or of a component", _show)
        one.add_argument("what", metavar="DIST|kind:name")
        what = one.add_mutually_exclusive_group()
        what.add_argument("--schema", action="store_true", help="the JSON Schema of its config")
        what.add_argument("--example", action="store_true", help="how a workflow file uses it")
        one = add("doctor", "what is wrong with the installed plugins, and how to mend it", _doctor)
        one.add_argument("dist", nargs="?", default="", metavar="DIST", help="only this one")
        one.add_argument(
            "--import",
            dest="importing",
            action="store_true",
            help="import every component, each in a process of its own",
        )
        one.add_argument("--strict", action="store_true", help="warnings count, too")
        one.add_argument(
            "--advisories",
            action="append",
            default=[],
            metavar="PATH",
            help="more advisories than are shipped, in the format of OSV: a file or a folder",
        )
        one = add("why", "which distributions workflows need, and what for", _why)
        one.add_argument("files", nargs="+", metavar="WORKFLOW")
        one.add_argument(
            "--functions", metavar="DIR", default="", help="as for axil run; needs --allow code"
        )
        one.add_argument("--allow", action="append", default=[], choices=("code",))
        one = add("freeze", "the requirements of a workflow, for its requires block", _freeze)
        one.add_argument("file", metavar="FILE")
        one.add_argument("--write", action="store_true", help="write them into the file")
        one = add(
            "new", "write a plugin that builds, passes its tests and runs in a workflow", _new
        )
        one.add_argument(
            "name", metavar="NAME", help="of the distribution: vendor-thing, as in acme-shout"
        )
        one.add_argument(
            "--kind",
            default="node",
            help="node, model, formatter, context, tool, embedder, wrapper, channel, hook, "
            "reducer, condition, loader or journal",
        )
        one.add_argument("--into", default=".", metavar="FOLDER", help="where its folder is made")
        one = add(
            "test", "run the conformance kit on everything that a distribution registers", _test
        )
        one.add_argument("dist", metavar="DIST")
        one = add("docs", "the components of a distribution as Markdown", _docs)
        one.add_argument("dist", metavar="DIST")
        one.add_argument("-o", "--out", metavar="FOLDER", help="write a page for each kind there")
        one = add("manifest", "the manifests of distributions, from their classes", _manifest)
        one.add_argument("dists", nargs="+", metavar="DIST")
        how = one.add_mutually_exclusive_group()
        how.add_argument("--write", action="store_true", help="write them into the packages")
        how.add_argument(
            "--check", action="store_true", help="print whether those in the packages are current"
        )

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Do it; see the sub-commands."""
        return options.act(options, session)


# --------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins import survey

    if options.requirements:
        wanted = survey.requirements(session.registry)
        session.say(as_json(wanted) if options.format == "json" else "\n".join(wanted))
        return DONE
    found = survey.rows(session.registry, options.kind)
    if options.format == "json":
        session.say(
            as_json(
                {
                    "components": found,
                    "unreadable": session.registry.unreadable,
                    "policy": policy(session.registry),
                }
            )
        )
    else:
        cells = [
            [
                r["kind"],
                r["name"],
                r["distribution"],
                r["version"],
                r["spec"],
                r["status"],
                f"{r['reason']} {r['summary']}" if r["status"] == "deprecated" else r["summary"],
            ]
            for r in found
        ]
        head = ["kind", "name", "distribution", "version", "spec", "status", "summary"]
        session.say(table(head, cells, width=width_of(session.stdout)))
        for report in session.registry.unreadable:
            session.tell(f"warning: {report}")
    return DONE


def policy(registry: Registry) -> dict[str, Any]:
    """Return the policy in force as data, and who said what."""
    inner = registry.policy
    data: dict[str, Any] = {
        "mode": inner.mode,
        "allow": sorted(inner.allow),
        "block": sorted(inner.block),
        "only": None if inner.only is None else sorted(inner.only),
        "pins": dict(inner.pins),
        "hooks": list(inner.hooks),
        "index": inner.index,
    }
    return {**data, "said_by": dict(inner.origins)}


def _show(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins import survey

    if ":" not in options.what:
        _only_components(options)
        stated = survey.distribution(options.what, session.registry)
        if options.format == "json":
            session.say(as_json(stated))
        else:
            session.say(
                f"{stated['distribution']} {stated['version']}\n{stated['summary']}".rstrip()
            )
            session.say(f"requires: {', '.join(stated['requires']) or 'nothing'}")
            session.say(
                ""
                if stated["manifest"]
                else "It has no manifest: its settings are known only by importing it.\n"
            )
            cells = [
                [row["kind"], row["name"], row["status"], row["summary"]]
                for row in stated["components"]
            ]
            session.say(
                table(["kind", "name", "status", "summary"], cells, width=width_of(session.stdout))
            )
        return DONE
    if options.example:
        session.say(survey.example(options.what, session.registry))
        return DONE
    stated = survey.component(options.what, session.registry)
    if options.schema or options.format == "json":
        session.say(as_json(stated.get("config_schema") if options.schema else stated))
        return DONE
    session.say(
        f"{stated['kind']}:{stated['name']}  "
        f"{stated['distribution']} {stated['version']}  {stated['object']}"
    )
    session.say(stated.get("summary", ""))
    if stated.get("aliases"):
        session.say(f"formerly: {', '.join(stated['aliases'])}")
    schema: Mapping[str, Any] = stated.get("config_schema") or {}
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    if properties:
        required = frozenset[str](schema.get("required", ()))
        cells = [
            [
                name,
                "required" if name in required else as_line(shape.get("default")),
                str(shape.get("description", "")),
            ]
            for name, shape in properties.items()
        ]
        session.say(
            "\n" + table(["setting", "default", "is"], cells, width=width_of(session.stdout))
        )
    return DONE


def as_line(value: Any) -> str:
    """Return a default on one line."""
    import json

    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _only_components(options: argparse.Namespace) -> None:
    if options.schema or options.example:
        which = "--schema" if options.schema else "--example"
        raise ConfigError(
            Problem(
                "AX730",
                which,
                "expected a component, as kind:name.",
                "Write nodes:agent, for example.",
            )
        )


def _doctor(options: argparse.Namespace, session: Session) -> int:
    from dataclasses import asdict

    from axil_plugins import advisories, doctor, survey

    known = advisories.shipped()
    for each in options.advisories:
        known += advisories.read(Path(each))
    if options.dist:
        survey.distribution(options.dist, session.registry)
    found = doctor.examine(session.registry, options.dist, importing=options.importing, known=known)
    bad = [
        each
        for each in found
        if each.severity == "error" or (options.strict and each.severity == "warning")
    ]
    if options.format == "json":
        session.say(
            as_json(
                {
                    "fine": not bad,
                    "findings": [asdict(each) for each in found],
                    "policy": policy(session.registry),
                }
            )
        )
        return FOUND if bad else DONE
    for each in found:
        session.say(
            f"{each.severity}: {each.distribution or 'settings'} [{each.check}] {each.message}"
        )
        session.say(f"    why: {each.why}\n    fix: {each.fix}")
    stated = policy(session.registry)
    lines = [f"{key} {stated[key]!r} ({origin})" for key, origin in stated["said_by"].items()]
    session.say(f"policy: {'; '.join(lines) or 'everything that is installed may be used'}")
    counts = {
        word: sum(1 for each in found if each.severity == word)
        for word in ("error", "warning", "note")
    }
    session.say(
        f"{len(session.registry.plugins())} distributions: "
        + ", ".join(f"{n} {word}s" for word, n in counts.items())
    )
    return FOUND if bad else DONE


# --------------------------------------------------------------------------------------------------


def _why(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins.workflows import reasons

    if options.functions and "code" not in options.allow:
        message = "functions are code, which is not allowed."
        hint = "Add --allow code, if you trust them."
        raise ConfigError(Problem("AX700", "--functions", message, hint))
    stated = reasons(options.files, session.registry, options.functions)
    if options.format == "json":
        session.say(as_json(stated))
        return DONE if stated["fine"] else FOUND
    for each in stated["distributions"]:
        state = (
            each["version"]
            if each["installed"]
            else f"not installed: {install_advice(each['distribution'] + each['required'])}"
        )
        session.say(
            (
                f"{each['distribution'] or 'no known distribution provides it'}  "
                f"{state if each['distribution'] else ''}"
            ).rstrip()
        )
        for use in each["uses"]:
            now = f" (now {use['now']})" if use["now"] else ""
            session.say(
                f"    {use['kind']}:{use['name']}{now}  {use['where']}"
                + (f"\n        {use['error']}" if use["error"] else "")
            )
    for word in stated["not_looked_into"]:
        session.tell(
            f"warning: the settings of {word} are not looked into: "
            "its distribution has no manifest."
        )
    for problem in stated["problems"]:
        session.tell(f"error: {problem}")
    return DONE if stated["fine"] else FOUND


def _freeze(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins.workflows import freeze, requirements

    if options.write:
        text = freeze(options.file, session.registry)
        file = Path(options.file)
        if file.read_text("utf-8-sig") != text:
            put(file, text)
    wanted = requirements(options.file, session.registry)
    if options.format == "json":
        session.say(as_json({"file": options.file, "requires": wanted, "written": options.write}))
    else:
        session.say(
            "\n".join([f"{name}{version}" for name, version in wanted.items()])
            or "The kernel is all it needs."
        )
    return DONE


# --------------------------------------------------------------------------------------------------


def _new(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins.scaffold import scaffold

    made = scaffold(options.name, options.kind, Path(options.into))
    if options.format == "json":
        session.say(
            as_json({"folder": str(made.folder), "component": made.component, "files": made.files})
        )
        return DONE
    session.say(f"{made.folder}: {len(made.files)} files, {made.kind} {made.component}")
    command = install_advice("--editable", str(made.folder), *made.missing)
    session.say(f"    {command}\n    python -m pytest {made.folder}")
    return DONE


def _test(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins.proof import prove

    return prove(options.dist, session, as_data=options.format == "json")


def _docs(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins.pages import pages

    made = pages(options.dist, session.registry)
    if options.out:
        folder = Path(options.out)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            put(folder / name, text)
    if options.format == "json":
        session.say(as_json(made))
    elif options.out:
        session.say("\n".join(str(Path(options.out) / name) for name in made))
    else:
        session.say("\n".join(made.values()).rstrip())
    return DONE


def _manifest(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins.manifests import as_text, manifest_of, place_of

    lines: list[dict[str, Any]] = []
    for name in options.dists:
        data = manifest_of(name, session.registry)
        text = as_text(data)
        file = place_of(name, session.registry) if options.write or options.check else None
        before = file.read_text("utf-8", "replace") if file is not None and file.is_file() else ""
        if options.write and file is not None and before != text:
            put(file, text)
        if not options.write and not options.check:
            if options.format == "json":
                lines.append(data)
            else:
                session.say(text.rstrip())
            continue
        lines.append(
            {
                "distribution": name,
                "file": str(file),
                "current": before == text or options.write,
                "changed": before != text,
            }
        )
    if options.format == "json":
        session.say(as_json(lines))
        if not options.write and not options.check:
            return DONE
    else:
        for each in lines:
            state = (
                ("written" if each["changed"] else "current")
                if options.write
                else "current"
                if each["current"]
                else "not current"
            )
            session.say(f"{each['file']}: {state}")
    if any(not each["current"] for each in lines):
        session.tell("warning: axil plugins manifest DIST --write brings it up to date.")
        return FOUND
    return DONE
