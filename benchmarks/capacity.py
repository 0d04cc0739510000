"""Ten million runs a day on fifty machines, on paper: ``python benchmarks/capacity.py``.

The bytes were measured (``test_capacity.py`` measures them again and holds them to be bounds), the
processor's time and the statements before that (``many-machines.md``); the rest is arithmetic.
``docs/explanation/performance/ten-million-runs.md`` has what this prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_DAY: Final = 86_400
_GIB: Final = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The costs of a run for PostgreSQL, in bytes; upper bounds."""

    row: int = 500
    """A row of the table of runs, with its indexes."""
    run_entries: int = 1100
    """The beginning and the end of a run with little data, with their index."""
    step_entries: int = 500
    """A firing with little data, with its index."""
    run_log: int = 8000
    """Of the write-ahead log, for a run without its firings, among others."""
    step_log: int = 1300
    server_seconds: float = 75e-6
    """Of the server's processors, for a step."""
    look_statements: int = 5
    """Of a worker that looks in vain: two renew the lease of the take, and three look."""
    lease_statements: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load that is asked for."""

    runs_a_day: int = 10_000_000
    steps: int = 10
    data: int = 2_000
    """Bytes of values for each step, beside what is measured with little data."""
    peak: float = 3.0
    """The busiest hour, against the mean."""
    machines: int = 50
    workers: int = 4
    """On each machine."""
    model_seconds: float = 2.0
    """That a step waits for a model or a service."""
    kept_days: float = 7.0
    server_connections: int = 60
    """Of the pool of PgBouncer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The means that a load takes."""

    runs_a_second: float
    steps_a_second: float
    at_work: float
    at_work_each: float
    server_processors: float
    idle_statements: float
    log_bytes_a_second: float
    log_bytes_a_day: float
    kept_bytes: float
    deleted_a_second: float
    deleted_log_bytes_a_second: float
    """At the most, all day: each page that a run was on is logged whole."""
    direct_connections: int
    server_connections: int


def needs(load: Load, measured: Measured) -> Needs:
    """Return what a load takes; rates are those of the busiest hour.

    >>> round(needs(Load(), Measured()).runs_a_second)
    347
    """
    mean = load.runs_a_day / _DAY
    runs, workers = mean * load.peak, load.machines * load.workers
    steps = runs * load.steps
    log = measured.run_log + load.steps * (measured.step_log + load.data)
    kept = measured.row + measured.run_entries + load.steps * (measured.step_entries + load.data)
    at_work = steps * load.model_seconds
    idle = measured.lease_statements / 2.0 + measured.look_statements / 5.0
    return Needs(
        runs_a_second=runs,
        steps_a_second=steps,
        at_work=at_work,
        at_work_each=at_work / workers,
        server_processors=steps * measured.server_seconds,
        idle_statements=workers * idle,
        log_bytes_a_second=runs * log,
        log_bytes_a_day=load.runs_a_day * log,
        kept_bytes=load.runs_a_day * load.kept_days * kept,
        deleted_a_second=mean,
        deleted_log_bytes_a_second=mean * kept,
        direct_connections=workers,
        server_connections=workers + load.server_connections,
    )


def table(load: Load, measured: Measured) -> Iterator[str]:
    """Yield the rows of the page's table."""
    found = needs(load, measured)
    yield "| | in the busiest hour |"
    yield "|---|---|"
    rows = {
        "runs that begin, a second": f"{found.runs_a_second:,.0f}",
        "steps, a second": f"{found.steps_a_second:,.0f}",
        "runs at work": f"{found.at_work:,.0f}, {found.at_work_each:,.0f} in each worker",
        "processors of the server, for steps": f"{found.server_processors:.2f}",
        "statements of idle workers, a second": f"{found.idle_statements:,.0f}",
        "write-ahead log": f"{found.log_bytes_a_second / 2**20:,.1f} MiB a second, "
        f"{found.log_bytes_a_day / _GIB:,.0f} GiB a day",
        "tables": f"{found.kept_bytes / _GIB:,.0f} GiB for {load.kept_days:g} days",
        "runs that are forgotten, a second": f"{found.deleted_a_second:,.0f}",
        "write-ahead log of forgetting": f"{found.deleted_log_bytes_a_second / 2**20:,.1f} MiB a "
        f"second, {found.deleted_log_bytes_a_second * _DAY / _GIB:,.0f} GiB a day",
        "connections of the server": f"{found.server_connections}, "
        f"{found.direct_connections} of them listen",
    }
    for name, value in rows.items():
        yield f"| {name} | {value} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join(table(Load(), Measured())) + "\n")
