"""The Grafana board, the alert rules and the page about them name the metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from axil_journals import METRICS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/watch-workers.md").read_text("utf-8")
BOARD: Any = json.loads((ROOT / "examples/operate/grafana.json").read_text("utf-8"))
ALERTS: Any = yaml.safe_load((ROOT / "examples/operate/alerts.yaml").read_text("utf-8"))
LABELS = {"queue", "workflow", "state", "status", "kind", "instance"}
NAME = re.compile(r"\baxil_[a-z_]+")
BY = re.compile(r"by \(([^)]*)\)")
ASKED = re.compile(r"\b(\w+)(?:=~|!=|=)\"")


def expressions() -> list[str]:
    panels = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    return [*panels, *(rule["expr"] for group in ALERTS["groups"] for rule in group["rules"])]


def test_the_board_and_the_alerts_name_only_metrics_and_labels_that_there_are() -> None:
    asked = expressions()
    assert {name for each in asked for name in NAME.findall(each)} <= METRICS.keys()
    grouped = {label for each in asked for by in BY.findall(each) for label in by.split(", ")}
    assert grouped | {label for each in asked for label in ASKED.findall(each)} <= LABELS
    for each in asked:
        for name in NAME.findall(each):
            is_counted = METRICS[name][0] == "counter"
            assert (f"rate({name}" in each) == is_counted, each
            assert name.endswith("_total") == is_counted


def test_every_metric_is_on_the_board_and_in_the_page() -> None:
    board = json.dumps(BOARD)
    assert [name for name in METRICS if name not in board or f"`{name}`" not in PAGE] == []


def test_every_alert_has_a_section_of_the_page_that_says_what_to_do() -> None:
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    headings = {line[4:] for line in PAGE.splitlines() if line.startswith("### ")}
    assert headings == {rule["alert"] for rule in rules}
    for rule in rules:
        place, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (ROOT / place).is_file()
        assert anchor == rule["alert"].lower()
