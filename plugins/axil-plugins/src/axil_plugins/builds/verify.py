"""The proof: the build is installed into an environment of its own, examined and run there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from axil import ConfigError, Problem
from axil.plugin import FromEnvironment
from axil_plugins.builds.outputs import lock_text, package_of
from axil_plugins.builds.plan import Plan
from axil_plugins.builds.settings import Settings
from axil_plugins.builds.wheels import Wheel, pip_command

LONGEST_SECONDS: Final = 600.0


def prove(
    plan: Plan, settings: Settings, wheels: Sequence[Wheel], reading: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the findings in a fresh environment.

    Args:
        reading: ``vars`` and ``allow`` of the dry run; a secret is left out, as no model is asked.
    Raises: ConfigError: AX743 something does not hold, AX744 a limit is passed; all at once.
    """
    with tempfile.TemporaryDirectory(prefix="axil-build-") as name:
        folder = Path(name)
        python = _installed(folder, wheels)
        stated = _inside(folder, python, _asked(plan, settings, reading))
        site = next((folder / "env" / "lib").glob("python*/site-packages"), folder / "env" / "lib")
        stated["bytes"] = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
    problems = _faults(stated, settings, wheels)
    if problems:
        raise ConfigError(problems)
    return stated


def _installed(folder: Path, wheels: Sequence[Wheel]) -> Path:
    """Make a fresh environment with exactly these wheels, by their hashes; give its interpreter."""
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    (folder / "lock").write_text(lock_text(wheels), "utf-8")
    places = dict.fromkeys(f"--find-links={each.path.parent}" for each in wheels)
    pip = [*pip_command(), "--python", str(python), "install", "--no-index", "--no-compile"]
    command = [*pip, *places, "--require-hashes", "-r", str(folder / "lock")]
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


def _asked(plan: Plan, settings: Settings, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the environment is asked about."""
    code = {"code"} if settings.verify.allow_code else set[str]()
    return {
        "package": package_of(plan),
        "workflows": [plan.named(each) for each in plan.workflows],
        "functions": plan.inside(plan.functions) if plan.functions is not None else "",
        "dry_run": settings.verify.dry_run,
        "inputs": settings.verify.inputs,
        "allow": sorted({*reading.get("allow", ()), *code}),
        "vars": {
            name: value
            for name, value in reading.get("vars", {}).items()
            if not isinstance(value, FromEnvironment)
        },
    }


def _inside(folder: Path, python: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment's own report; its process gets none of our variables."""
    script = folder / "inside.py"
    script.write_text((files("axil_plugins.builds") / "inside.txt").read_text("utf-8"), "utf-8")
    names = {"PATH", "SYSTEMROOT", "TMPDIR", "LANG"} & os.environ.keys()
    kept = {name: os.environ[name] for name in names}
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


def _faults(found: Mapping[str, Any], settings: Settings, wheels: Sequence[Wheel]) -> list[Problem]:
    locked = {each.name: each.version for each in wheels}
    messages: list[str] = [*found["faults"]]
    if differing := sorted(set(found["installed"].items()) ^ set(locked.items())):
        messages.append(f"what is installed is not what was locked: {differing}.")
    if others := sorted(set(found["registering"]) - set(locked)):
        names = ", ".join(others)
        messages.append(f"components are registered by {names}, which are not in the lock.")
    problems = [Problem("AX743", "verify", each) for each in messages]
    most = settings.limits.max_mb
    if most is not None and found["bytes"] > most * 1e6:
        message = f"it is {found['bytes'] / 1e6:.1f} MB; the limit is {most:g}."
        hint = "Raise the limit, or remove nodes or plugins that require much."
        problems.append(Problem("AX744", "limits.max_mb", message, hint))
    return problems
