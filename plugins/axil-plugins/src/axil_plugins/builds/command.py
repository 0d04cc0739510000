"""``axil build``: plan, lock, assemble, verify, report. Each step can be the last."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from axil import ConfigError, Problem
from axil.plugin import Registry, canonical_name, decode_config
from axil_cli import Exit, Session, add_shared_arguments, as_json, equipped
from axil_plugins.builds import cluster, outputs, report, verify, wheels
from axil_plugins.builds.plan import Plan, plan
from axil_plugins.builds.settings import Dist, Settings, is_build_file, read
from axil_plugins.builds.wheels import Wheel
from axil_plugins.output import unwritten

JOURNAL: Final = "axil-sqlite"
STEPS: Final = ("plan", "lock", "assemble", "verify")


@dataclass(slots=True)
class Made:
    """The result of a build."""

    plan: Plan
    wheels: list[Wheel] = field(default_factory=list[Wheel])
    files: list[str] = field(default_factory=list[str])
    """Below the output folder, sorted."""
    report: dict[str, Any] = field(default_factory=dict[str, Any])


class Build:
    """Make a slim distribution of workflows, or of axil-build.toml: exactly the plugins that they
    need, locked and proved.

    What is in this environment is what is shipped. The folder gets the wheels, their lock with
    hashes, a wheel that requires exactly them, a single file that runs with nothing but Python, a
    folder for a container, a bill of materials, the licences and a report. The same input gives the
    same bytes.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "files",
            nargs="+",
            metavar="WORKFLOW",
            help="workflow files; graphs in Python, as module:graph or file.py:graph; "
            "or axil-build.toml",
        )
        # Variables and grants are those of the plan and of the dry run: who runs the build gives
        # their own.
        add_shared_arguments(parser, "--workflow", "--format")
        parser.add_argument(
            "--out", metavar="FOLDER", help="the output folder; without it build/NAME"
        )
        for name, made in (("compose", "a compose file"), ("helm", "a Helm chart")):
            parser.add_argument(
                f"--{name}",
                action="append_const",
                dest="outputs",
                const=name,
                help=f"make {made} of workers in addition; needs axil-postgres",
            )
        parser.add_argument("--until", choices=STEPS, default="verify", help="the last step")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Build it; what does not hold is an error, and then nothing is left in the folder."""
        settings = read(options.files, session.functions or "")
        if is_build_file(options.files) and "code" not in options.allow:
            _without_code(settings, options.files[0])
        if options.outputs:
            wanted = {"outputs": (*settings.dist.outputs, *options.outputs)}
            dist = decode_config(Dist, {**settings.dist.model_dump(), **wanted}, "--compose")
            settings = settings.model_copy(update={"dist": dist})
        out = Path(options.out) if options.out else _usual_folder(settings)
        with equipped(session, settings.functions_folder() or None, options.allow) as here:
            reading = session.reading(options)
            made = build(settings, here.registry, out, until=options.until, reading=reading)
        if options.format == "json":
            session.say_json(
                {"plan": made.plan.plain(), "files": made.files, "report": made.report}
            )
        else:
            session.say("\n".join(lines(made, out)))
        return Exit.DONE


def _without_code(settings: Settings, file: str) -> None:
    """Refuse a file with settings of a build that names code."""
    problems = [
        Problem("AX700", file, f"{part} is code, which is not allowed.") for part in settings.code()
    ]
    if problems:
        hint = "Add --allow code, if you trust the file and its folder."
        raise ConfigError([*problems[:-1], replace(problems[-1], hint=hint)])


def _usual_folder(settings: Settings) -> Path:
    """Return the folder of a build for which none was named.

    Raises: ConfigError (AX746): it is a link, or behind one.
    """
    out = Path("build") / settings.name
    if out.resolve() != Path.cwd().resolve() / out:
        message = f"{out} leads to {out.resolve()}."
        raise ConfigError(Problem("AX746", "--out", message, "Say --out FOLDER."))
    return out


def build(
    settings: Settings,
    registry: Registry,
    out: Path,
    *,
    until: str = "verify",
    reading: Mapping[str, Any] | None = None,
) -> Made:
    """Do the steps, up to ``until``.

    Args:
        registry: has the functions that the settings name.
        out: replaced as a whole when all of them hold, and not touched before.
        reading: ``vars`` and ``allow`` of the workflows, for the plan and the dry run.
    Raises: ConfigError, SpecError: what does not hold, all at once.
    """
    given = reading or {}
    made = Made(plan=plan(settings, registry, given.get("vars")))
    if until == "plan":
        return made
    _replaceable(out)
    with tempfile.TemporaryDirectory(prefix="axil-build-") as folder:
        place = Path(folder) / "made"
        (place / "wheels").mkdir(parents=True)
        _lock(made, settings, place)
        if until != "lock":
            main = _assemble(made, settings, place)
            if until == "verify":
                shipped = [*made.wheels, main]
                made.report["verified"] = verify.prove(made.plan, settings, shipped, given)
        made.report["sizes"] = report.sizes(made.plan, made.wheels)
        notable = {each.name: list(each.notable) for each in made.wheels if each.notable}
        made.report["notable"] = notable
        (place / "report.json").write_text(as_json(made.report) + "\n", "utf-8")
        (place / "plan.json").write_text(as_json(made.plan.plain()) + "\n", "utf-8")
        made.files = sorted(
            file.relative_to(place).as_posix() for file in place.rglob("*") if file.is_file()
        )
        _put(place, out)
    return made


def _put(place: Path, out: Path) -> None:
    """Copy what was made to where it goes; until it is whole, what was there before stays.

    Raises: ConfigError (AX955).
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{out.name}-", dir=out.parent, ignore_cleanup_errors=True
        ) as aside:
            new, old = Path(aside) / "new", Path(aside) / "old"
            shutil.copytree(place, new)
            if out.exists():
                out.rename(old)
            try:
                new.rename(out)
            finally:  # also where it is interrupted: the folder beside is removed
                if old.exists() and not out.exists():
                    old.rename(out)
    except OSError as error:
        raise unwritten(out, error) from error


def _replaceable(out: Path) -> None:
    """Refuse to replace a folder that holds something other than a build."""
    if out.exists() and (
        not out.is_dir() or (any(out.iterdir()) and not (out / "plan.json").is_file())
    ):
        message = f"{out} exists, and is not a build."
        raise ConfigError(Problem("AX746", "--out", message, "Name another folder, or remove it."))


def _lock(made: Made, settings: Settings, place: Path) -> None:
    sources = {
        canonical_name(name): str(Path(settings.folder) / path)
        for name, path in settings.sources.items()
    }
    if others := sorted(set(sources) - set(made.plan.distributions)):
        message = f"{', '.join(others)} would not be in the build."
        hint = "Remove the line, or include the distribution."
        raise ConfigError(Problem("AX740", "sources", message, hint))
    originals = Path(settings.folder) / settings.wheels if settings.wheels else None
    if originals is not None and not originals.is_dir():
        message = f"there is no folder {originals}."
        raise ConfigError(Problem("AX740", "wheels", message, "Name a folder with wheels."))
    made.wheels = wheels.make(made.plan.distributions, place / "wheels", sources, originals)
    (place / outputs.LOCK).write_text(outputs.lock_text(made.wheels), "utf-8")
    (place / "sbom.cdx.json").write_text(report.bill(made.plan, made.wheels), "utf-8")
    (place / "licences.txt").write_text(report.licences(made.wheels), "utf-8")


def _assemble(made: Made, settings: Settings, place: Path) -> Wheel:
    python = (sys.version_info.major, sys.version_info.minor)
    entry = _entry(made.plan, settings)
    path = outputs.main_wheel(made.plan, entry, made.wheels, place)
    main = wheels.described(made.plan.name, path)
    if "pyz" in settings.dist.outputs:
        outputs.single_file(made.plan, [*(each.path for each in made.wheels), path], python, place)
    if "container" in settings.dist.outputs or settings.dist.is_worker:
        outputs.container(made.plan, entry, [*made.wheels, main], python, place)
    allow_code = settings.verify.allow_code or bool(made.plan.graphs)
    if "compose" in settings.dist.outputs:
        cluster.compose(made.plan, python, place, allow_code=allow_code)
    if "helm" in settings.dist.outputs:
        cluster.helm(made.plan, python, place, allow_code=allow_code)
    return main


def _entry(made: Plan, settings: Settings) -> Path:
    """Return the workflow that is run. Raises: ConfigError (AX745): it is not one of those that are
    built.
    """
    entry = settings.dist.entry
    if not entry:
        return made.workflows[0]
    for wanted, name in made.graphs.items():
        if name == entry:
            return wanted
    wanted = (Path(settings.folder) / entry).resolve()
    if wanted not in made.workflows:
        names = ", ".join(made.named(each) for each in made.workflows)
        message = f"{entry} is not one of the workflows: {names}."
        raise ConfigError(Problem("AX745", "dist.entry", message))
    return wanted


def lines(made: Made, out: Path) -> Iterator[str]:
    """Yield the report for people."""
    plan, sizes = made.plan, made.report.get("sizes", {})
    yield f"{plan.name} {plan.version}: {len(plan.distributions)} distributions"
    for name, uses in plan.roots.items():
        brought = sizes.get("only_because_of", {}).get(name)
        size = f", {brought / 1e6:.2f} MB that nothing else needs" if brought is not None else ""
        some = f"{', '.join(uses[:4])}{' …' if len(uses) > 4 else ''}"
        yield f"    {name} {plan.distributions[name]}: {some}{size}"
    for word in plan.blind:
        yield (
            f"warning: the settings of {word} were not looked into: "
            "its distribution has no manifest."
        )
    for name, files in made.report.get("notable", {}).items():
        for file in files:
            starts = file.endswith(".pth")
            what = "runs at each start of Python" if starts else "lies outside of site-packages"
            yield f"note: {name}: {file} {what}"
    if sizes:
        yield f"unpacked {sizes['total'] / 1e6:.1f} MB"
    for name, ran in made.report.get("verified", {}).get("ran", {}).items():
        firings = f"{ran['firings']} firing{'s' if ran['firings'] != 1 else ''}"
        yield f"verified: {name} checks, and its dry run is {ran['status']} after {firings}"
        if "note" in ran:
            yield f"    {ran['note']}"
        if ran.get("asked") and JOURNAL not in plan.distributions:
            yield f"warning: {name} asks people, and no journal is in the build."
            yield "    A run that waits for an answer is lost: say dist.keep_runs = true."
    if plan.asks and JOURNAL in plan.distributions:
        yield f"asks people ({plan.asks}): {plan.name} axil runs list shows runs that wait"
    if made.files:
        yield f"{out}: {', '.join(_contents(made.files))}"


def _contents(files: Sequence[str]) -> list[str]:
    """Return files, and folders with the number of their files."""
    folders = Counter(each.partition("/")[0] for each in files if "/" in each)
    return [
        *(each for each in files if "/" not in each),
        *(f"{folder}/ ({count} files)" for folder, count in folders.items()),
    ]
