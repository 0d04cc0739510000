"""Haystack: components with sockets, connected in a pipeline; its asynchronous run, which starts
ready components together.
"""

# No postponed annotations: a component's sockets are read from them, and they name types that are
# imported where they are used.

TITLE = "Haystack"
KIND = "peer"
REQUIRES = ("haystack-ai>=3",)
PACKAGE = "haystack-ai"
IMPORT = "haystack"


def adding(wait=None):
    """Return a component that counts."""
    from haystack import component

    @component
    class Add:
        @component.output_types(n=int)
        def run(self, n: int):
            return {"n": n + 1}

        @component.output_types(n=int)
        async def run_async(self, n: int):
            if wait is not None:
                await wait()
            return {"n": n + 1}

    return Add


def row(size, kind):
    from haystack import Pipeline

    pipeline = Pipeline()
    for i in range(size):
        pipeline.add_component(f"n{i}", kind())
    for i in range(1, size):
        pipeline.connect(f"n{i - 1}.n", f"n{i}.n")
    return pipeline, f"n{size - 1}"


def chain(case):
    pipeline, last = row(case.size, adding())

    async def go():
        return (await pipeline.run_async({"n0": {"n": 0}}))[last]["n"]

    return go


def streamed(case):
    pipeline, last = row(case.size, adding())
    names = {f"n{i}" for i in range(case.size)}

    async def go():
        final = None
        async for part in pipeline.run_async_generator(
            {"n0": {"n": 0}}, include_outputs_from=names
        ):
            final = part
        assert names <= set(final)
        return final[last]["n"]

    return go


def summing():
    """Return a component that takes any number of inputs."""
    from haystack import component
    from haystack.core.component.types import Variadic

    @component
    class Sum:
        @component.output_types(n=int)
        def run(self, n: Variadic[int]):
            return {"n": sum(n)}

        @component.output_types(n=int)
        async def run_async(self, n: Variadic[int]):
            return {"n": sum(n)}

    return Sum


def fan(case):
    from haystack import Pipeline

    add = adding(case.wait)
    pipeline = Pipeline()
    pipeline.add_component("begin", adding()())
    pipeline.add_component("end", summing()())
    for i in range(case.size):
        pipeline.add_component(f"n{i}", add())
        pipeline.connect("begin.n", f"n{i}.n")
        pipeline.connect(f"n{i}.n", "end.n")

    async def go():
        return (await pipeline.run_async({"begin": {"n": -1}}, concurrency_limit=case.size))["end"][
            "n"
        ]

    return go


def dag(case):
    """Return a pipeline in which every component gives its number of firings; what all of them
    fired is summed up.
    """
    from haystack import Pipeline, component
    from haystack.core.component.types import Variadic

    fired = []

    @component
    class Work:
        @component.output_types(n=int)
        def run(self, n: Variadic[int]):
            fired.append(1)
            return {"n": 1}

        @component.output_types(n=int)
        async def run_async(self, n: Variadic[int]):
            fired.append(1)
            return {"n": 1}

    pipeline = Pipeline()
    for i in range(case.size):
        pipeline.add_component(f"n{i}", Work())
    for a, b in case.edges:
        pipeline.connect(f"n{a}.n", f"n{b}.n")

    async def go():
        fired.clear()
        await pipeline.run_async({"n0": {"n": 1}})
        return len(fired)

    return go


def loop(case):
    from haystack import Pipeline, component
    from haystack.core.component.types import GreedyVariadic

    @component
    class Enter:
        @component.output_types(n=int)
        def run(self, n: GreedyVariadic[int]):
            return {"n": n[0] + 1}

        @component.output_types(n=int)
        async def run_async(self, n: GreedyVariadic[int]):
            return {"n": n[0] + 1}

    @component
    class Again:
        @component.output_types(again=int, over=int)
        def run(self, n: int):
            return {"again": n} if n < case.size else {"over": n}

        @component.output_types(again=int, over=int)
        async def run_async(self, n: int):
            return self.run(n)

    pipeline = Pipeline(max_runs_per_component=2 * case.size + 10)
    pipeline.add_component("a", Enter())
    pipeline.add_component("b", Again())
    pipeline.connect("a.n", "b.n")
    pipeline.connect("b.again", "a.n")

    async def go():
        return (await pipeline.run_async({"a": {"n": 0}}))["b"]["over"]

    return go


def payload(case):
    from haystack import Pipeline, component

    @component
    class Carry:
        @component.output_types(n=int, data=list)
        def run(self, n: int, data: list):
            return {"n": n + 1, "data": data}

        @component.output_types(n=int, data=list)
        async def run_async(self, n: int, data: list):
            return {"n": n + 1, "data": data}

    pipeline = Pipeline()
    for i in range(50):
        pipeline.add_component(f"n{i}", Carry())
    for i in range(1, 50):
        pipeline.connect(f"n{i - 1}.n", f"n{i}.n")
        pipeline.connect(f"n{i - 1}.data", f"n{i}.data")
    records = case.records

    async def go():
        result = (await pipeline.run_async({"n0": {"n": 0, "data": records}}))["n49"]
        return result["n"], len(result["data"])

    return go


def crowd(case):
    import asyncio

    pipeline, last = row(10, adding(case.wait))

    async def go():
        results = await asyncio.gather(
            *(pipeline.run_async({"n0": {"n": 0}}) for _ in range(case.size))
        )
        return [result[last]["n"] for result in results]

    return go


def first():
    import asyncio

    pipeline, last = row(2, adding())
    assert asyncio.run(pipeline.run_async({"n0": {"n": 0}}))[last]["n"] == 2
