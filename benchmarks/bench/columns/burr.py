"""burr: actions that read and write a state, with transitions between them; asynchronous.

An application is one run.
"""

from __future__ import annotations

TITLE = "burr"
KIND = "peer"
REQUIRES = (
    "apache-burr[tracking]>=0.43",
    "aiosqlite>=0.20",
)
PACKAGE = "apache-burr"
IMPORT = "burr.core"


def adding(wait=None):
    """Return an action that counts."""
    from burr.core import action

    @action(reads=["n"], writes=["n"])
    async def add(state):
        if wait is not None:
            await wait()
        return state.update(n=state["n"] + 1)

    return add


def plainly_adding():
    """Return an action that counts, and is no coroutine."""
    from burr.core import action

    @action(reads=["n"], writes=["n"])
    def add(state):
        return state.update(n=state["n"] + 1)

    return add


def row(size, action):
    """``size`` actions in a row, and the name of the last."""
    from burr.core import GraphBuilder

    builder = GraphBuilder().with_actions(**{f"n{i}": action for i in range(size)})
    builder = builder.with_transitions(*((f"n{i - 1}", f"n{i}") for i in range(1, size)))
    return builder.build(), f"n{size - 1}"


def application(graph, entry="n0", **state):
    """Return a run."""
    from burr.core import ApplicationBuilder

    return ApplicationBuilder().with_graph(graph).with_state(**state).with_entrypoint(entry)


async def ran(builder, last):
    _, _, state = await builder.build().arun(halt_after=[last])
    return state


def chain(case):
    graph, last = row(case.size, adding())

    async def go():
        return (await ran(application(graph, n=0), last))["n"]

    return go


def plain(case):
    graph, last = row(case.size, plainly_adding())

    def go():
        _, _, state = application(graph, n=0).build().run(halt_after=[last])
        return state["n"]

    return go


def watched(case):
    from burr.lifecycle import PostRunStepHookAsync, PreRunStepHookAsync

    class Tracer(PreRunStepHookAsync, PostRunStepHookAsync):
        begun = ended = 0

        async def pre_run_step(self, **future_kwargs):
            self.begun += 1

        async def post_run_step(self, **future_kwargs):
            self.ended += 1

    graph, last = row(case.size, adding())

    async def go():
        tracer = Tracer()
        n = (await ran(application(graph, n=0).with_hooks(tracer), last))["n"]
        assert tracer.begun == tracer.ended == case.size
        return n

    return go


def streamed(case):
    graph, last = row(case.size, adding())

    async def go():
        seen = []
        async for _, _, state in application(graph, n=0).build().aiterate(halt_after=[last]):
            seen.append(state["n"])
        assert len(seen) == case.size
        return seen[-1]

    return go


def spreading(case, state_of, work):
    """Return one action that maps another over states, at once, and sums up."""
    from burr.core.parallelism import MapStates

    class Spread(MapStates):
        def action(self, state, inputs):
            return work

        async def states(self, state, context, inputs):
            for i in range(case.size):
                yield state.update(item=state_of(i))

        async def reduce(self, state, states):
            total = 0
            async for each in states:
                total += each["n"]
            return state.update(n=total)

        def is_async(self):
            return True

        @property
        def reads(self):
            return ["n"]

        @property
        def writes(self):
            return ["n"]

    from burr.core import GraphBuilder

    graph = GraphBuilder().with_actions(spread=Spread()).build()

    async def go():
        return (await ran(application(graph, "spread", n=0), "spread"))["n"]

    return go


def fan(case):
    from burr.core import action

    @action(reads=["n"], writes=["n"])
    async def work(state):
        await case.wait()
        return state.update(n=1)

    return spreading(case, lambda i: i, work)


def mapped(case):
    from burr.core import action

    @action(reads=["item"], writes=["n"])
    async def work(state):
        return state.update(n=state["item"] + 1)

    return spreading(case, lambda i: i, work)


def loop(case):
    from burr.core import GraphBuilder, action, default, expr

    @action(reads=[], writes=[])
    async def same(state):
        return state

    @action(reads=["n"], writes=[])
    async def over(state):
        return state

    graph = GraphBuilder().with_actions(a=adding(), b=same, over=over)
    graph = graph.with_transitions(
        ("a", "b"), ("b", "a", expr(f"n < {case.size}")), ("b", "over", default)
    ).build()

    async def go():
        return (await ran(application(graph, "a", n=0), "over"))["n"]

    return go


def log_loop(case, message):
    from burr.core import GraphBuilder, action, default, expr

    @action(reads=["n", "log"], writes=["n", "log"])
    async def step(state):
        case.mark()
        state = state.update(n=state["n"] + 1)
        return state.append(log=message) if message else state

    @action(reads=["n"], writes=[])
    async def over(state):
        return state

    graph = GraphBuilder().with_actions(step=step, over=over)
    return graph.with_transitions(
        ("step", "step", expr(f"n < {case.size}")), ("step", "over", default)
    ).build()


def growing(case):
    graph = log_loop(case, "m")

    async def go():
        return len((await ran(application(graph, "step", n=0, log=[]), "over"))["log"])

    return go


def durable(case):
    import asyncio

    graph = log_loop(case, case.message)

    async def go():
        from burr.core import ApplicationBuilder
        from burr.integrations.persisters.b_aiosqlite import AsyncSQLitePersister

        persister = await AsyncSQLitePersister.from_values(db_path=str(case.folder / "runs.db"))
        async with persister:
            await persister.initialize()

            async def one(run):
                builder = (
                    ApplicationBuilder()
                    .with_graph(graph)
                    .with_state(n=0, log=[])
                    .with_entrypoint("step")
                )
                builder = builder.with_identifiers(app_id=f"r{run}").with_state_persister(persister)
                _, _, state = await (await builder.abuild()).arun(halt_after=["over"])
                return state["n"]

            (n,) = set(await asyncio.gather(*(one(run) for run in range(case.runs))))
            return n

    return go


def payload(case):
    records = case.records
    graph, last = row(50, adding())

    async def go():
        state = await ran(application(graph, n=0, data=records), last)
        return state["n"], len(state["data"])

    return go


def crowd(case):
    import asyncio

    graph, last = row(10, adding(case.wait))

    async def go():
        return [
            state["n"]
            for state in await asyncio.gather(
                *(ran(application(graph, n=0), last) for _ in range(case.size))
            )
        ]

    return go


def first():
    import asyncio

    graph, last = row(2, adding())
    assert asyncio.run(ran(application(graph, n=0), last))["n"] == 2
