"""``axil eval``: evaluate, compare, make cases of kept runs."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from axil import run_sync
from axil.plugin import without_secrets
from axil_agent import Recorder, Replay
from axil_cli import Exit, Session, add_shared_arguments, find_run
from axil_evals.comparison import compare
from axil_evals.datasets import add_case, read_dataset
from axil_evals.errors import EvalError
from axil_evals.evaluation import Plan, Report, evaluate
from axil_evals.rendering import WRITERS, comparison_text
from axil_evals.targets import KeptTarget, Target, WorkflowTarget, case_of_run
from axil_files import like_file

KEPT = "kept"
"""The target that stands for runs of a journal."""


class Eval:
    """Evaluate workflows: try the cases of a dataset, score what comes of them, compare versions.

    A report is written with --out as JSON, HTML or JUnit XML: .json, .html, .xml.
    The exit code is 1 where a case fails, or a version is worse than the one before.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        doing = parser.add_subparsers(dest="doing", metavar="WHAT", required=True)
        running = doing.add_parser("run", help="try the cases of a dataset and score the trials")
        running.add_argument(
            "target",
            metavar="WORKFLOW",
            help="a workflow file; a graph in Python, as module:graph or file.py:graph; or "
            f"{KEPT}: runs of the journal that the cases name",
        )
        running.add_argument("dataset", metavar="DATASET", help=".yaml, .json, .jsonl or .csv")
        running.add_argument("--node", default="", help="one node of the workflow, by its name")
        running.add_argument(
            "--scorer",
            action="append",
            default=[],
            metavar="NAME",
            help='a scorer beside those of the dataset: its name, or JSON, {"type": …}',
        )
        running.add_argument("--model", help="the model of judges that name none: a name, or JSON")
        running.add_argument("--repeats", type=int, default=1, metavar="N", help="trials of a case")
        running.add_argument("--concurrency", type=int, default=4, metavar="N")
        running.add_argument(
            "--budget", type=float, metavar="MONEY", help="money for trials and scorers together"
        )
        running.add_argument(
            "--run-id", default="", help="keep the evaluation under this id; the same one goes on"
        )
        add_shared_arguments(running, "--workflow", "--journal")
        cassette = running.add_mutually_exclusive_group()
        cassette.add_argument(
            "--record", metavar="FILE", help="write what models are asked and answer to FILE"
        )
        cassette.add_argument(
            "--replay", metavar="FILE", help="answer models from FILE: scoring again is free"
        )
        running.add_argument("--out", action="append", default=[], metavar="FILE")
        running.add_argument("--format", choices=sorted(WRITERS), default="table")
        comparing = doing.add_parser("compare", help="what the second of two reports does better")
        comparing.add_argument("first", metavar="REPORT", help="a .json file of axil eval run")
        comparing.add_argument("second", metavar="REPORT")
        comparing.add_argument("--format", choices=("table", "json"), default="table")
        adding = doing.add_parser("add", help="make a case of a kept run")
        adding.add_argument("run", metavar="RUN", help="the id of a run")
        adding.add_argument("dataset", metavar="DATASET", help=".yaml or .jsonl; made if missing")
        adding.add_argument("--name", default="", help="of the case; without it the run's id")
        add_shared_arguments(adding, "--journal")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Do what was typed, and return the exit code."""
        doing = {"run": self._run, "compare": self._compare, "add": self._add}
        return doing[options.doing](options, session)

    def _run(self, options: argparse.Namespace, session: Session) -> int:
        dataset = read_dataset(options.dataset, allow=options.allow)
        writers = [_writer(path) for path in options.out]
        needs = "--run-id" if options.run_id else KEPT if options.target == KEPT else ""
        journal = session.journal(options, needs) if needs else None
        plan = Plan(
            repeats=options.repeats,
            concurrency=options.concurrency,
            budget=options.budget,
            model=named_component(options.model) if options.model else None,
        )
        with ExitStack() as within:
            if options.record:
                within.enter_context(Recorder.everywhere(options.record))
            if options.replay:
                within.enter_context(Replay.everywhere(options.replay))
            report = run_sync(
                evaluate(
                    dataset,
                    _target(options, session, journal),
                    plan,
                    scorers=[named_component(each) for each in options.scorer],
                    journal=journal if options.run_id else None,
                    run_id=options.run_id,
                )
            )
        for path, write in zip(options.out, writers, strict=True):
            shown = without_secrets(write(report))
            Path(path).write_text(shown, "utf-8", errors="backslashreplace")
        session.say(WRITERS[options.format](report))
        is_passed = all(report.passes(name) for name in report.trials)
        return Exit.DONE if is_passed else Exit.FAILED

    def _compare(self, options: argparse.Namespace, session: Session) -> int:
        found = compare(_read(options.first), _read(options.second))
        if options.format == "json":
            session.say_json(found.plain())
        else:
            session.say(comparison_text(found))
        return Exit.FAILED if found.is_worse else Exit.DONE

    def _add(self, options: argparse.Namespace, session: Session) -> int:
        journal = session.journal(options, "axil eval add")
        run_id = find_run(journal, options.run)
        case = case_of_run(list(journal.entries(run_id)), run_id, options.name)
        add_case(options.dataset, case)
        session.say(f'{options.dataset}: case "{case.name}"')
        return Exit.DONE


def _target(options: argparse.Namespace, session: Session, journal: Any) -> Target:
    if options.target == KEPT:
        return KeptTarget(journal)
    reading = session.reading(options)
    workflow = session.workflow(options.target, **reading)
    return WorkflowTarget(workflow, node=options.node, allow=reading["allow"])


def named_component(text: str) -> Any:
    """Return a component as it was typed: a name, or JSON. Raises: EvalError (AX971)."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EvalError("AX971", f"this is no JSON: {error}.", where=text) from None


def _writer(path: str) -> Any:
    formats = {".json": "json", ".html": "html", ".xml": "junit", ".txt": "table"}
    found = formats.get(Path(path).suffix.lower())
    if found is None:
        message = "a report ends with .json, .html, .xml or .txt."
        raise EvalError("AX970", message, where=f"--out {path}")
    return WRITERS[found]


def _read(path: str) -> Report:
    try:
        data = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        message = f"the report cannot be read: {getattr(error, 'strerror', None) or error}."
        hint = like_file(path, f"axil eval run … --out {path} writes one.")
        raise EvalError("AX970", message, hint, path) from None
    return Report.of(cast("dict[str, Any]", data) if isinstance(data, dict) else {}, path)
