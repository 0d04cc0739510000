"""What the README says of settings is what the components take, and its examples run."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from axil_agent import Agent, HistoryMemory

HOME = Path(__file__).parents[1]
README = (HOME / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
COMPONENTS = [
    (name, value)
    for group, table in PROJECT["entry-points"].items()
    if group != "axil.plugin"
    for name, value in table.items()
]


def loaded(value: str) -> Any:
    module, _, name = value.partition(":")
    return getattr(importlib.import_module(module), name)


def section(name: str) -> str:
    found = re.findall(
        rf"^##+ [^\n]*`{name}`[^\n]*\n(.*?)(?=^##|\Z)", README, re.MULTILINE | re.DOTALL
    )
    assert found, f"no section for {name}"
    return "\n".join(found)


def rows(text: str) -> set[str]:
    return {
        name
        for line in text.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }


@pytest.mark.parametrize(("name", "value"), COMPONENTS)
def test_every_setting_is_described_and_in_the_readmes_table(name, value):
    component = loaded(value)
    config = getattr(component, "Config", None)
    if config is None:
        known = list(inspect.signature(component).parameters)
    else:
        assert config.model_config["extra"] == "forbid"
        assert [field for field, info in config.model_fields.items() if not info.description] == []
        known = list(config.model_fields)
    described = (
        rows(section(name))
        | (rows(section("agent")) if name == "dynamic_agent" else set())
        | {"provider", "name", "base_url", "api_key"}
    )
    assert [field for field in known if field not in described] == []


@pytest.mark.parametrize(("name", "kind"), [("Agent", Agent), ("history", HistoryMemory)])
def test_every_argument_is_in_the_readmes_table(name, kind):
    assert {p for p in inspect.signature(kind).parameters if p != "name"} - rows(
        section(name)
    ) == set()


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
    file = tmp_path / "readme_program.py"
    file.write_text(program, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("readme_program")


def test_every_error_id_is_in_the_readme():
    used = {
        each
        for file in (HOME / "src").rglob("*.py")
        for each in re.findall(r"AX\d{3}", file.read_text("utf-8"))
    }
    explained = set(re.findall(r"^\| (AX\d{3}) ", README, re.MULTILINE))
    elsewhere = {"AX203", "AX222", "AX520", "AX657", "AX804"}  # in core and in axil-models
    assert used - explained <= elsewhere
    assert explained <= used
