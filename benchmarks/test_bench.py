"""The harness of ``make bench``: that the work is done, that figures and verdicts are
right, that a column's failure does not end it.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from .bench import column as columns_module, page, rounds
from .bench.column import Column, NotInstalled, columns, interpreter
from .bench.figures import Cell, Figures
from .bench.floors import FLOORS, floor, measure as floors
from .bench.plot import Line, plot
from .bench.rounds import Pace, Turn, measure, samples, turns
from .bench.table import passed_over, table
from .bench.targets import FIGURES, Target, all_targets, each, table_of_targets
from .bench.worker import Timed, WrongAnswer
from .bench.workloads import BY_NAME, WORKLOADS

HERE = [column for column in columns() if column.kind != "peer"]
DONE_HERE = [
    (column, workload)
    for column in HERE
    for workload in WORKLOADS
    if workload.measure != "process" and column.can(workload)
]


def measured(*cells: tuple[str, int, str, list[float]]) -> Figures:
    """Figures with these samples, of either clock."""
    figures = Figures()
    for workload, size, column, values in cells:
        figures.cell(workload, size, column).samples = [
            {"seconds": value, "processor": value} for value in values
        ]
    return figures


@pytest.mark.parametrize(
    ("column", "workload"), DONE_HERE, ids=[f"{c.name}-{w.name}" for c, w in DONE_HERE]
)
def test_who_needs_nothing_installed_does_the_work_rightly(column, workload, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))  # puts the path back afterwards
    case = workload.case(
        10 if workload.name == "fields" else 1000 if workload.name == "payload" else 20, tmp_path
    )
    case.seconds /= 50
    asyncio.run(Timed(workload, case, getattr(column.module, workload.ability)(case)).once())


def test_a_wrong_answer_is_no_figure(tmp_path):
    workload = BY_NAME["chain"]
    with pytest.raises(WrongAnswer, match="expected 3, found 4"):
        asyncio.run(Timed(workload, workload.case(3, tmp_path), lambda: 4).once())


@pytest.mark.parametrize("column", columns(), ids=lambda column: column.name)
def test_a_column_says_what_it_is_and_can_do_something(column):
    assert column.title
    assert column.kind in ("ours", "baseline", "peer")
    assert any(column.can(workload) for workload in WORKLOADS)
    assert bool(column.requires) == (column.kind == "peer")
    assert column.module.__doc__


def test_a_random_graph_is_the_same_every_time_acyclic_and_drawn_before_it_is_made():
    case = BY_NAME["dag"].case(50)
    assert case.edges is case.edges
    assert case.edges == BY_NAME["dag-cold"].case(50).edges
    assert len(case.edges) == 150
    assert all(a < b for a, b in case.edges)


# ------------------------------------------------------------------------------------------------ m


def test_rounds_measure_and_say_what_failed():
    missing = Column(name="nobody", module=SimpleNamespace(TITLE="Nobody", KIND="ours", chain=None))
    calls = next(column for column in HERE if column.name == "calls")
    figures, pace = Figures(), Pace(rounds=1, enough_seconds=0, box_seconds=600, quick=True)
    measure(figures, [BY_NAME["chain"], BY_NAME["first"]], [calls, missing], pace)
    assert figures.of("chain", 100, "calls") > 0
    assert figures.of("first", 1, "calls") is not None
    assert figures.cell("chain", 10, "nobody").failure == "fails: ModuleNotFoundError"


def test_who_cannot_be_installed_is_passed_over_with_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def no_network(command):
        raise NotInstalled("no matching distribution")

    monkeypatch.setattr(columns_module, "run", no_network)
    module = SimpleNamespace(
        TITLE="Nobody", KIND="peer", REQUIRES=("nobody",), PUBLISHED="7 µs a node.", chain=None
    )
    missing = Column(name="nobody", module=module)
    with pytest.raises(NotInstalled):
        interpreter(missing)
    figures = Figures()
    measure(figures, [BY_NAME["chain"]], [missing], Pace(rounds=1))
    assert (
        "Nobody could not be installed from PyPI: no matching distribution. Published: 7 µs a node."
        in passed_over(figures, [missing])
    )


def test_a_process_that_takes_too_long_is_a_cell_that_says_so(tmp_path):
    with pytest.raises(rounds.Failed, match="over 0 s"):
        rounds.finished(["sleep", "10"], str(tmp_path), 0.01)


def test_sizes_that_were_reached_before_a_process_is_ended_have_their_samples(monkeypatch):
    def ended(command, folder, box):
        raise rounds.Failed("over 10 s", 'a warning\n\n{"size": 10, "seconds": 1.0}\n\n{"size": 1')

    monkeypatch.setattr(rounds, "finished", ended)
    calls = next(column for column in HERE if column.name == "calls")
    turn = Turn(workload=BY_NAME["chain"], column=calls, sizes=(10, 100))
    assert samples(Path(sys.executable), turn, Pace()) == ({10: {"seconds": 1.0}}, "over 10 s")


def test_every_round_begins_with_another_column():
    two = [Column(name=name, module=SimpleNamespace(chain=None)) for name in "ab"]
    orders = [
        [turn.column.name for turn in turns([BY_NAME["chain"]], two, number, Pace())]
        for number in (0, 1)
    ]
    assert orders == [["a", "b"], ["b", "a"]]


def test_targets_take_their_rounds_first_and_what_was_disturbed_is_measured_again(monkeypatch):
    taken: list[int] = []
    beats = iter([1.0] * 52 + [1.0, 3.0] + [1.0] * 2)  # the second sample is disturbed

    def at_once(python, turn, pace):
        taken.extend(turn.sizes)
        return {size: {"seconds": float(len(taken))} for size in turn.sizes}, ""

    monkeypatch.setattr(rounds, "beat", lambda: next(beats))
    monkeypatch.setattr(rounds, "samples", at_once)
    calls = next(column for column in HERE if column.name == "calls")
    workload = replace(BY_NAME["chain"], sizes=(10, 100), far=())
    figures = Figures()
    measure(figures, [workload], [calls], Pace(rounds=1), first={("chain", 100, "calls")})
    assert taken == [100, 10, 10]
    assert figures.cell("chain", 10, "calls").median("seconds") == 3.0


# ------------------------------------------------------------------------------------------------ s


def test_a_cell_is_a_median_with_its_spread():
    cell = Cell(samples=[{"seconds": value} for value in (1.0, 2.0, 3.0, 4.0, 50.0)])
    assert cell.median("seconds") == 3.0
    assert cell.spread("seconds") == pytest.approx(1 / 3)
    assert Cell(samples=cell.samples[:2]).spread("seconds") is None


def test_figures_come_back_as_they_were_kept(tmp_path):
    figures = measured(("chain", 10, "axil", [1e-5, 2e-5]))
    figures.cell("chain", 100, "axil").failure = "over 40 s"
    figures.machine, figures.versions, figures.absent = (
        "here",
        {"axil": "1"},
        {"nobody": "not there"},
    )
    file = tmp_path / "figures.json"
    file.write_text(figures.as_json(), "utf-8")
    assert Figures.read(file).as_json() == figures.as_json()


def test_what_was_measured_anew_takes_the_place_of_what_was_kept():
    kept, new = (
        measured(("chain", 10, "axil", [1.0]), ("loop", 100, "axil", [1.0])),
        measured(("chain", 10, "axil", [2.0])),
    )
    kept.update(new)
    assert (kept.of("chain", 10, "axil"), kept.of("loop", 100, "axil")) == (2.0, 1.0)


def test_a_table_shows_ratios_to_ours_and_why_there_is_no_figure():
    figures = measured(("chain", 10, "axil", [1e-5]), ("chain", 10, "by_hand", [2e-4]))
    figures.cell("chain", 10, "calls").failure = "fails: RecursionError"
    line = table(figures, HERE).splitlines()[2]
    assert line == "| chain of 10; µs a node | 1.00 | 20.0 (20.0×) | fails: RecursionError |"


def test_verdicts_are_computed():
    figures = measured(("chain", 1000, "axil", [2e-3]))
    for most, verdict in ((3, "holds"), (1, "🔴 **fails**")):
        assert (
            Target(what="", measured=each("chain", 1000, "axil"), most=most).verdict(figures)
            == verdict
        )
    assert (
        Target(what="", measured=each("chain", 1000, "burr"), least=3).verdict(figures)
        == "not measured"
    )
    assert "| ≤ 4.00 µs | 2.00 µs | holds |" in table_of_targets(figures)


def test_every_target_can_be_measured_by_some_column_at_its_size():
    """A target that names a column, a workload or a size that there is not would never be
    measured.
    """
    everything = Figures()
    for column in columns():
        for workload in WORKLOADS:
            for size in column.sizes(workload) if column.can(workload) else ():
                everything.cell(workload.name, size, column.name).samples = [
                    dict.fromkeys(FIGURES, float(size) + 1)
                ]
    assert [target.what for target in all_targets() if target.measured(everything) is None] == []


def test_a_plot_is_the_same_for_the_same_figures_and_well_formed():
    lines = [
        Line(title="a & b", points=((10, 1e-5), (100, 1e-4)), kind="ours"),
        Line(title="alone", points=((10, 1.0),)),
    ]
    drawing = plot("n < m", lines)
    assert drawing == plot("n < m", lines)
    texts = [
        element.text
        for element in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert "a & b" in texts
    assert "alone" not in " ".join(texts)


def test_the_calculator_finds_each_of_its_constants_on_the_page():
    script = (page.FOLDER.parents[1] / "costs.js").read_text("utf-8")
    asked = {
        name.replace("${sync}", sync)
        for name in re.findall(r'constant\(["`](.+?)["`]\)', script)
        for sync in ("full sync", "relaxed")
    }
    shown = set(re.findall(r"^\| (.+?) \| [\d.,]+ \|$", page.COSTS.read_text("utf-8"), re.M))
    assert asked == shown


def test_the_page_says_what_the_kept_figures_say():
    texts = page.pages(Figures.read(page.KEPT), columns(), page.INDEX.read_text("utf-8"))
    assert [
        name for name, text in texts.items() if (page.FOLDER / name).read_text("utf-8") != text
    ] == []


def test_the_worker_needs_no_more_than_the_standard_library():
    allowed = {"case", "workloads"}
    for name in ("case", "workloads", "worker"):
        source = inspect.getsource(__import__(f"{__package__}.bench.{name}", fromlist=["*"]))
        inside = {
            line.split()[1].lstrip(".") for line in source.splitlines() if line.startswith("from .")
        }
        assert inside <= allowed
        assert "import axil" not in source


@pytest.mark.parametrize("name", FLOORS)
def test_a_floor_is_one_sentence_and_one_table(name, monkeypatch):
    monkeypatch.setattr(floors, "ENOUGH", 0)
    sentence, table = floor(name, quick=True).split("\n\n")
    assert "\n" not in sentence
    head, _, *rows = (line.strip("|").split("|") for line in table.splitlines())
    assert rows
    assert all(len(row) == len(head) and row[0].strip() for row in rows)
    assert all(
        float(cell.replace(",", "")) is not None for row in rows for cell in row[1:] if cell.strip()
    )


def test_the_exponents_of_runs_are_shown_beside_those_of_the_same_by_hand():
    figures = measured(
        *(
            ("dag", size, column, [size * 1e-6])
            for size in (100, 1000)
            for column in ("axil", "by_hand")
        )
    )
    (line,) = (
        line
        for line in table_of_targets(figures).splitlines()
        if line.startswith("| random acyclic graph, exponent of the run")
    )
    assert line == "| random acyclic graph, exponent of the run | ≤ 1.05 | 1.00 | holds | 1.00 |"
