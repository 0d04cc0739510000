"""Builds every member's wheel, then runs each member's tests against it in an environment that
holds nothing else.

    python tests/house/alone.py [--lowest] [NAME …]

It does so for all members, or only for those named; wheels land in dist/.

A member that needs something it does not declare, that forgot a file in its wheel, or that only
works beside its neighbours fails here and nowhere else. Wheels of the workspace are always passed
by path: no internal name is ever looked up outside the checkout.

With --lowest, everything that the member, its tests, and the members under it require is held at
its lower bound, tools of the tests included: a bound that promises too much fails here. What only
others require is whatever fits.
"""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
IMPORTED_AS = {
    "axil-core": "axil",
    "axil-evofabric": "evofabric",
    "axil-masfactory": "masfactory",
}
"""Members that bring another project's import name."""


def load_members() -> dict[str, tuple[Path, dict[str, Any]]]:
    """Distribution name → (folder, its pyproject)."""
    files = [
        ROOT / "core/pyproject.toml",
        *sorted(ROOT.glob("plugins/*/pyproject.toml")),
        *sorted(ROOT.glob("contrib/*/pyproject.toml")),
    ]
    loaded = [(file.parent, tomllib.loads(file.read_text("utf-8"))) for file in files]
    return {pyproject["project"]["name"]: (folder, pyproject) for folder, pyproject in loaded}


def name_of(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


FOLLOWERS = {"pydantic-core": "pydantic"}
"""Distributions of which another one, the value, requires one version exactly."""


def lowest(requirements: list[str]) -> list[str]:
    """Constraints that hold each of ``requirements`` at its lower bound; of several bounds at the
    highest, as any resolver must.
    """
    bounds: dict[str, Version] = {}
    for each in map(Requirement, requirements):
        if each.marker is None or each.marker.evaluate():
            name, floors = (
                canonicalize_name(each.name),
                [Version(part.version) for part in each.specifier if part.operator == ">="],
            )
            bounds[name] = max([*floors, *([bounds[name]] if name in bounds else [])])
    return [
        f"{name}=={version}"
        for name, version in sorted(bounds.items())
        if FOLLOWERS.get(name) not in bounds
    ]


def pip(python: Path | str, *arguments: object) -> None:
    subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *map(str, arguments)],
        check=True,
    )


def build_wheels(members: dict[str, tuple[Path, dict[str, Any]]]) -> dict[str, Path]:
    """Return one wheel per member in dist/, built with the backend of this environment."""
    shutil.rmtree(DIST, ignore_errors=True)
    pip(
        sys.executable,
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        DIST,
        *(folder for folder, _ in members.values()),
    )
    return {file.name.split("-")[0].replace("_", "-"): file for file in sorted(DIST.glob("*.whl"))}


def faults_of(wheel: Path, name: str, has_code: bool) -> list[str]:
    """Return what is missing from a wheel, or should not be in it."""
    content = zipfile.ZipFile(wheel)
    names = content.namelist()
    package = IMPORTED_AS.get(name) or name.replace("-", "_")
    faults = []
    if not any(each.endswith(".dist-info/licenses/LICENSE") for each in names):
        faults.append("no LICENSE")
    if has_code and f"{package}/py.typed" not in names:
        faults.append("no py.typed")
    if has_code and f"{package}/axil-plugin.json" not in names:
        faults.append("no axil-plugin.json")
    strangers = {
        each.partition("/")[0]
        for each in names
        if not each.partition("/")[0].endswith(".dist-info")
    } - {package, *programs_of(content)}
    if strangers:
        faults.append(f"installs {', '.join(sorted(strangers))}")
    return faults


def programs_of(wheel: zipfile.ZipFile) -> set[str]:
    """Return the modules in which the programs of a wheel begin, where these are no packages."""
    declared = configparser.ConfigParser(delimiters="=")
    for name in wheel.namelist():
        if name.endswith(".dist-info/entry_points.txt"):
            declared.read_string(wheel.read(name).decode())
    programs = declared["console_scripts"].values() if "console_scripts" in declared else ()
    return {f"{program.partition(':')[0]}.py" for program in programs}


def needed(name: str, members: dict[str, tuple[Path, dict[str, Any]]]) -> tuple[set[str], set[str]]:
    """Members that `name` and its tests need, itself included, and the other requirements of its
    tests and of the extras of members that are asked for.
    """
    local, others = set[str](), set[str]()
    done: set[str] = set()
    waiting = [name, *members[name][1].get("dependency-groups", {}).get("test", [])]
    while waiting:
        asked = waiting.pop()
        each = name_of(asked)
        if each not in members:
            others.add(asked)
        elif asked not in done:
            done.add(asked)
            local.add(each)
            project = members[each][1]["project"]
            inner = project.get("dependencies", [])
            waiting += [other for other in inner if name_of(other) in members]
            for extra in Requirement(asked).extras:
                waiting += project.get("optional-dependencies", {}).get(extra, [])
    return local, others


def bounds_of(name: str, members: dict[str, tuple[Path, dict[str, Any]]]) -> list[str]:
    """Constraints for everything foreign that `name`, its tests, and the members under it
    require.
    """
    local, others = needed(name, members)
    declared = [
        each
        for inner in sorted(local)
        for each in members[inner][1]["project"].get("dependencies", [])
    ]
    return lowest([*(each for each in declared if name_of(each) not in members), *others])


def run_alone(
    name: str,
    members: dict[str, tuple[Path, dict[str, Any]]],
    wheels: dict[str, Path],
    *,
    at_lowest: bool = False,
) -> bool:
    folder, _ = members[name]
    local, others = needed(name, members)
    bounds = bounds_of(name, members) if at_lowest else []
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as temporary:
        environment = Path(temporary)
        venv.create(environment, with_pip=True)
        python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        if bounds:
            print(f"{name}: {', '.join(bounds)}", flush=True)
        (environment / "constraints.txt").write_text("\n".join(bounds), "utf-8")
        wanted = [*(wheels[each] for each in sorted(local)), *sorted(others)]
        try:
            pip(python, "install", "--constraint", environment / "constraints.txt", *wanted)
            pip(python, "check")
        except subprocess.CalledProcessError:
            return False
        tests = folder / "tests"
        if not any(tests.rglob("test_*.py")):
            print(f"{name}: no tests of its own; installs")
            return True
        command = [
            python,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-c",
            ROOT / "pyproject.toml",
            "-p",
            "no:cacheprovider",
            tests,
        ]
        return subprocess.run(command, cwd=environment).returncode == 0


def main(arguments: list[str]) -> int:
    at_lowest = "--lowest" in arguments
    names = [each for each in arguments if each != "--lowest"]
    members = load_members()
    unknown = [name for name in names if name not in members]
    if unknown:
        print(f"no member {', '.join(unknown)}; there are {', '.join(members)}")
        return 2
    wheels = build_wheels(members)
    failed = []
    for name in names or members:
        print(f"── {name}", flush=True)
        faults = faults_of(wheels[name], name, (members[name][0] / "src").is_dir())
        for fault in faults:
            print(f"{wheels[name].name}: {fault}")
        if faults or not run_alone(name, members, wheels, at_lowest=at_lowest):
            failed.append(name)
    with_what = " with the lowest versions that it declares" if at_lowest else ""
    print(
        f"failed alone{with_what}: {', '.join(failed)}"
        if failed
        else f"every member stands alone{with_what}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
