"""``RunService``: the runs of a server, for every protocol that serves them.

The journal holds the runs, an engine executes them, and this decides which caller may do what with
which of them. A run that a caller does not see is answered as one that does not exist. The caller
that started a run is recorded with it (``origin["serve"]["owner"]``), so a second server on the
same journal decides alike.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import secrets
import time
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Final, ParamSpec, TypeVar, cast

from axil import MISSING, AxilError, Workflow
from axil.plugin import (
    ENTRY,
    EngineError,
    JournalError,
    did_you_mean,
    fold_payloads,
    format_names,
    hook_manager,
    thaw,
)
from axil_cli import answered_probes
from axil_journals import (
    Edit,
    Entry,
    LocalEngine,
    Place,
    ReplayIndex,
    RunInfo,
    SharedJournal,
    check_run_options,
    decode_value,
    fork,
    open_questions,
    snapshot,
    with_recorded_end,
)
from axil_serve.access import Caller, Right
from axil_serve.audit import Audit
from axil_serve.data import (
    OVER,
    info_data,
    origin_of,
    place_of,
    plain,
    plan_data,
    question_data,
    question_for,
    run_data,
    run_facts,
    shared_fields,
    step_data,
    step_for,
    without_configs,
)
from axil_serve.errors import BadRequest, Busy, Conflict, NotAllowed, NotFound, ServeFault, lapsed
from axil_serve.feed import Feed, PublishingJournal
from axil_serve.files import RunFile, RunFiles, Upload, digests, other_files
from axil_serve.held import HeldSecrets
from axil_serve.layouts import Layouts
from axil_serve.records import Records, unknown_run
from axil_serve.streams import RunStream, StreamEvent, StreamPermit, shared

log = logging.getLogger("axil_serve")
P = ParamSpec("P")
T = TypeVar("T")
_TIDY_SECONDS: Final = 3600.0
_TIDY_MOST: Final = 1000  # runs that are looked at together; others have their turn then
_PAGE: Final = 100
"""Runs that are read from the journal at once."""
_LOOKED_AT: Final = 2_000
"""Runs that one call of ``page`` looks at."""
_GOING: Final = ("open", "running", "paused")
"""As what the runs are recorded that have not ended."""
_LONG: Final = 2_000
"""Steps of a run at work of which a list does not say again and again what it used."""
_KNOWN: Final = 10_000
"""Runs of which a list keeps what they used."""
_MOST_QUESTIONS: Final = 100
Reopen = Callable[[Mapping[str, Any], frozenset[str]], Workflow]
"""From the data that was kept with a run, its origin, to its workflow."""


class RunService:
    """Workflows and the runs of one journal, for callers with rights.

    Its methods raise: NotFound (AX965): the caller does not see such a run; NotAllowed (AX962): the
    token lacks the right; and what the engine and the journal raise.
    """

    def __init__(
        self,
        journal: SharedJournal,
        workflows: Mapping[str, Workflow] | None = None,
        *,
        origins: Mapping[str, Mapping[str, object]] | None = None,
        broken: Mapping[str, Sequence[str]] | None = None,
        reopen: Reopen | None = None,
        files: RunFiles | None = None,
        watch_only: bool = False,
        poll_seconds: float = 1.0,
        keep_seconds: float | None = None,
        push_urls: Sequence[str] = (),
        queue: str = "",
        status: str = "",
        audit: Audit | None = None,
        secrets: Collection[str] = (),
        **options: Any,
    ) -> None:
        """Store the settings.

        Args:
            workflows: by the names under which they are started.
            origins: by the same names, what is kept with their runs.
            broken: by name, what is wrong with workflows that cannot be served.
            reopen: returns the workflow of a run that is of none of these, of its origin and of
                what it is allowed; it may raise.
            files: of the runs; None: they have none, and no workspace.
            watch_only: no run is executed here, and nothing is written.
            poll_seconds: how often the journal is read for what other processes do.
            keep_seconds: how long runs that have ended, and uploads, are kept; None: for ever.
            push_urls: addresses below which protocols may send notifications to clients.
            queue: in which runs are put that callers start; their key is the caller.
            status: the address at which probes and metrics are answered; empty: nowhere.
            audit: the file of acts; None: none is written.
            secrets: the names of what callers may give along with their runs.
            options: of ``LocalEngine``.
        Raises: ConfigError (AX130), TypeError: as ``LocalEngine``.
        """
        check_run_options(options, RunService, LocalEngine)
        self.push_urls = tuple(push_urls)
        self.keep_seconds, self.queue, self._status = keep_seconds, queue, status
        self.feed, self.watch_only, self.poll_seconds = Feed(), watch_only, poll_seconds
        self.max_streams, self.max_streams_each = 100, 50
        self._streams: Counter[str] = Counter()  # open streams, by caller
        self.journal = PublishingJournal(journal, self.feed)
        self.workflows = {
            name: self._with_feed(workflow) for name, workflow in (workflows or {}).items()
        }
        self._origins, self._reopen, self._files = dict(origins or {}), reopen, files
        self.broken = dict(broken or {})
        self._found: dict[str, Workflow] = {}
        self._layouts = Layouts()
        self._facts: dict[str, tuple[object, dict[str, Any]]] = {}  # by run, with when it changed
        self._asked: dict[str, tuple[object, list[dict[str, Any]]]] = {}  # as _facts
        self._tidied = 0.0  # what was last touched before that and is not of a server stays
        self._left: tuple[float, str] | None = None  # a look that is not over: before, and after
        self.audit, self._held = audit, HeldSecrets(secrets)
        if files is not None:
            options["folder_of"] = files.folder
        options["around"] = self._held.around(options.get("around"))
        self.engine = LocalEngine(self.journal, self.workflows.values(), find=self._find, **options)
        self.records = Records(self.journal, self.engine, watch_only=watch_only)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[RunService]:
        """Within it runs are executed; those that an earlier server left open are recovered."""
        if self.watch_only:
            yield self
            return
        async with self.engine, answered_probes(self.engine, self._status):
            tidying = asyncio.create_task(self._tidying())
            try:
                yield self
            finally:
                tidying.cancel()

    def _with_feed(self, workflow: Workflow) -> Workflow:
        own = workflow.setting.hooks
        plugins = [*(own.get_plugins() if own is not None else ()), self.feed]
        return Workflow(workflow.spec, replace(workflow.setting, hooks=hook_manager(plugins)))

    def add(self, name: str, workflow: Workflow, origin: Mapping[str, object]) -> None:
        """Serve another workflow, or another version of one; its older runs keep theirs."""
        self.workflows[name] = self._with_feed(workflow)
        self._origins[name] = origin
        self.broken.pop(name, None)

    def _find(self, header: Mapping[str, Any]) -> Workflow:
        origin = header.get("origin", {})
        if self._reopen is None or "serve" not in origin:  # runs of others are left to them
            message = "the run's workflow is not served here."
            hint = "Resume it on the server or command line where it began."
            raise EngineError(message, id="AX542", hint=hint)
        return self._with_feed(self._reopen(origin, header.get("allow", frozenset())))

    # ------------------------------------------------------------------------------- looking

    def list(
        self, caller: Caller, *, among: int | None = None, **wanted: str
    ) -> Iterator[dict[str, Any]]:
        """Yield the runs that the caller sees, the last one that changed first.

        Args:
            among: so many of those that changed last are looked at; None: all.
            wanted: as of ``page``.
        """
        caller.check("look")
        looked = islice(self._looked_at(caller, "", wanted), among)
        return (run for _, run in looked if run is not None)

    def page(
        self, caller: Caller, *, after: str = "", limit: int, **wanted: str
    ) -> tuple[Sequence[dict[str, Any]], str]:
        """Return some of the runs that the caller sees, and the run behind which there may be more.

        However many runs there are, a call looks at so many only: it may return fewer than
        ``limit``, or none, though there are more.

        Args:
            after: only those behind this run.
            limit: at most so many.
            wanted: by the names of fields (status, session, workflow), only those with this value.
        Returns: the runs, the last one that changed first; and the run, empty: there are no more.
        """
        caller.check("look")
        seen: list[dict[str, Any]] = []
        for looked, (last, run) in enumerate(self._looked_at(caller, after, wanted), 1):
            if run is not None:
                seen.append(run)
            if len(seen) == limit or looked == _LOOKED_AT:
                return seen, last
        return seen, ""

    def _looked_at(
        self, caller: Caller, after: str, wanted: Mapping[str, str]
    ) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Yield the id of each run that may fit, and the run; None: the caller does not see it."""
        # an ended run is recorded as what it is; of others the engine knows more
        status = wanted.get("status", "")
        stored = (status,) if status in OVER else _GOING if status else ()
        while infos := self.journal.runs(status=stored, after=after, limit=_PAGE):
            for info in infos:
                after = info.run_id
                kept = self.records.kept(after)
                data = info_data(self.records.live(info), str(kept.get("session", info.thread)))
                data["workflow"] = str(kept.get("workflow", info.graph))
                data["owner"] = str(kept.get("owner", ""))
                fits = all(not given or data[name] == given for name, given in wanted.items())
                yield after, data if fits and caller.sees(kept.get("owner")) else None
            if len(infos) < _PAGE:
                return

    def facts(self, runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return runs of ``page`` with their inputs and what they used.

        Cost: a record is read again when it has changed; a long one only when the run has ended.
        """
        found: list[dict[str, Any]] = []
        for run in runs:
            name, known = run["run_id"], self._facts.get(run["run_id"])
            changed = (run["status"], run["touched"], run["steps"])
            is_long = run["steps"] > _LONG and run["status"] not in OVER
            if known is None or (known[0] != changed and not is_long):
                try:
                    known = (changed, run_facts(self.records.entries(name)))
                except (JournalError, NotFound):  # it is damaged, or was removed meanwhile
                    known = (changed, run_facts(()))
                self._facts.pop(name, None)
                self._facts[name] = known
                while len(self._facts) > _KNOWN:
                    del self._facts[next(iter(self._facts))]
            found.append({**run, **known[1]})
        return found

    def questions(self, caller: Caller) -> list[dict[str, Any]]:
        """Return the open questions of the paused runs that the caller sees, as many as fit."""
        found: list[dict[str, Any]] = []
        for run in self.list(caller, status="paused"):
            name, changed = run["run_id"], (run["touched"], run["steps"])
            if name not in self._asked or self._asked[name][0] != changed:
                try:
                    every = open_questions(self.records.entries(name))
                except (JournalError, NotFound):  # it is damaged, or was removed meanwhile
                    every = ()
                shown = [question_data(each) for each in every if each.kind != "timer"]
                self._asked[name] = (changed, shown)
            about = {"run_id": name, "workflow": run["workflow"], "touched": run["touched"]}
            asked = [question_for(each, caller.rights) for each in self._asked[name][1]]
            found += [{**about, "question": each} for each in asked]
            if len(found) >= _MOST_QUESTIONS:
                break
        for name in self._asked.keys() - {each["run_id"] for each in found}:
            if len(self._asked) > _MOST_QUESTIONS:
                self._asked.pop(name, None)
        return found[:_MOST_QUESTIONS]

    def look(self, caller: Caller, run_id: str) -> dict[str, Any]:
        """Return a run: its status, outline, questions and output."""
        info, entries = self._seen(caller, run_id, "look"), self.records.entries(run_id)
        info = with_recorded_end(info, ReplayIndex(entries))
        kept = self.records.kept(run_id)
        data = info_data(info, str(kept.get("session", info.thread)))
        data["workflow"] = str(kept.get("workflow", info.graph))
        data["owner"] = str(kept.get("owner", ""))
        data["metadata"] = plain(kept.get("metadata", {}))
        data |= run_data(entries, info.status)
        data["questions"] = [question_for(each, caller.rights) for each in data["questions"]]
        if info.status == "paused" and caller.rights.isdisjoint({"answer", "prompts"}):
            data["error"] = ""  # it has the questions
        elif info.status == "paused" and data["error"] and "answer" in caller.rights:
            data["error"] += f" Answer with POST /v1/runs/{run_id}/answers."
        if "prompts" not in caller.rights and isinstance(data["output"], dict):
            data["output"] = shared_fields(cast("dict[str, Any]", data["output"]))
        return data

    async def result(self, caller: Caller, run_id: str) -> dict[str, Any]:
        """Return a run as ``look`` does; the output of a typed graph is its state."""
        run = await self.read(self.look, caller, run_id)
        if run["status"] == "done" and run["output"] is None:
            workflow = await self.read(self._workflow_of, run_id)
            if workflow is not None and workflow.plan.graph.spec.payload == "state":
                found = await snapshot(workflow, await self.read(self.records.entries, run_id))
                state = plain(thaw(found.state))
                run["output"] = state if "prompts" in caller.rights else shared_fields(state)
        return run

    def thread(self, caller: Caller, session: str) -> Sequence[str]:
        """Return the ids of the caller's runs in one session, the first one first."""
        caller.check("look")
        return self.journal.thread(_thread(caller, session)) if session else []

    def steps(self, caller: Caller, run_id: str) -> list[dict[str, Any]]:
        """Return the recorded steps of a run."""
        self._seen(caller, run_id, "look")
        found = [step_data(entry, at) for at, entry in enumerate(self.records.entries(run_id), 1)]
        return [step for each in found if (step := step_for(each, caller.rights)) is not None]

    def plan(self, caller: Caller, run_id: str) -> dict[str, Any] | None:
        """Return the graph of a run as nested scopes; None: its workflow cannot be had here."""
        self._seen(caller, run_id, "look")
        workflow = self._workflow_of(run_id)
        if workflow is None:
            return None
        plan = plan_data(workflow.plan)
        return plan if "prompts" in caller.rights else without_configs(plan)

    def layout(
        self, caller: Caller, run_id: str, opened: Collection[tuple[str, ...]] | None = None
    ) -> dict[str, Any] | None:
        """Return the layout of the graph of a run; None: as ``plan``.

        ``opened``: the nodes whose inside is shown; None: all, or none of a large graph.
        """
        self._seen(caller, run_id, "look")
        workflow = self._workflow_of(run_id)
        if workflow is None:
            return None
        plan = workflow.plan
        return self._layouts.of(plan.graph.digest, partial(plan_data, plan), opened)

    async def moment(self, caller: Caller, run_id: str, at: str) -> dict[str, Any] | None:
        """Return the state of a run after a step, by its id; None: as ``plan``."""
        self._seen(caller, run_id, "look")
        workflow = self._workflow_of(run_id)
        if workflow is None:
            return None
        entries = self.records.entries(run_id)
        found = await snapshot(workflow, entries, at=_place(entries, at))
        state, due = plain(thaw(found.state)), plain(list(found.due))
        if "prompts" not in caller.rights:
            state = shared_fields(state)
            due = [{**each, "state": shared_fields(each["state"])} for each in due]
        return {"state": state, "due": due}

    async def stream(
        self,
        caller: Caller,
        run_id: str,
        *,
        after: str = "",
        live: bool = True,
        permit: StreamPermit | None = None,
    ) -> AsyncGenerator[StreamEvent]:
        """Yield the events of a run: recorded steps, and what is not recorded while it happens.

        Ends when the run has ended. A stream whose reader is slow loses what is not recorded.

        Args:
            after: the id of the last step that is known; empty: all are yielded.
            live: whether what is not recorded is yielded, too.
            permit: of this stream, from ``permit``; None: it takes one when it begins.
        """
        given: dict[str, Any] = {"after": after, "live": live, "permit": permit}
        async with aclosing(self.batches(caller, run_id, **given)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    async def batches(
        self,
        caller: Caller,
        run_id: str,
        *,
        after: str = "",
        live: bool = True,
        permit: StreamPermit | None = None,
    ) -> AsyncGenerator[Sequence[StreamEvent]]:
        """Yield the events of ``stream``, those together that happened meanwhile."""
        await self.read(self._seen, caller, run_id, "look")
        looked = time.monotonic()
        with permit or self.permit(caller), self.feed.follow(run_id) as follower:
            stream = RunStream(self.records, run_id, follower, after, live=live)
            async with aclosing(stream.batches(self.feed, self.poll_seconds)) as batches:
                async for batch in batches:
                    if (now := time.monotonic()) - looked >= min(1.0, self.poll_seconds):
                        looked = now
                        if await asyncio.to_thread(caller.has_lapsed):
                            raise lapsed()
                    yield batch if "prompts" in caller.rights else shared(batch, caller.rights)

    def permit(self, caller: Caller) -> StreamPermit:
        """Return leave for one stream, to be had before a run is started for it.

        Raises: Busy (AX964): too many streams are open, of all callers or of this one.
        """
        is_full = self._streams.total() >= self.max_streams
        if is_full or self._streams[caller.name] >= self.max_streams_each:
            message = "too many streams are open."
            raise Busy("AX964", message, "Close one, or try again later.")
        return StreamPermit(self._streams, caller.name)

    # --------------------------------------------------------------------------------- doing

    async def start(
        self,
        caller: Caller,
        name: str,
        input: Any = None,
        *,
        attributes: Mapping[str, Any] | None = None,
        session: str = "",
        key: str = "",
        metadata: Mapping[str, Any] | None = None,
        files: Sequence[str] = (),
    ) -> str:
        """Store a new run and return its id.

        Args:
            session: the conversation that it continues; sessions of callers are apart.
            key: the same key and the same input are the same run, begun once.
            metadata: data of the caller's own that is kept with the run.
            files: ids of uploads, which the run receives in its folder ``attachments``.
        Raises: NotAllowed; NotFound (AX965); BadRequest (AX120): the input lacks a field.
        """
        self._check_doing(caller, "run")
        workflow = self.workflows.get(name)
        if workflow is None:
            hint = (
                did_you_mean(name, list(self.workflows))
                or "List the served workflows with GET /v1/workflows."
            )
            if name in self.broken:
                hint = f"It cannot be served: {' '.join(self.broken[name])}"
            raise NotFound("AX965", f'there is no workflow "{name:.100}".', hint)
        _check_input(workflow, input)
        own: dict[str, Any] = {"owner": caller.name, "workflow": name, "session": session}
        own |= self._held.kept(caller)
        if metadata:
            own["metadata"] = dict(metadata)
        run_id = _keyed(caller, name, key) if key else secrets.token_hex(8)
        own |= {"run": run_id} if "secrets" in own else {}
        begin = partial(
            self.engine.start,
            workflow,
            input,
            attributes,
            run_id=run_id,
            thread=_thread(caller, session) if session else "",
            origin={**self._origins.get(name, {}), "serve": own},
            place=Place(queue=self.queue, key=caller.name) if self.queue else None,
        )
        self._held.put(caller, run_id)
        async with self.acting(caller, "start", run_id, workflow=name, files=[*files]):
            return await self._begun(caller, run_id, begin, own, files)

    async def begun(self, caller: Caller, name: str, key: str) -> str:
        """Return the run of a workflow that a caller began with a key; empty: there is none."""
        run_id = _keyed(caller, name, key)
        return run_id if await self.read(self.journal.infos, [run_id]) else ""

    async def rejoin(self, caller: Caller, run_id: str, right: Right = "run") -> None:
        """Have a run go on that broke off, with what the caller gives along; another is left."""
        self._check_doing(caller, right)
        info = await self.read(self._seen, caller, run_id, right)
        await self._refresh(caller, run_id)
        if info.status == "open":
            await self.engine.resume(run_id)

    async def _begun(
        self,
        caller: Caller,
        run_id: str,
        begin: Callable[[], Awaitable[str]],
        own: dict[str, Any],
        files: Sequence[str],
    ) -> str:
        """Start a run with copies of uploads in its folder."""
        if not files:
            return await begin()
        kept_files = self.files
        uploads = await asyncio.to_thread(kept_files.found, caller.name, files)
        own["files"] = digests(uploads)
        if await self.read(self.journal.infos, [run_id]):  # its key was used before
            if (await self.read(self.records.kept, run_id)).get("files", {}) != own["files"]:
                raise other_files()
            return await begin()
        await asyncio.to_thread(kept_files.attach, caller.name, uploads, run_id)
        try:
            return await begin()
        except BaseException:
            if not await self.read(self.journal.infos, [run_id]):  # else it is another request's
                await asyncio.to_thread(kept_files.forget, run_id)
            raise

    async def answer(
        self,
        caller: Caller,
        run_id: str,
        answers: Mapping[str, Any],
        *,
        is_awaited: bool = False,
    ) -> None:
        """Answer open questions, by their ids, and resume the run.

        Answers to a run whose workflow is not served here are kept for a process that has it;
        ``is_awaited``: the caller waits for what comes of them.
        Raises: EngineError (AX542): it would wait here, where the workflow is not served.
        """
        self._check_doing(caller, "answer")
        await self.read(self._seen, caller, run_id, "answer")
        if is_awaited:
            await self.engine.workflow_of(run_id)
        await self._refresh(caller, run_id)
        async with self.acting(caller, "answer", run_id, questions=sorted(answers)):
            await self.engine.answer(run_id, answers)

    async def cancel(self, caller: Caller, run_id: str) -> None:
        """End a run; one that has ended is not changed."""
        self._check_doing(caller, "run")
        await self.read(self._seen, caller, run_id, "run")
        async with self.acting(caller, "cancel", run_id):
            await self.engine.cancel(run_id, "cancelled by a caller")

    async def resume(
        self, caller: Caller, run_id: str, limits: Mapping[str, Any] | None = None
    ) -> None:
        """Resume a run that was interrupted, failed, reached a limit or was cancelled.

        ``limits``: those that it has from now on, as of ``Limits.changed``.
        """
        self._check_doing(caller, "run")
        if limits:
            caller.check("limits")
        await self.read(self._seen, caller, run_id, "run")
        await self._refresh(caller, run_id)
        async with self.acting(caller, "resume", run_id, **({"limits": limits} if limits else {})):
            await self.engine.resume(run_id, limits)

    async def fork(
        self,
        caller: Caller,
        run_id: str,
        *,
        at: str = "",
        input: Any = MISSING,
        state: Mapping[str, object] | None = None,
        output: object = MISSING,
        is_routed: bool = False,
    ) -> str:
        """Start a new run with the record of another up to a step, perhaps edited.

        Args:
            at: the id of the step; empty: all of it, or with another input nothing of it.
            input, state, output, is_routed: see ``axil_journals.Edit``.
        """
        self._check_doing(caller, "run")
        info = self._seen(caller, run_id, "run")
        entries = self.records.entries(run_id)
        workflow = self._workflow_of(run_id)
        if workflow is None:
            message = f'the workflow of the run "{run_id}" is not served here.'
            raise NotFound("AX965", message, "Serve the workflow with which the run began.")
        kept = self.records.kept(run_id)
        new_id = secrets.token_hex(8)
        own = {"owner": caller.name, "workflow": kept.get("workflow", info.graph), "session": ""}
        if given := self._held.kept(caller):
            own |= {**given, "run": new_id}
        edit = Edit(
            input=input,
            state=state or {},
            output=output,
            is_routed=is_routed,
            origin={**origin_of(entries), "serve": own},
        )
        place = _place(entries, at, Conflict) if at else None
        self._held.put(caller, new_id)
        async with self.acting(caller, "fork", new_id, of=run_id, at=at):
            await fork(self.journal, run_id, new_id, at=place, workflow=workflow, edit=edit)
            if self._files is not None:
                await asyncio.to_thread(self._files.copy, run_id, new_id)
            await self.engine.resume(new_id)
        return new_id

    async def remove(self, caller: Caller, run_id: str) -> None:
        """Remove a run that has ended: its record, and its folder.

        Raises: JournalError (AX506): it has not ended.
        """
        self._check_doing(caller, "run")
        info = await self.read(self._seen, caller, run_id, "run")
        if info.status not in OVER:
            message = f'the run "{run_id}" has not ended.'
            raise JournalError(message, id="AX506", hint="Cancel it first.")
        async with self.acting(caller, "remove", run_id):
            await self._remove(run_id)

    async def tidy(self, now: float) -> int:
        """Remove what is older than ``keep_seconds``; return how many runs.

        Runs that servers started and that have ended are removed, and uploads. Of many runs a part
        is looked at, and the next call goes on there.
        """
        if self.keep_seconds is None:
            return 0
        before, after = self._left or (now - self.keep_seconds, "")
        removed = looked = 0
        given: dict[str, Any] = {"status": OVER, "before": before, "limit": _PAGE, "after": after}
        is_over, self._left = False, None
        if after and not await self.read(self.journal.infos, [after]):
            given["after"] = ""  # it was removed meanwhile: from the beginning
        while not is_over and (infos := await self.read(self.journal.runs, **given)):
            if looked >= _TIDY_MOST:
                self._left = before, given["after"]
                return removed
            looked += len(infos)
            for info in infos:
                if info.touched < self._tidied:  # what is older was looked at before
                    is_over = True
                    break
                if "owner" not in await self.read(self.records.kept, info.run_id):
                    given["after"] = info.run_id  # it stays: the next page is behind it
                    continue
                try:
                    await self._remove(info.run_id)
                    removed += 1
                except JournalError as error:
                    if error.id == "AX506":  # it was resumed
                        given["after"] = info.run_id
                    elif error.id != "AX503":  # another server was there first
                        raise
        self._tidied = before
        if self._files is not None:
            await asyncio.to_thread(self._files.tidy, before)
        return removed

    async def _remove(self, run_id: str) -> None:
        await self.records.forget(run_id)
        self._held.drop(run_id)
        if self._files is not None:
            await asyncio.to_thread(self._files.forget, run_id)

    async def _tidying(self) -> None:
        while self.keep_seconds is not None:
            began = time.monotonic()
            try:
                await self.tidy(time.time())
            except AxilError as error:  # the server serves all the same
                log.error("old runs could not be removed: %s", error)
                self._left = None
            # at most half of the time: others come first
            took = time.monotonic() - began
            await asyncio.sleep(_TIDY_SECONDS if self._left is None else took)

    # --------------------------------------------------------------------------------- files

    @property
    def files(self) -> RunFiles:
        """The files of the runs. Raises: NotFound (AX965): the server keeps none."""
        if self._files is None:
            raise NotFound("AX965", "this server keeps no files.", "Start it with --files DIR.")
        return self._files

    async def upload(
        self,
        caller: Caller,
        name: str,
        media_type: str,
        chunks: AsyncIterable[bytes],
        *,
        purpose: str = "user_data",
    ) -> Upload:
        """Store a file that runs of the caller may receive."""
        self._check_doing(caller, "run")
        async with self.acting(caller, "upload", file=name):
            return await self.files.save(caller.name, name, media_type, chunks, purpose=purpose)

    async def uploads(self, caller: Caller) -> list[Upload]:
        """Return the uploads of the caller."""
        caller.check("look")
        return await asyncio.to_thread(self.files.uploads, caller.name)

    async def find_upload(self, caller: Caller, file_id: str) -> Upload:
        """Return an upload of the caller."""
        caller.check("look")
        return await asyncio.to_thread(self.files.upload, caller.name, file_id)

    async def open_upload(self, caller: Caller, file_id: str) -> tuple[Upload, BinaryIO]:
        """Open an upload of the caller to read from."""
        caller.check("look")
        return await asyncio.to_thread(self.files.open_upload, caller.name, file_id)

    async def remove_upload(self, caller: Caller, file_id: str) -> None:
        """Remove an upload of the caller; the copies that runs received stay."""
        self._check_doing(caller, "run")
        async with self.acting(caller, "remove upload", file=file_id):
            await asyncio.to_thread(self.files.remove, caller.name, file_id)

    async def run_files(self, caller: Caller, run_id: str) -> tuple[list[RunFile], int]:
        """Return the files of a run, and how many were left out of the list."""
        await self.read(self._seen, caller, run_id, "look")
        return await asyncio.to_thread(self.files.listed, run_id)

    async def open_file(
        self, caller: Caller, run_id: str, file_id: str
    ) -> tuple[RunFile, BinaryIO]:
        """Open a file of a run to read from."""
        await self.read(self._seen, caller, run_id, "look")
        return await asyncio.to_thread(self.files.open, run_id, file_id)

    # --------------------------------------------------------------------------------- audit

    @asynccontextmanager
    async def acting(
        self, caller: Caller, action: str, run_id: str = "", **details: object
    ) -> AsyncGenerator[None]:
        """Within it an act is done that is written down before, and again if it fails."""
        await self.note(caller, action, run_id, **details)
        try:
            yield
        except AxilError as error:
            await self.note(caller, action, run_id, failed=error.id)
            raise

    async def note(self, caller: Caller, action: str, run_id: str = "", **details: object) -> None:
        """Write an act down, where the server keeps an audit."""
        if self.audit is not None:
            await asyncio.to_thread(self.audit.add, caller, action, run_id, **details)

    async def acts(self, caller: Caller, **wanted: Any) -> tuple[list[dict[str, Any]], int]:
        """Return acts as ``Audit.read`` does."""
        caller.check("audit")
        if self.audit is None:
            raise NotFound("AX965", "this server keeps no audit.", "Ask one of axil serve.")
        return await asyncio.to_thread(self.audit.read, **wanted)

    async def _refresh(self, caller: Caller, run_id: str) -> None:
        """Keep what the owner of a run gave along, if the run was begun with any."""
        kept = await self.read(self.records.kept, run_id)
        if "secrets" in kept and kept.get("owner") == caller.name:
            self._held.put(caller, run_id)

    # ------------------------------------------------------------------------------- reading

    async def read(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method that reads, as ``Records.read``."""
        return await self.records.read(call, *args, **kwargs)

    def _check_doing(self, caller: Caller, right: Any) -> None:
        caller.check(right)
        if self.watch_only:
            message = "this server shows runs and cannot start or change them."
            raise NotAllowed("AX962", message, "Serve the workflow with axil serve.")

    def _seen(self, caller: Caller, run_id: str, right: Any) -> RunInfo:
        """Return what is known of a run that the caller sees."""
        caller.check(right)
        info = self.records.info(run_id)
        if not caller.sees(self.records.kept(run_id).get("owner")):
            raise unknown_run(run_id)
        return info

    def _workflow_of(self, run_id: str) -> Workflow | None:
        header: Mapping[str, Any] = {}
        for entry in self.records.entries(run_id):
            if entry.kind == "run":
                header = entry.data
            elif entry.kind == "resumed" and "now" in entry.data:
                header = {**header, **entry.data["now"]}
        digest = str(header.get("digest", ""))
        for workflow in self.workflows.values():
            if workflow.plan.graph.digest == digest:
                return workflow
        if digest not in self._found:
            if self._reopen is None:
                return None
            try:
                found = self._reopen(decode_value(header.get("origin", {})), frozenset())
                found.plan  # noqa: B018  # it is compiled, or not had
            except (AxilError, OSError, ImportError, LookupError):
                return None
            if found.plan.graph.digest != digest:
                return None
            self._found[digest] = found
        return self._found[digest]


def _check_input(workflow: Workflow, input: Any) -> None:
    """Check that an input has the fields that the graph takes in any case.

    Raises: BadRequest (AX120): it lacks some.
    """
    spec = workflow.plan.graph.spec
    if spec.payload != "fields" or not (input is None or isinstance(input, (str, Mapping, list))):
        return  # what else is no input the engine says
    has = fold_payloads([input])
    begin = [edge for edge in spec.edges if edge.source == ENTRY and edge.condition is None]
    wanted = dict.fromkeys(key for edge in begin for key in edge.keys or ())
    if lacks := [name for name in wanted if name not in has]:
        message = (
            f"the input lacks {format_names([*lacks])}; "
            f"it has {format_names([*map(str, has)]) or 'no fields'}."
        )
        fields = json.dumps(dict.fromkeys(wanted, "…"), ensure_ascii=False)
        raise BadRequest("AX120", message, f"Send its fields as data: {fields}.")


def _keyed(caller: Caller, name: str, key: str) -> str:
    """Return the id of the run of a workflow that a caller begins with a key."""
    return hashlib.sha256(json.dumps([caller.name, name, key]).encode()).hexdigest()[:16]


def _thread(caller: Caller, session: str) -> str:
    return f"{caller.name}/{session}"  # no name of a caller has a "/"


def _place(entries: Sequence[Entry], id: str, fault: type[ServeFault] = NotFound) -> int:
    place = place_of(entries, id)
    if place is None:
        message = f'the run has no step "{id:.100}".'
        raise fault("AX965", message, "Use the id of a step of the run.")
    return place


__all__ = ["OVER", "Reopen", "RunService"]
