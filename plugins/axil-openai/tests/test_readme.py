"""What the README says of settings is what the components take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from axil_models import Retry
from axil_openai import OpenAIEmbedder, OpenAIModel, OpenAIResponsesModel

HOME = Path(__file__).parents[1]
README = (HOME / "README.md").read_text("utf-8")
ROWS = {
    name
    for line in README.splitlines()
    if line.startswith("| `")
    for name in re.findall(r"`(\w+)`", line.split("|")[1])
}


@pytest.mark.parametrize(
    "config", [OpenAIModel.Config, OpenAIResponsesModel.Config, OpenAIEmbedder.Config, Retry]
)
def test_every_setting_is_described_and_in_a_table(config):
    assert config.model_config["extra"] == "forbid"
    assert [name for name, info in config.model_fields.items() if not info.description] == []
    assert set(config.model_fields) - ROWS == set()


def test_the_errors_that_it_raises_are_in_the_readme():
    used = {
        each
        for path in (HOME / "src").rglob("*.py")
        for each in re.findall(r"Problem\(\"(AX\d{3})", path.read_text("utf-8"))
    }
    assert used
    assert used - set(re.findall(r"^\| (AX\d{3}) ", README, re.MULTILINE)) == set()
