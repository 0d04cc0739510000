"""Metrics of an engine and of its journal, as text for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Final

from axil import Result
from axil_journals.journal import RunCount

METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "axil_runs": ("gauge", "Runs of the journal that have not ended, by state."),
    "axil_oldest_due_seconds": ("gauge", "How long the first due run has waited."),
    "axil_loaded_runs": ("gauge", "Runs that this process has loaded."),
    "axil_loop_lag_seconds": ("gauge", "How late the event loop of this process is."),
    "axil_takes_total": ("counter", "Runs that this process took."),
    "axil_commits_total": ("counter", "Transactions that this process wrote."),
    "axil_run_ends_total": ("counter", "Runs that ended or paused in this process, by status."),
    "axil_tokens_total": ("counter", "Model tokens of these runs, by kind."),
    "axil_cost_total": ("counter", "Money of these runs, in the unit of the prices."),
}
"""By name, the type and the description of each metric."""

RUN_ID: ContextVar[str] = ContextVar("axil_run_id", default="")


def current_run_id() -> str:
    """Return the id of the run of an engine in which this is called; empty: in none."""
    return RUN_ID.get()


_Labels = tuple[tuple[str, str], ...]
_Samples = dict[str, list[tuple[_Labels, float]]]


class EngineTally:
    """The counters of one engine since it was made."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, _Labels], float] = {}
        self.lag = 0.0
        """Seconds that the event loop was late, of the last second."""

    def count(self, name: str, by: float = 1, labels: Mapping[str, str] | None = None) -> None:
        """Add to a counter."""
        key = (name, tuple((labels or {}).items()))
        self.counts[key] = self.counts.get(key, 0) + by

    def ended(self, result: Result, of: Mapping[str, str], used: Mapping[str, Any]) -> None:
        """Count what a loaded run used since it was loaded.

        Args:
            of: its labels ``queue`` and ``workflow``.
            used: what it had used before.
        """
        self.count("axil_run_ends_total", 1, {**of, "status": str(result.status)})
        before = used.get("tokens", {})
        for kind, tokens in result.usage.tokens.items():
            self.count("axil_tokens_total", tokens - before.get(kind, 0), {**of, "kind": kind})
        if cost := result.usage.cost - used.get("cost", 0.0):
            self.count("axil_cost_total", cost, of)


def process_metrics(tally: EngineTally, *, loaded: int, commits: int) -> str:
    """Return what a process counts, in the text format of Prometheus."""
    found: _Samples = {
        "axil_loaded_runs": [((), loaded)],
        "axil_loop_lag_seconds": [((), round(tally.lag, 6))],
        "axil_commits_total": [((), commits)],
    }
    for (name, labels), value in sorted(tally.counts.items()):
        found.setdefault(name, []).append((labels, value))
    return _text(found)


def journal_metrics(counts: Iterable[RunCount], now: float) -> str:
    """Return the runs of a journal that have not ended, in the text format of Prometheus."""
    found: _Samples = {"axil_runs": [], "axil_oldest_due_seconds": []}
    for each in counts:
        of = (("queue", each.queue), ("workflow", each.graph))
        found["axil_runs"].append(((*of, ("state", each.state)), each.runs))
        if each.state == "due":
            age = round(max(0.0, now - each.oldest), 3)
            found["axil_oldest_due_seconds"].append((of, age))
    return _text(found)


def _text(found: _Samples) -> str:
    lines = list[str]()
    for name, samples in found.items():
        kind, help = METRICS[name]
        lines += [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_labels(labels)} {value}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: _Labels) -> str:
    """Return labels as Prometheus reads them.

    >>> _labels((("queue", 'a"b'),)), _labels(())
    ('{queue="a\\\\"b"}', '')
    """
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{','.join(pairs)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
