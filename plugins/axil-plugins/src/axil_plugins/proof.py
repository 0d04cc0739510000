"""``axil plugins test``: the conformance kit of ``axil-testing``, in a process of its own: what a
plugin does there stays there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

from axil import PluginError
from axil.plugin import Registry, UnknownComponent, install_advice
from axil_cli import Exit, Session
from axil_plugins.manifests import as_text, manifest_of, place_of
from axil_plugins.survey import installed_name

KIT = "axil_testing"
LONGEST_SECONDS = 900.0


def prove(distribution: str, session: Session, *, as_data: bool = False) -> int:
    """Run the kit on a distribution and print what came of it; give 0 if all holds, else 2.

    Raises: UnknownComponent: the kit, or the distribution, is not installed.
    """
    if importlib.util.find_spec(KIT) is None:
        raise UnknownComponent(
            "the conformance kit is not installed.",
            hint=f"It is provided by axil-testing: {install_advice('axil-testing')}",
        )
    installed_name(distribution, session.registry)
    form = "json" if as_data else "text"
    # -P: the folder has no part in it
    command = [sys.executable, "-P", "-m", f"{KIT}.kit.whole", distribution, "--format", form]
    environment = {key: value for key, value in os.environ.items() if key != "AXIL_ONLY"}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
        env={**environment, **session.registry.policy.as_environment()},
    )
    if done.returncode not in (0, 1):
        report = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        raise UnknownComponent(report.removeprefix("error: AX301 "))
    stale = _stale(distribution, session.registry)
    if as_data:
        stated = json.loads(done.stdout)
        is_fine = stated["fine"] and not stale
        session.say_json({**stated, "fine": is_fine, "manifest": stale or "current"})
    else:
        session.say(done.stdout.rstrip())
        if stale:
            session.say(f"FAIL  manifest: {stale}")
    return Exit.DONE if done.returncode == 0 and not stale else Exit.MISUSE


def _stale(distribution: str, registry: Registry) -> str:
    """Tell what is wrong with a manifest; empty: it is current, or there is none, as is allowed."""
    if registry.manifest(distribution) is None:
        return ""
    try:
        current = as_text(manifest_of(distribution, registry))
        written = place_of(distribution, registry).read_text("utf-8")
    except (PluginError, ValueError, OSError) as error:
        return str(error)
    return (
        ""
        if json.loads(written) == json.loads(current)
        else f"it is not current: axil plugins manifest {distribution} --write"
    )
