"""``axil batch``: a workflow, run once for each row of a table."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from axil import run_sync
from axil.plugin import format_names
from axil_cli.arguments import JOURNAL_FOLDER, add_shared_arguments
from axil_cli.batch.errors import BatchError
from axil_cli.batch.tables import read_table, write_table
from axil_cli.command import Exit, Session
from axil_cli.source import TARGET

if TYPE_CHECKING:
    from axil_cli.batch.batch import Batch
    from axil_models import ModelBatches

_PARALLEL: Final = 4
_TOGETHER: Final = 1000
"""Runs at the same time with batch APIs: as many calls are in a batch, or more."""


class RunBatch:
    """Run a workflow once for each row of a table (CSV, TSV, JSON Lines or XLSX).

    The columns are the workflow's input; results go to a table, statistics to standard output.
    Every run is kept in the journal. The same command again takes what is done from there, and goes
    on with the rest. The exit code: 0 all rows are done, 1 some are not, 2 the table or an option
    cannot be used, 130 interrupted.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("workflow", metavar="WORKFLOW", help=TARGET)
        parser.add_argument("table", metavar="ROWS", help="a .csv, .tsv, .jsonl or .xlsx file")
        parser.add_argument(
            "--output",
            "-o",
            metavar="FILE",
            help="the table of results; the default is ROWS.results.csv, or what ROWS ends with",
        )
        parser.add_argument(
            "--name",
            default="",
            metavar="NAME",
            help="the name of the batch, with which the ids of its runs begin; the default is "
            "made of the names of both files",
        )
        parser.add_argument(
            "--parallel",
            type=int,
            default=None,
            metavar="N",
            help=f"runs at the same time ({_PARALLEL}; with --batch-api {_TOGETHER})",
        )
        parser.add_argument(
            "--batch-api",
            action="store_true",
            help="ask models through the batch APIs of their services: at half the price, and "
            "within a day",
        )
        parser.add_argument(
            "--budget",
            type=float,
            default=None,
            metavar="AMOUNT",
            help="money for all runs together; when it is used up, nothing more begins",
        )
        parser.add_argument(
            "--column",
            default="",
            metavar="NAME",
            help="the column that a workflow of messages is given, where there are several",
        )
        parser.add_argument(
            "--json",
            action="append",
            default=[],
            metavar="COLUMN",
            help="read the texts of this column as JSON; may be repeated",
        )
        add_shared_arguments(parser, "--workflow", "--journal", "--format")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Run the batch, write its results and say how it went.

        Raises: ConfigError (AX981): a model has no batch API.
        """
        from axil_cli.batch.batch import Batch
        from axil_cli.batch.statistics import Statistics

        reading = session.reading(options)
        rows = read_table(options.table, json_columns=options.json)
        output = _output(options)
        workflow = session.workflow(options.workflow, **reading)
        journal = session.journal(options, "axil batch")
        progress = _Progress(session)
        name = options.name or _name(options.workflow, options.table)
        models: ModelBatches | None = None
        try:
            if options.batch_api:
                models = _models(options, name)
            batch = Batch(
                workflow=workflow,
                rows=rows,
                name=name,
                journal=journal,
                parallel=options.parallel or (_TOGETHER if models else _PARALLEL),
                models=models,
                budget=options.budget,
                column=options.column,
                options={
                    "allow": reading["allow"],
                    "origin": session.origin(options.workflow, workflow, reading),
                },
                around=session.around,
                changed=progress.show,
            )
            if models is not None:
                models.changed = lambda: progress.show(batch)
            is_whole = run_sync(_whole(batch, session))
        finally:
            journal.close()
            if models is not None:
                models.file.close()
            progress.end()
        if models is not None and models.refusal is not None:
            raise models.refusal
        results = batch.all_results()
        write_table(output, [result.as_fields() for result in results])
        found = Statistics.of(results, batch.seconds)
        if models is not None:
            found = replace(found, batches=len(models.sent), discount=models.discount)
        if options.format == "json":
            session.say_json({**found.as_data(), "batch": batch.name, "output": output})
        else:
            session.say("\n".join([*found.lines(), f"results  {output}"]))
        if batch.is_unpriced:
            session.tell(
                f"warning: --budget limited nothing: models used {found.tokens} tokens, and "
                "neither they nor the workflow's limits.pricing say what these cost."
            )
        is_done = all(result.status == "done" for result in results)
        if not is_done:
            _advise(batch, session, options)
        return Exit.INTERRUPTED if not is_whole else Exit.DONE if is_done else Exit.FAILED


async def _whole(batch: Batch, session: Session) -> bool:
    """Run a batch; return False where it was interrupted."""
    loop, job = asyncio.get_running_loop(), asyncio.ensure_future(batch.run())
    try:
        with session.interruptible(lambda: loop.call_soon_threadsafe(job.cancel)):
            await job
    except asyncio.CancelledError:
        return False
    return True


def _output(options: argparse.Namespace) -> Path:
    """Return the file of the results. Raises: BatchError (AX991): it is the table of rows."""
    table = Path(options.table)
    output = Path(options.output or f"{table.stem}.results{table.suffix}")
    if output.resolve() == table.resolve():
        message = f"{output} is the table of rows, which would be overwritten."
        raise BatchError("AX991", message, "Name another file with --output.")
    return output


def _name(workflow: str, table: str) -> str:
    """Return the usual name of a batch.

    >>> _name("flows/letter.yaml", "people 2.csv"), _name("app.py:graph", "rows.jsonl")
    ('letter-people-2', 'app-graph-rows')
    """
    file, _, graph = workflow.partition(":")
    parts = [Path(file).stem, graph, Path(table).stem]
    return re.sub(r"[^A-Za-z0-9_]+", "-", "-".join(filter(None, parts))).strip("-") or "batch"


def _advise(batch: Batch, session: Session, options: argparse.Namespace) -> None:
    from axil_cli.record import needed_leave, way_on

    results = batch.all_results()
    first = next((result for result in results if result.error), None)
    if first is not None:
        session.tell(f"{first.run_id}: {first.error}")
    if asked := [result for result in results if result.status == "paused"]:
        leave = needed_leave(batch.options["origin"])
        way = way_on(f"answer {asked[0].run_id} ANSWER", session, options, leave)
        session.tell(f"Answer with {way}")
    if batch.is_over_budget:
        session.tell(f"The budget of {batch.budget:g} is used up: {batch.cost:.4f} was spent.")
    if batch.models is not None and (left := batch.left):
        named = format_names(left)
        session.tell(f"The service goes on with {named}; the replies are taken by the next call.")
    session.tell("The same command again continues with the rows that are not done.")


def _models(options: argparse.Namespace, name: str) -> ModelBatches:
    """Return what collects the calls of models; its file is in the folder of the journal.

    Raises: ConfigError (AX982): another process has it.
    """
    from axil_models import BatchFile, ModelBatches

    place = options.journal or os.environ.get("AXIL_JOURNAL", "") or JOURNAL_FOLDER
    folder = Path(JOURNAL_FOLDER if "://" in place else place)
    return ModelBatches(file=BatchFile(folder / f"{name}.batches"))


class _Progress:
    """One line on a terminal that says how far a batch is."""

    def __init__(self, session: Session) -> None:
        self._stream = session.stderr if session.stderr.isatty() else None
        self._width = 0

    def show(self, batch: Batch) -> None:
        """Write the line anew."""
        if self._stream is None:
            return
        ended = [result.status for result in batch.results.values() if result.status != "open"]
        failed = sum(status != "done" for status in ended)
        line = f"{len(ended)} of {len(batch.rows)} rows, {batch.at_work} at work"
        line += f", {failed} not done" if failed else ""
        line += f", cost {batch.cost:.4f}" if batch.cost else ""
        if batch.models is not None:
            line += f", {batch.models.waiting} calls wait for {len(batch.models.left())} batches"
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)

    def end(self) -> None:
        """Leave the line."""
        if self._stream is not None and self._width:
            self._stream.write("\n")


__all__ = ["RunBatch"]
