"""Builds every member's wheel, then runs each member's tests against it in an environment that holds nothing else.

    python tests/house/alone.py [NAME …]        all members, or only those named; wheels land in dist/

A member that needs something it does not declare, that forgot a file in its wheel, or that only works beside its neighbours
fails here and nowhere else. Wheels of the workspace are always passed by path: no internal name is ever looked up outside the checkout.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"


def load_members() -> dict[str, tuple[Path, dict[str, Any]]]:
    """Distribution name → (folder, its pyproject)."""
    files = [ROOT / "core/pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml")), *sorted(ROOT.glob("contrib/*/pyproject.toml"))]
    loaded = [(file.parent, tomllib.loads(file.read_text("utf-8"))) for file in files]
    return {pyproject["project"]["name"]: (folder, pyproject) for folder, pyproject in loaded}


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match, requirement
    return match[0].lower().replace("_", "-")


def pip(python: Path | str, *arguments: object) -> None:
    subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "--quiet", *map(str, arguments)], check=True)


def build_wheels(members: dict[str, tuple[Path, dict[str, Any]]]) -> dict[str, Path]:
    """One wheel per member in dist/, built with the backend of this environment."""
    shutil.rmtree(DIST, ignore_errors=True)
    pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", DIST, *(folder for folder, _ in members.values()))
    return {file.name.split("-")[0].replace("_", "-"): file for file in sorted(DIST.glob("*.whl"))}


def faults_of(wheel: Path, name: str, has_code: bool) -> list[str]:
    """What is missing from a wheel, or should not be in it."""
    names = zipfile.ZipFile(wheel).namelist()
    package = name.replace("-", "_")
    faults = []
    if not any(each.endswith(".dist-info/licenses/LICENSE") for each in names):
        faults.append("no LICENSE")
    if has_code and f"{package}/py.typed" not in names:
        faults.append("no py.typed")
    if has_code and f"{package}/axil-plugin.json" not in names:
        faults.append("no axil-plugin.json")
    strangers = {each.partition("/")[0] for each in names if not each.partition("/")[0].endswith(".dist-info")} - {package}
    if strangers:
        faults.append(f"installs {', '.join(sorted(strangers))}")
    return faults


def needed(name: str, members: dict[str, tuple[Path, dict[str, Any]]]) -> tuple[set[str], set[str]]:
    """Members that `name` and its tests need, itself included, and the other requirements of its tests."""
    local: set[str] = set()
    waiting = [name]
    _, pyproject = members[name]
    tests = pyproject.get("dependency-groups", {}).get("test", [])
    waiting += [name_of(each) for each in tests if name_of(each) in members]
    while waiting:
        each = waiting.pop()
        if each not in local:
            local.add(each)
            _, its = members[each]
            waiting += [name_of(other) for other in its["project"].get("dependencies", []) if name_of(other) in members]
    return local, {each for each in tests if name_of(each) not in members}


def run_alone(name: str, members: dict[str, tuple[Path, dict[str, Any]]], wheels: dict[str, Path]) -> bool:
    folder, _ = members[name]
    local, others = needed(name, members)
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as temporary:
        environment = Path(temporary)
        venv.create(environment, with_pip=True)
        python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        pip(python, "install", *(wheels[each] for each in sorted(local)), *sorted(others))
        pip(python, "check")
        tests = folder / "tests"
        if not any(tests.rglob("test_*.py")):
            print(f"{name}: no tests of its own; installs")
            return True
        command = [python, "-P", "-m", "pytest", "-q", "-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider", tests]
        return subprocess.run(command, cwd=environment).returncode == 0


def main(names: list[str]) -> int:
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
        if faults or not run_alone(name, members, wheels):
            failed.append(name)
    print(f"failed alone: {', '.join(failed)}" if failed else "every member stands alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
