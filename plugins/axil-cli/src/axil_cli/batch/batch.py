"""A batch: one run of a workflow for each row of a table, some at a time, on one journal.

The run of a row has an id that is made of the batch's name and the row's number. A batch that is
run again under its name takes the results of what is done from the journal; rows that failed,
paused or were interrupted go on where they stopped.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from axil import AxilError, Limits, Problem, Question, Result, Run, Workflow
from axil.plugin import ENTRY, did_you_mean, format_names
from axil_cli.batch.errors import BatchError
from axil_cli.batch.tables import Row
from axil_journals import AroundRun, Journal, ReplayIndex

if TYPE_CHECKING:
    from axil_models import ModelBatches

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """The result of the run of a row."""

    row: Row
    run_id: str
    status: str
    """``done``, ``failed``, ``paused``, ``limited``, ``cancelled``; ``open``: it was interrupted;
    ``waiting``: it was not begun."""
    output: Any = None
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0
    """Money, in the currency of the prices."""
    error: str = ""
    questions: tuple[Question, ...] = ()

    def as_fields(self) -> dict[str, Any]:
        """Return the row of a table of results: the row's own cells, those of its output as
        ``output.NAME``, and what is known of the run as ``run.NAME``.
        """
        output: Any = self.output
        given: dict[str, Any] = {"output": output}
        if isinstance(output, Mapping):
            fields = cast("Mapping[str, Any]", output)
            given = {f"output.{name}": value for name, value in fields.items()}
        asked = "; ".join(question.text for question in self.questions)
        return {
            **self.row.fields,
            **given,
            "run.id": self.run_id,
            "run.status": self.status,
            "run.seconds": round(self.seconds, 3),
            "run.tokens": self.tokens,
            "run.cost": self.cost,
            "run.error": self.error or asked,
        }


@dataclass(slots=True, kw_only=True)
class Batch:
    """One workflow and the rows that it is run for."""

    workflow: Workflow[Any]
    rows: Sequence[Row]
    name: str
    """The beginning of the ids of its runs: letters, digits, ``_``, ``.`` and ``-``."""
    journal: Journal
    parallel: int = 4
    """Runs at the same time."""
    budget: float | None = None
    """Money for all runs together. When it is used up, runs at work are cancelled and no other
    begins; a call that is under way by then is paid, too."""
    column: str = ""
    """The column that a workflow of messages is given; empty: the only one."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of every run, as of ``axil.Options``."""
    around: AroundRun | None = None
    """Returns what a row's run is executed within, from what was kept with it and its record."""
    models: ModelBatches | None = None
    """Collects the calls of models for the batch APIs of their services; None: they are made at
    once. It is closed at the end."""
    left: Sequence[str] = field(default=(), init=False)
    """The ids of batches of calls that had not ended when this one did."""
    changed: Callable[[Batch], None] | None = None
    """Called whenever a run begins or ends."""
    results: dict[int, RowResult] = field(default_factory=dict[int, RowResult], init=False)
    """The results of rows so far, by number."""
    seconds: float = field(default=0.0, init=False)
    """The duration of ``run``, in seconds."""
    _at_work: dict[int, Run] = field(default_factory=dict[int, Run], init=False)
    _given: str = field(default="", init=False)
    """The column that a workflow of messages is given, once it is known."""
    _spent: float = field(default=0.0, init=False)
    """Money that runs which ended have spent."""
    _before: dict[int, float] = field(default_factory=dict[int, float], init=False)
    """Money that the runs of rows which are not reached yet have spent before, by number."""
    _done: set[int] = field(default_factory=set[int], init=False)
    """The rows whose runs were done before: their results are read, whatever is spent."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            message = f'"{self.name}" cannot be the name of a batch.'
            raise BatchError("AX992", message, "Use letters, digits, _, . and -.")
        if self.parallel < 1:
            message = f"expected at least one run at a time, found {self.parallel}."
            raise BatchError("AX992", message, "Set parallel to 1 or more.")
        if self.budget is not None and math.isnan(self.budget):
            raise BatchError("AX992", "the budget is no number.", "Set it to an amount of money.")

    @property
    def at_work(self) -> int:
        """The number of runs at work."""
        return len(self._at_work)

    @property
    def cost(self) -> float:
        """The money that is spent so far, by runs that ended, those at work, and those that an
        earlier batch of the name began and this one has not reached.
        """
        at_work = sum(run.meter.usage.cost for run in self._at_work.values())
        return self._spent + at_work + sum(self._before.values())

    @property
    def is_over_budget(self) -> bool:
        """True if the budget is used up."""
        return self.budget is not None and self.cost >= self.budget

    @property
    def used_up(self) -> str:
        """The reason given for runs that the budget ends."""
        return f"the batch's budget of {self.budget:g} is used up"

    @property
    def is_unpriced(self) -> bool:
        """True if there is a budget, and models were used without any cost: nothing is limited."""
        tokens = sum(result.tokens for result in self.results.values())
        return self.budget is not None and tokens > 0 and not self.cost

    async def run(self) -> list[RowResult]:
        """Run the workflow for each row, and return the results in order of the rows.

        A row that fails concerns no other. Cancelled, it leaves its runs in the journal and
        ``results`` as far as they are known. Raises: BatchError (AX992): the table does not fit the
        workflow; ConfigError (AX981): a model has no batch API, and ``models`` are given.
        """
        self._check_columns()
        if self.models is not None:
            self.models.check_all(self.workflow.plan.graph.components)
        if self.budget is not None:
            self._look_back()
        began = time.monotonic()
        waiting = iter(self.rows)
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self.workflow)
                if self.models is not None:
                    from axil_models import use_batches

                    stack.push_async_callback(self._leave, self.models)
                    stack.enter_context(use_batches(self.models))
                workers = await stack.enter_async_context(asyncio.TaskGroup())
                for _ in range(min(self.parallel, len(self.rows))):
                    workers.create_task(self._work(waiting))
        finally:
            self.seconds = time.monotonic() - began
            self._at_work.clear()
        return self.all_results()

    def _look_back(self) -> None:
        """Read what the rows' runs have spent before."""
        for row in self.rows:
            known = ReplayIndex(self.journal.entries(self.run_id(row)))
            self._before[row.number] = known.used.get("cost", 0.0)
            if known.ended is not None and known.ended.data.get("status") == "done":
                self._done.add(row.number)

    async def _leave(self, models: ModelBatches) -> None:
        """Leave the batches of calls at their services."""
        self.left = models.left()
        await models.close()

    def all_results(self) -> list[RowResult]:
        """Return a result for every row, also for those that have not ended."""
        return [
            self.results.get(row.number)
            or RowResult(row=row, run_id=self.run_id(row), status="waiting")
            for row in self.rows
        ]

    def run_id(self, row: Row) -> str:
        """Return the id of a row's run.

        >>> Batch(workflow=..., rows=(), name="letters", journal=...).run_id(Row(7, {}))
        'letters-7'
        """
        return f"{self.name}-{row.number}"

    # ------------------------------------------------------------------------------- the rows

    async def _work(self, waiting: Iterator[Row]) -> None:
        """Run one row after the other, until there is none; without money only those that need
        none.
        """
        for row in waiting:
            if self._is_refused:
                return
            if self.is_over_budget and row.number not in self._done:
                continue
            result = self.results[row.number] = await self._result_of(row)
            self._spent += result.cost
            if self.models is not None:
                self.models.settle(result.run_id)
                if self._is_refused:
                    self.stop("a model has no batch API")
            if self.is_over_budget:
                self.stop(self.used_up)
            self._tell()

    async def _result_of(self, row: Row) -> RowResult:
        run_id = self.run_id(row)
        self.results[row.number] = RowResult(row=row, run_id=run_id, status="open")
        try:
            with self._around(run_id):
                run = self._at_work[row.number] = self._begun(row)
                self._tell()
                result = await run.result()
        except AxilError as error:
            return RowResult(row=row, run_id=run_id, status="failed", error=_cell(error))
        finally:
            self._at_work.pop(row.number, None)
        return _result(row, result)

    def _around(self, run_id: str) -> AbstractContextManager[Any]:
        if self.around is None or not (entries := [*self.journal.entries(run_id)]):
            return nullcontext()
        return self.around(ReplayIndex(entries).origin, entries)

    def _begun(self, row: Row) -> Run:
        options = dict(self.options)
        observers = [*options.pop("observers", ())]
        self._before.pop(row.number, None)
        if self.budget is None:
            if ReplayIndex(self.journal.entries(self.run_id(row))).limits is not None:
                options["limits"] = self._own_limits  # of an earlier batch, which had a budget
        elif row.number not in self._done:
            options["limits"] = self._own_limits.within(cost=self.budget - self.cost)
            observers.append(_Spending(self))
        return self.workflow.start(
            self.input_of(row),
            run_id=self.run_id(row),
            journal=self.journal,
            observers=observers,
            **options,
        )

    @property
    def _own_limits(self) -> Limits:
        """The limits of one run, without the batch's budget."""
        return self.options.get("limits") or self.workflow.plan.graph.spec.limits

    def input_of(self, row: Row) -> Any:
        """Return the input of a row's run: its cells as fields, or the text of one of them for a
        workflow that takes a conversation.
        """
        if not self._takes_text:
            return dict(row.fields)
        self._given = self._given or self._text_column()
        value = row.fields.get(self._given, "")
        return value if isinstance(value, str) else json.dumps(value, default=str)

    def stop(self, reason: str) -> None:
        """Cancel the runs at work."""
        for number, run in self._at_work.items():
            if number not in self._done:
                run.cancel(reason)

    @property
    def _is_refused(self) -> bool:
        """True if a model has no batch API, and is to be asked through one."""
        return self.models is not None and self.models.refusal is not None

    def _tell(self) -> None:
        if self.changed is not None:
            self.changed(self)

    # ---------------------------------------------------------------------------- the columns

    @property
    def _takes_text(self) -> bool:
        """True if the workflow is of messages, or its state is a conversation and no more."""
        graph = self.workflow.plan.graph
        if graph.spec.payload != "state":
            return graph.spec.payload == "messages"
        return graph.spec.schema is not None and set(graph.spec.schema.fields) == {"messages"}

    def _text_column(self) -> str:
        columns = list(dict.fromkeys(name for row in self.rows for name in row.fields))
        if self.column:
            if self.column not in columns:
                message = f'no column is named "{self.column}".'
                hint = did_you_mean(self.column, columns) or f"Columns: {format_names(columns)}."
                raise BatchError("AX992", message, hint)
            return self.column
        if len(columns) != 1:
            message = (
                f"the workflow takes one text, and the table has {len(columns)} columns: "
                f"{format_names(columns)}."
            )
            raise BatchError("AX992", message, "Name the column that it is given: --column NAME.")
        return columns[0]

    def _check_columns(self) -> None:
        """Raises: BatchError (AX992): the table lacks fields that the workflow's entry carries."""
        spec = self.workflow.plan.graph.spec
        if self._takes_text:
            self._given = self._text_column()
            return
        if spec.payload != "fields":
            return
        wanted = {
            name: None for edge in spec.edges if edge.source == ENTRY for name in edge.keys or ()
        }
        for row in self.rows:
            if missing := [name for name in wanted if name not in row.fields]:
                columns = sorted(row.fields)
                message = (
                    f"row {row.number} lacks {format_names(missing)}, which the workflow takes; "
                    f"it has {format_names(columns)}."
                )
                hint = did_you_mean(missing[0], columns) or "Add the column to the table."
                raise BatchError("AX992", message, hint)


class _Spending:
    """An observer that stops a batch when its budget is used up."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def firing_finished(self, activation: Any, kind: str, output: Any) -> None:
        """Look at what all runs have spent."""
        if self._batch.is_over_budget:
            self._batch.stop(self._batch.used_up)


def _result(row: Row, result: Result[Any]) -> RowResult:
    usage = result.usage
    return RowResult(
        row=row,
        run_id=result.run_id,
        status=result.status,
        output=result.output,
        seconds=usage.seconds,
        tokens=sum(usage.tokens.values()),
        cost=usage.cost,
        error="" if result.error is None or result.status == "paused" else _cell(result.error),
        questions=result.questions,
    )


def _cell(error: AxilError) -> str:
    """Return an error as one cell."""
    problems: Sequence[Problem] = getattr(error, "problems", ()) or ()
    return " ".join(str(each) for each in problems) or str(error)


__all__ = ["Batch", "RowResult"]
