"""Every pair once: front ends, journals, engines, bodies, happenings and graphs, each with each.

A row is one workflow, begun by one front end; what becomes of it has to be the outcome that
`expected` states, by the front end's own words (its exit code, its reply, its table), by those of
the API behind the page, and by those of `axil runs show`. The reference model of
tests/differential says the same of the graphs that it knows.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.databases import postgres_server, temporal_server
from tests.journeys.pair_fronts import FRONTS, SAID, Place, place, text
from tests.journeys.pairs import (
    NEVER,
    ROWS,
    Outcome,
    Row,
    allowed,
    expected,
    judged,
    pairs_of,
)
from tests.journeys.person import LONG, Server


def is_short(row: Row) -> bool:
    """Return whether a row needs neither another's server nor the time of a second process."""
    return (
        row["journal"] != "postgres"
        and row["engine"] in ("none", "local")
        and row["body"] != "ray"
        and row["happening"] != "killed"
    )


SHORT = [number for number, row in enumerate(ROWS) if is_short(row)]
NUMBERS = range(len(ROWS)) if LONG else [*{ROWS[n]["front"]: n for n in SHORT}.values()]


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = place(tmp_path_factory.mktemp("sqlite"), ".axil", ".served")
    yield made
    made.terminal.close()


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    psycopg = pytest.importorskip("psycopg")
    with postgres_server() as server:
        url = server.url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create database served")
        served = url.replace("/postgres", "/served")
        made = place(tmp_path_factory.mktemp("postgres"), url, served)
        yield made
        made.terminal.close()


@pytest.fixture(scope="module")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporal_server(tmp_path_factory.mktemp("temporal")) as server:
        yield server.address


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: "-".join(ROWS[n].values()))
def test_a_row_ends_as_it_has_to_by_the_words_of_all(
    number: int, request: pytest.FixtureRequest
) -> None:
    row, name = ROWS[number], f"row{number}"
    database = "postgresql" if row["journal"] == "postgres" else "sqlite"
    here: Place = request.getfixturevalue(database)
    if row["engine"] == "temporal":
        here.terminal.environment["TEMPORAL_ADDRESS"] = request.getfixturevalue("temporal")
    for mark in ("begun", "killed"):
        here.mark(mark).unlink(missing_ok=True)
    keeper, outcome = here.keeper(row), expected(row)
    before = ids(keeper)
    said = FRONTS[row["front"]](here, row, name)
    words = SAID.get(row["front"], {})
    assert said == Outcome(status=words.get(outcome.status, outcome.status), output=outcome.output)
    if keeper is None:
        return
    [run] = ids(keeper) - before
    told = keeper.ended(run, status=outcome.status)
    # an output that is the state is made of the record by the graph, which a program alone has
    if outcome.status != "done" or (row["graph"], row["front"]) != ("typed", "python"):
        assert text(told["output"]) == outcome.output
    journal = here.served if keeper is not here.view else here.journal
    line = f"axil runs show {run} --format json --journal {journal}"
    shown = here.terminal.type(line, tracebacks=True).data
    assert shown["run"]["status"] == outcome.status
    if outcome.status == "done" and row["graph"] != "typed":  # whose output is the state
        assert text(shown["outline"]["output"]) == outcome.output
    by_model = judged(row)
    if by_model is not None and by_model.status == "done":
        fired = {each["path"][0]: each["times"] for each in shown["outline"]["nodes"]}
        assert fired == dict.fromkeys(by_model.activations, 1)


def ids(keeper: Server | None) -> set[str]:
    """Return the runs that are kept."""
    if keeper is None:
        return set()
    return {each["run_id"] for each in keeper.get("/v1/runs?limit=1000")["runs"]}


def test_every_pair_that_may_be_is_in_a_row() -> None:
    covered = {pair for row in ROWS for pair in pairs_of(row)}
    assert not covered & NEVER
    assert all(allowed(row) for row in ROWS)


def test_the_reference_model_says_what_the_table_says() -> None:
    known = {number: judged(row) for number, row in enumerate(ROWS)}
    said = {number: each.status for number, each in known.items() if each is not None}
    assert len(said) >= 20
    assert said == {number: expected(ROWS[number]).status for number in said}
