"""Reports and comparisons as text tables, HTML and JUnit XML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from statistics import fmean
from typing import Any
from xml.sax.saxutils import escape as xml, quoteattr

from axil_cli import as_json as json_text, table_lines
from axil_evals.comparison import Comparison
from axil_evals.evaluation import Report
from axil_evals.statistics import Interval


def _share(found: Interval) -> str:
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _rows(report: Report) -> list[list[str]]:
    scorers = report.scorers
    rows = [["CASE", "", *(name.upper() for name in scorers), "SECONDS", "COST"]]
    for name, trials in report.trials.items():
        cells = [name, "pass" if report.passes(name) else "FAIL" if trials else "not run"]
        for scorer in scorers:
            values = report.values(scorer).get(name)
            cells.append(f"{fmean(values):.2f}" if values else "-")
        for resource, places in (("seconds", 2), ("money", 4)):
            values = report.measured(resource).get(name)
            cells.append(f"{fmean(values):.{places}f}" if values else "-")
        rows.append(cells)
    return rows


def summary(report: Report) -> Iterator[str]:
    """Yield the lines below a table: means with intervals, and what was left out."""
    passed = sum(report.passes(name) for name in report.trials)
    yield f"{passed} of {len(report.trials)} cases pass; cost {report.cost:.4f}"
    for scorer in report.scorers:
        yield f"{scorer}: {_share(report.mean(scorer))} (mean over cases, 95 % interval)"
    if report.skipped:
        yield f"{report.skipped} trials were not made: the budget is used up"
    for name in report.left_out:
        yield f"not applied: {name}"


def as_text(report: Report) -> str:
    """Return a report as a table with its summary, and why cases failed."""
    lines = [f"{report.dataset} on {report.target}", "", *table_lines(_rows(report)), ""]
    for name, trials in report.trials.items():
        for at, each in enumerate(trials, 1):
            for scorer, score in each.scores.items():
                if not score.passed:
                    where = f"{name} #{at}" if len(trials) > 1 else name
                    lines.append(f"{where}: {scorer}: {score.reason or 'failed'}")
    return "\n".join([*lines, *([""] if lines[-1] else []), *summary(report)])


_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;
border-bottom:1px solid #8884;vertical-align:top}.FAIL{color:#b00020;font-weight:600}
.pass{color:#0a6b2d}pre{white-space:pre-wrap;margin:0}"""


def as_html(report: Report) -> str:
    """Return a report as a page that needs nothing beside it."""
    head, *rows = _rows(report)
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = [f"<tr>{cells}</tr>"]
    for row in rows:
        name, verdict, *rest = row
        details = "\n".join(_details(report, name))
        inputs = json.dumps(report.inputs.get(name), ensure_ascii=False, indent=1, default=str)
        shown = f"<details><summary>{escape(name)}</summary><pre>input: {escape(inputs)}\n"
        lines.append(
            f"<tr><td>{shown}{escape(details)}</pre></details></td>"
            f'<td class="{verdict.split()[0]}">{verdict}</td>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
            + "</tr>"
        )
    title = f"{escape(report.dataset)} on {escape(report.target)}"
    notes = "".join(f"<li>{escape(line)}</li>" for line in summary(report))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1><ul>{notes}</ul><table>{''.join(lines)}</table>\n"
    )


def _details(report: Report, name: str) -> Iterator[str]:
    for at, each in enumerate(report.trials[name], 1):
        output = json.dumps(each.trial.output, ensure_ascii=False, default=str)
        yield f"#{at} {each.trial.status}: {each.trial.error or output}"
        for scorer, score in each.scores.items():
            yield f"   {scorer} {score.value:.2f} {score.reason}"


def as_junit(report: Report) -> str:
    """Return a report as JUnit XML: a test for each case."""
    failed = sum(not report.passes(name) for name, trials in report.trials.items() if trials)
    skipped = sum(not trials for trials in report.trials.values())
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name={quoteattr(_plain(report.dataset))} tests="{len(report.trials)}" '
        f'failures="{failed}" skipped="{skipped}">',
    ]
    for name, trials in report.trials.items():
        seconds = sum(each.trial.seconds for each in trials)
        case = f"<testcase classname={quoteattr(_plain(report.target))} "
        case += f'name={quoteattr(_plain(name))} time="{seconds:.3f}"'
        if report.passes(name):
            lines.append(f"{case}/>")
        elif not trials:
            lines.append(f'{case}><skipped message="the budget is used up"/></testcase>')
        else:
            details = "\n".join(_details(report, name))
            lines.append(f"{case}><failure>{xml(_plain(details))}</failure></testcase>")
    return "\n".join([*lines, "</testsuite>", ""])


def _plain(text: str) -> str:
    """Return a text without characters that XML cannot hold."""
    return "".join(
        each if each in "\t\n\r" or " " <= each < "\ud800" or "\ue000" <= each < "\ufffe" or
        each >= "\U00010000" else "�"
        for each in text
    )  # fmt: skip


def as_json(report: Report) -> str:
    """Return a report as JSON, from which ``axil eval compare`` reads it."""
    return json_text(report.plain())


def comparison_text(found: Comparison) -> str:
    """Return a comparison as a table, with the cases that became better and worse."""
    rows: list[list[str]] = [["MEASURE", "FIRST", "SECOND", "P", "VERDICT"]]
    for change in found.changes:
        numbers = [f"{number:.4g}" for number in (change.first, change.second, change.chance)]
        rows.append([change.measure, *numbers, change.verdict])
    lines = [f"{found.first} → {found.second}, {found.cases} cases", "", *table_lines(rows), ""]
    for change in found.changes:
        if change.verdict == "no difference":
            continue
        for word, names in (("better", change.better), ("worse", change.worse)):
            if names:
                more = f" and {len(names) - 10} more" if len(names) > 10 else ""
                lines.append(f"{change.measure}, {word}: {', '.join(names[:10])}{more}")
    for name, cases in (("first", found.only_first), ("second", found.only_second)):
        if cases:
            lines.append(f"only in the {name} report: {', '.join(cases)}")
    lines += found.notes
    told = f"p: the chance of such a difference between equal versions, level {found.level:g}"
    return "\n".join([*lines, told])


WRITERS: dict[str, Any] = {
    "table": as_text,
    "html": as_html,
    "junit": as_junit,
    "json": as_json,
}
"""Ways to write a report, by the name of their format."""
