"""``axil plugins``: the sub-commands, what they are given and what they print."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axil import ConfigError, Problem
from axil.plugin import COMPONENT_KINDS, Registry, install_advice, legible
from axil_cli import Exit, add_shared_arguments
from axil_plugins.output import put, tell_table

if TYPE_CHECKING:
    from axil_cli import Session

    Act = Callable[[argparse.Namespace, Session], int]


class Plugins:
    """See what is installed, what a workflow needs and what is wrong; write, describe and prove
    plugins of your own.

    Listing and examining import no plugin, so they work with every plugin broken. Exit code 2 says
    that something was found.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parts = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

        def add(name: str, help: str, act: Act, *shared: str) -> argparse.ArgumentParser:
            part = parts.add_parser(name, help=help, description=help, allow_abbrev=False)
            add_shared_arguments(part, "--format", *shared)
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
        one = add("why", "which distributions workflows need, and what for", _why, "--workflow")
        one.add_argument("files", nargs="+", metavar="WORKFLOW")
        about = "the requirements of a workflow, for its requires block"
        one = add("freeze", about, _freeze, "--workflow")
        one.add_argument("file", metavar="WORKFLOW")
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
        if options.format == "json":
            session.say_json(wanted)
        else:
            session.say("\n".join(wanted))
        return Exit.DONE
    found = survey.rows(session.registry, options.kind)
    if options.format == "json":
        session.say_json(
            {
                "components": found,
                "unreadable": session.registry.unreadable,
                "policy": policy(session.registry),
            }
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
        tell_table(head, cells, session)
        for report in session.registry.unreadable:
            session.tell(f"warning: {report}")
    return Exit.DONE


def policy(registry: Registry) -> dict[str, Any]:
    """Return the policy in force as data, and who said what."""
    inner = registry.policy
    return {
        "mode": inner.mode,
        "allow": sorted(inner.allow),
        "block": sorted(inner.block),
        "only": None if inner.only is None else sorted(inner.only),
        "pins": dict(inner.pins),
        "hooks": list(inner.hooks),
        "index": inner.index,
        "said_by": dict(inner.origins),
    }


def _show(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins import survey

    if ":" not in options.what:
        _only_components(options)
        stated = survey.distribution(options.what, session.registry)
        if options.format == "json":
            session.say_json(stated)
        else:
            text = f"{stated['distribution']} {stated['version']}\n{stated['summary']}".rstrip()
            session.say(legible(text))
            session.say(f"requires: {', '.join(stated['requires']) or 'nothing'}")
            session.say(
                ""
                if stated["manifest"]
                else "It has no manifest: its settings are known only by importing it.\n"
            )
            head = ["kind", "name", "status", "summary"]
            cells = [[row[name] for name in head] for row in stated["components"]]
            tell_table(head, cells, session)
        return Exit.DONE
    if options.example:
        session.say_json(survey.example(options.what, session.registry))
        return Exit.DONE
    stated = survey.component(options.what, session.registry)
    if options.schema or options.format == "json":
        session.say_json(stated.get("config_schema") if options.schema else stated)
        return Exit.DONE
    session.say(
        f"{stated['kind']}:{stated['name']}  "
        f"{stated['distribution']} {stated['version']}  {stated['object']}"
    )
    session.say(legible(stated.get("summary", "")))
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
        session.say()
        tell_table(["setting", "default", "is"], cells, session)
    return Exit.DONE


def as_line(value: Any) -> str:
    """Return a default on one line."""
    import json

    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _only_components(options: argparse.Namespace) -> None:
    if options.schema or options.example:
        which = "--schema" if options.schema else "--example"
        message = "expected a component, as kind:name."
        raise ConfigError(Problem("AX730", which, message, "Write nodes:agent, for example."))


def _doctor(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins import advisories, doctor, survey

    known = advisories.shipped()
    for each in options.advisories:
        known += advisories.read(Path(each))
    if options.dist:
        survey.distribution(options.dist, session.registry)
    found = doctor.examine(session.registry, options.dist, importing=options.importing, known=known)
    severities = [each.severity for each in found]
    is_fine = "error" not in severities and not (options.strict and "warning" in severities)
    stated = policy(session.registry)
    code = Exit.DONE if is_fine else Exit.MISUSE
    if options.format == "json":
        session.say_json({"fine": is_fine, "findings": found, "policy": stated})
        return code
    for each in found:
        session.say(
            f"{each.severity}: {each.distribution or 'settings'} [{each.check}] {each.message}"
        )
        session.say(f"    why: {each.why}\n    fix: {each.fix}")
    lines = [f"{key} {stated[key]!r} ({origin})" for key, origin in stated["said_by"].items()]
    session.say(f"policy: {'; '.join(lines) or 'everything that is installed may be used'}")
    counts = (f"{severities.count(word)} {word}s" for word in ("error", "warning", "note"))
    session.say(f"{len(session.registry.plugins())} distributions: {', '.join(counts)}")
    return code


# --------------------------------------------------------------------------------------------------


def _why(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins.workflows import reasons

    stated = reasons(options.files, _needs(options, session))
    code = Exit.DONE if stated["fine"] else Exit.MISUSE
    if options.format == "json":
        session.say_json(stated)
        return code
    for each in stated["distributions"]:
        name = each["distribution"]
        if not name:
            session.say("no known distribution provides it")
        elif each["installed"]:
            session.say(f"{name}  {each['version']}".rstrip())
        else:
            session.say(f"{name}  not installed: {install_advice(name + each['required'])}")
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
    return code


def _needs(options: argparse.Namespace, session: Session) -> dict[str, Any]:
    """Return the options of ``axil_files.dependencies_of``."""
    variables = session.reading(options)["vars"]
    functions = session.functions or ""
    return {"registry": session.registry, "vars": variables, "functions": functions}


def _freeze(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins.workflows import freeze, requirements

    wanted = requirements(options.file, _needs(options, session))
    if options.write:
        text = freeze(options.file, wanted, session.registry)
        file = Path(options.file)
        if file.read_text("utf-8-sig") != text:
            put(file, text)
    if options.format == "json":
        session.say_json({"file": options.file, "requires": wanted, "written": options.write})
    else:
        session.say(
            "\n".join([f"{name}{version}" for name, version in wanted.items()])
            or "The kernel is all it needs."
        )
    return Exit.DONE


# --------------------------------------------------------------------------------------------------


def _new(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins.scaffold import scaffold

    made = scaffold(options.name, options.kind, Path(options.into))
    if options.format == "json":
        session.say_json({"folder": made.folder, "component": made.component, "files": made.files})
        return Exit.DONE
    session.say(f"{made.folder}: {len(made.files)} files, {made.kind} {made.component}")
    command = install_advice("--editable", str(made.folder), *made.missing)
    session.say(f"    {command}\n    python -m pytest {made.folder}")
    return Exit.DONE


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
        session.say_json(made)
    elif options.out:
        session.say("\n".join(str(Path(options.out) / name) for name in made))
    else:
        session.say("\n".join(made.values()).rstrip())
    return Exit.DONE


def _manifest(options: argparse.Namespace, session: Session) -> int:
    from axil_plugins.manifests import as_text, manifest_of, place_of

    manifests = {name: manifest_of(name, session.registry) for name in options.dists}
    if not options.write and not options.check:
        if options.format == "json":
            session.say_json(list(manifests.values()))
        else:
            session.say("\n".join(as_text(data).rstrip() for data in manifests.values()))
        return Exit.DONE
    found: list[dict[str, Any]] = []
    for name, data in manifests.items():
        text, file = as_text(data), place_of(name, session.registry)
        before = file.read_text("utf-8", "replace") if file.is_file() else ""
        is_changed = before != text
        if options.write and is_changed:
            put(file, text)
        is_current = options.write or not is_changed
        found.append(
            {"distribution": name, "file": file, "current": is_current, "changed": is_changed}
        )
    if options.format == "json":
        session.say_json(found)
    else:
        changed = "written" if options.write else "not current"
        for each in found:
            session.say(f"{each['file']}: {changed if each['changed'] else 'current'}")
    if not all(each["current"] for each in found):
        session.tell("warning: axil plugins manifest DIST --write brings it up to date.")
        return Exit.MISUSE
    return Exit.DONE
