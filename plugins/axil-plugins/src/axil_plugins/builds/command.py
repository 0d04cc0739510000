"""``axil build``: plan, lock, assemble, verify, report. Each step can be the last."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from axil import ConfigError, Problem
from axil.plugin import Registry, canonical_name, decode_config
from axil_plugins.builds import cluster, outputs, report, verify, wheels
from axil_plugins.builds.plan import Plan, plan
from axil_plugins.builds.settings import Dist, Settings, is_build_file, read
from axil_plugins.builds.wheels import Wheel

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
        """Add the arguments."""
        parser.add_argument(
            "files",
            nargs="+",
            metavar="WORKFLOW",
            help="workflow files; graphs in Python, as module:graph or file.py:graph; "
            "or axil-build.toml",
        )
        parser.add_argument(
            "--functions",
            metavar="DIR",
            default="",
            help="functions in this folder's files are tools, conditions, processors; "
            "needs --allow code",
        )
        parser.add_argument(
            "--allow",
            action="append",
            default=[],
            choices=("code",),
            help="code: load --functions, and what axil-build.toml names that is code",
        )
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
        parser.add_argument("--format", choices=("text", "json"), default="text")

    def run(self, options: argparse.Namespace, session: Any) -> int:
        """Build it; what does not hold is an error, and then nothing is left in the folder."""
        if options.functions and "code" not in options.allow:
            message = "functions are code, which this build does not allow."
            hint = "Add --allow code, if you trust them."
            raise ConfigError(Problem("AX700", "--functions", message, hint))
        settings = read(options.files, options.functions)
        if is_build_file(options.files) and "code" not in options.allow:
            _without_code(settings, options.files[0])
        if options.outputs:
            wanted = {"outputs": (*settings.dist.outputs, *options.outputs)}
            dist = decode_config(Dist, {**settings.dist.model_dump(), **wanted}, "--compose")
            settings = settings.model_copy(update={"dist": dist})
        out = Path(options.out) if options.out else _usual_folder(settings)
        made = build(settings, session.registry, out, until=options.until)
        if options.format == "json":
            session.say(
                json.dumps(
                    {"plan": made.plan.plain(), "files": made.files, "report": made.report},
                    ensure_ascii=False,
                    indent=2,
                )
            )
        else:
            session.say("\n".join(lines(made, out)))
        return 0


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


def build(settings: Settings, registry: Registry, out: Path, *, until: str = "verify") -> Made:
    """Do the steps, up to ``until``.

    ``out`` is replaced as a whole when all of them hold, and not touched before.

    Raises: ConfigError, SpecError: what does not hold, all at once.
    """
    made = Made(plan=plan(settings, registry))
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
                made.report["verified"] = verify.prove(made.plan, settings, made.wheels, main)
        made.report["sizes"] = report.sizes(made.plan, made.wheels)
        notable = {each.name: list(each.notable) for each in made.wheels if each.notable}
        made.report["notable"] = notable
        (place / "report.json").write_text(
            json.dumps(made.report, ensure_ascii=False, indent=2) + "\n", "utf-8"
        )
        (place / "plan.json").write_text(
            json.dumps(made.plan.plain(), ensure_ascii=False, indent=2) + "\n", "utf-8"
        )
        made.files = sorted(
            file.relative_to(place).as_posix() for file in place.rglob("*") if file.is_file()
        )
        _put(place, out)
    return made


def _put(place: Path, out: Path) -> None:
    """Copy what was made to where it goes.

    Until it is whole there is what was there before. Raises: ConfigError (AX955).
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
            except OSError:
                if old.exists():
                    old.rename(out)
                raise
    except OSError as error:
        message = f"{out} cannot be written: {error.strerror or error}."
        raise ConfigError(
            Problem("AX955", "--out", message, "Check its folder and the free space on the disk.")
        ) from error


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
    strangers = sorted(set(sources) - set(made.plan.distributions))
    if strangers:
        message = f"{', '.join(strangers)} would not be in the build."
        raise ConfigError(
            Problem("AX740", "sources", message, "Remove the line, or include the distribution.")
        )
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
    if not settings.dist.entry:
        return made.workflows[0]
    wanted = (Path(settings.folder) / settings.dist.entry).resolve()
    wanted = next(
        (file for file, name in made.graphs.items() if name == settings.dist.entry), wanted
    )
    if wanted not in made.workflows:
        names = ", ".join(made.named(each) for each in made.workflows)
        raise ConfigError(
            Problem(
                "AX745",
                "dist.entry",
                f"{settings.dist.entry} is not one of the workflows: {names}.",
            )
        )
    return wanted


def lines(made: Made, out: Path) -> Sequence[str]:
    """Return the report for people."""
    messages = [
        f"{made.plan.name} {made.plan.version}: {len(made.plan.distributions)} distributions"
    ]
    for name, uses in made.plan.roots.items():
        brought = made.report.get("sizes", {}).get("only_because_of", {}).get(name)
        size = f", {brought / 1e6:.2f} MB that nothing else needs" if brought is not None else ""
        messages.append(
            f"    {name} {made.plan.distributions[name]}: "
            f"{', '.join(uses[:4])}{' …' if len(uses) > 4 else ''}{size}"
        )
    for word in made.plan.blind:
        messages.append(
            f"warning: the settings of {word} were not looked into: "
            "its distribution has no manifest."
        )
    for name, files in made.report.get("notable", {}).items():
        for file in files:
            starts = file.endswith(".pth")
            what = "runs at each start of Python" if starts else "lies outside of site-packages"
            messages.append(f"note: {name}: {file} {what}")
    if "sizes" in made.report:
        messages.append(f"unpacked {made.report['sizes']['total'] / 1e6:.1f} MB")
    for name, ran in made.report.get("verified", {}).get("ran", {}).items():
        messages.append(
            f"verified: {name} checks, "
            f"and its dry run is {ran['status']} after {ran['firings']} "
            f"firing{'s' if ran['firings'] != 1 else ''}"
        )
        messages += [f"    {ran['note']}"] if "note" in ran else []
        if ran.get("asked") and JOURNAL not in made.plan.distributions:
            messages.append(f"warning: {name} asks people, and no journal is in the build.")
            messages.append(
                "    A run that waits for an answer is lost: say dist.keep_runs = true."
            )
    if made.plan.asks and JOURNAL in made.plan.distributions:
        messages.append(
            f"asks people ({made.plan.asks}): {made.plan.name} axil runs list shows runs that wait"
        )
    return [*messages, *([f"{out}: {', '.join(_contents(made.files))}"] if made.files else [])]


def _contents(files: Sequence[str]) -> list[str]:
    """Files, and folders with how many files are in them."""
    folders: dict[str, int] = {}
    for each in files:
        folder, slash, _ = each.partition("/")
        if slash:
            folders[folder] = folders.get(folder, 0) + 1
    return [each for each in files if "/" not in each] + [
        f"{folder}/ ({count} files)" for folder, count in folders.items()
    ]
