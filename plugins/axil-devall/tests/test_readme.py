"""The README names every key of DevAll's files."""

from __future__ import annotations

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
