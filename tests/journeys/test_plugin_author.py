"""A plugin author: from a scaffold to a wheel to another environment.

An environment here has what this one has, and installs nothing from an index. With each kind of
component, and with an index, it is part of ``make thorough``.
"""

from __future__ import annotations

import re
import site
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.journeys.person import LONG, Terminal

KINDS = [
    "node",
    "model",
    "formatter",
    "context",
    "tool",
    "embedder",
    "wrapper",
    "channel",
    "hook",
    "reducer",
    "condition",
    "loader",
    "journal",
]
PROGRAM = """#!{python}
import sys
from {module} import {name}
sys.exit({name}())
"""


def environment(terminal: Terminal, name: str) -> None:
    """Make an environment with what is installed here, and use it in the terminal."""
    folder = terminal.folder / name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    here = [each for each in site.getsitepackages() if each.endswith("site-packages")]
    (packages / "here.pth").write_text(
        "".join(f"import site; site.addsitedir({each!r})\n" for each in here)
    )
    for program, module, function in (
        ("axil", "axil_cli.main", "script"),
        ("pip", "pip._internal.cli.main", "main"),
    ):
        path = folder / "bin" / program
        path.write_text(PROGRAM.format(python=folder / "bin/python", module=module, name=function))
        path.chmod(0o755)
    terminal.programs = folder / "bin"
    offline = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1"}
    terminal.environment |= {"PATH": f"{folder / 'bin'}:{terminal.environment['PATH']}", **offline}


@pytest.mark.parametrize("kind", KINDS if LONG else ["node"])
def test_a_plugin_is_written_proved_shipped_and_used_elsewhere(
    terminals: Callable[..., Terminal], kind: str
) -> None:
    author = terminals("author")
    environment(author, "env")
    told = author.type(f"axil plugins new acme-clock --kind {kind}").shows("acme-clock")
    # what it says is done as it says it
    for line in re.findall(r"(?m)^    (\S.*)$", told.text):
        author.type(line)
    author.type("axil plugins test acme-clock").shows("passed")
    author.type("axil plugins doctor acme-clock").shows("0 errors")
    author.type("axil plugins list").shows("acme-clock")
    author.type("pip wheel --wheel-dir wheels ./acme-clock")
    [wheel] = (author.folder / "wheels").glob("*.whl")

    user = terminals("user")
    environment(user, "env")
    if kind == "node":
        flow = (author.folder / "acme-clock/examples/flow.json").read_text("utf-8")
        user.write("flow.json", flow)
        user.type("axil check flow.json", code=2).shows("acme.clock")
    user.type(f"pip install {wheel}")
    if kind == "node":
        user.type("axil check flow.json").shows("fine")
        there = author.type("axil run acme-clock/examples/flow.json --input hello").out
        assert user.type("axil run flow.json --input hello").out == there != ""
        user.type("axil plugins why flow.json").shows("acme-clock")
    user.type("axil plugins show acme-clock").shows("acme-clock 0.1.0")
    assert Path(user.type("python -c 'import acme_clock; print(acme_clock.__file__)'").out).parts
