"""What the README says is so: its examples run, its tables name every key, and its errors are those
that are raised.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from axil_devall import config

HOME = Path(__file__).parents[1]
README = (HOME / "README.md").read_text("utf-8")
MODELS = [
    m
    for m in vars(config).values()
    if isinstance(m, type) and issubclass(m, BaseModel) and m.__module__ == config.__name__
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_described_and_in_the_readme(model):
    assert model.model_config["extra"] == "forbid"
    described = set(re.findall(r"`([^`]*)`", README))
    words = {word for text in described for word in re.findall(r"\w+", text)}
    effective = {
        name
        for name, info in model.model_fields.items()
        if not (info.description or "").startswith("Without effect")
    }
    assert effective - words - {"type", "config"} == set()
    assert [
        name
        for name, info in model.model_fields.items()
        if not info.description and name not in ("type", "config")
    ] == []


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
    (tmp_path / "devall_readme_program.py").write_text(program, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("devall_readme_program")


def test_every_error_id_is_in_the_readme():
    used = {
        each
        for file in (HOME / "src").rglob("*.py")
        for each in re.findall(r"AX\d{3}", file.read_text("utf-8"))
    }
    assert {each for each in used if "AX850" <= each <= "AX869"} == set(
        re.findall(r"^\| (AX\d{3}) ", README, re.MULTILINE)
    )
    assert {each for each in used if not "AX850" <= each <= "AX869"} <= {"AX655"}
