"""The proof: the build is installed into a fresh environment, and looked at and run there, with
nothing else in sight.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from axil import ConfigError, Problem
from axil_plugins.builds.outputs import lock_text, package_of
from axil_plugins.builds.plan import Plan
from axil_plugins.builds.settings import Settings
from axil_plugins.builds.wheels import Wheel, pip_command

LONGEST_SECONDS: Final = 600.0


def prove(plan: Plan, settings: Settings, wheels: Sequence[Wheel], main: Wheel) -> dict[str, Any]:
    """Return the findings in a fresh environment.

    Raises: ConfigError: AX743 something does not hold, AX744 a limit is passed; all at once.
    """
    with tempfile.TemporaryDirectory(prefix="axil-build-") as folder:
        python = _installed(Path(folder), [*wheels, main])
        stated = _inside(Path(folder), python, plan, settings)
        stated["bytes"] = sum(
            file.stat().st_size for file in _site(Path(folder)).rglob("*") if file.is_file()
        )
    problems = list(_faults(stated, plan, settings, [*wheels, main]))
    if problems:
        raise ConfigError(problems)
    return stated


def _installed(folder: Path, wheels: Sequence[Wheel]) -> Path:
    """Make a fresh environment with exactly these wheels, by their hashes; give its interpreter."""
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    (folder / "lock").write_text(lock_text(wheels), "utf-8")
    places = dict.fromkeys(str(each.path.parent) for each in wheels)
    pip = [*pip_command(), "--python", str(python), "install", "--no-index", "--no-compile"]
    command = [
        *pip,
        *(f"--find-links={place}" for place in places),
        "--require-hashes",
        "-r",
        str(folder / "lock"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )
    if done.returncode:
        message = (
            "; ".join(line for line in done.stderr.strip().splitlines() if line.startswith("ERROR"))
            or done.stderr[-500:]
        )
        raise ConfigError(Problem("AX743", "verify", f"the lock cannot be installed: {message}"))
    return python


def _site(folder: Path) -> Path:
    lib = folder / "env" / "lib"
    return next(lib.glob("python*/site-packages"), lib)


def _inside(folder: Path, python: Path, plan: Plan, settings: Settings) -> dict[str, Any]:
    """Return the environment's own report; its process gets none of our variables."""
    asked = {
        "package": package_of(plan),
        "workflows": [plan.named(each) for each in plan.workflows],
        "functions": plan.inside(plan.functions) if plan.functions is not None else "",
        "dry_run": settings.verify.dry_run,
        "inputs": settings.verify.inputs,
        "allow_code": settings.verify.allow_code,
    }
    script = folder / "inside.py"
    script.write_text((files("axil_plugins.builds") / "inside.txt").read_text("utf-8"), "utf-8")
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in ("PATH", "SYSTEMROOT", "TMPDIR", "LANG")
    }
    environment = {**kept, "AXIL_CONFIG": "", "HOME": str(folder)}
    command = [str(python), "-I", str(script), json.dumps(asked)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    try:
        return json.loads(done.stdout.strip().rpartition("\n")[2])
    except ValueError:
        report = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ConfigError(Problem("AX743", "verify", f"it cannot be inspected: {report}")) from None


def _faults(
    said: dict[str, Any], plan: Plan, settings: Settings, wheels: Sequence[Wheel]
) -> list[Problem]:
    locked = {each.name: each.version for each in wheels}
    problems = [Problem("AX743", "verify", report) for report in said["faults"]]
    if said["installed"] != locked:
        apart = sorted(set(said["installed"].items()) ^ set(locked.items()))
        problems.append(
            Problem("AX743", "verify", f"what is installed is not what was locked: {apart}.")
        )
    strangers = sorted(set(said["registering"]) - set(locked))
    if strangers:
        problems.append(
            Problem(
                "AX743",
                "verify",
                f"components are registered by {', '.join(strangers)}, which are not in the lock.",
            )
        )
    most = settings.limits.max_mb
    if most is not None and said["bytes"] > most * 1e6:
        problems.append(
            Problem(
                "AX744",
                "limits.max_mb",
                f"it is {said['bytes'] / 1e6:.1f} MB; the limit is {most:g}.",
            )
        )
    return problems
