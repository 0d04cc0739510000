"""Written by hand with asyncio: an ``await`` where one waits for one, tasks where several go at
once. No state, ids, journal or limits.
"""

from __future__ import annotations

import asyncio

TITLE = "asyncio, by hand"
KIND = "baseline"
FAR = True


async def add(state):
    return {"n": state["n"] + 1}


def chain(case):
    bodies = [add] * case.size

    async def go():
        state = {"n": 0}
        for body in bodies:
            state.update(await body(state))
        return state["n"]

    return go


def watched(case):
    seen = []
    bodies = [add] * case.size

    async def go():
        seen.clear()
        state = {"n": 0}
        for body in bodies:
            state.update(await body(state))
            seen.append(1)
        assert len(seen) == case.size
        return state["n"]

    return go


def streamed(case):
    bodies = [add] * case.size

    async def stream():
        state = {"n": 0}
        for body in bodies:
            update = await body(state)
            state.update(update)
            yield update

    async def go():
        last = None
        async for update in stream():
            last = update
        return last["n"]

    return go


def fan(case):
    async def body(state):
        await case.wait()
        return {"n": 1}

    async def go():
        state = {"n": 0}
        results = await asyncio.gather(
            *(asyncio.create_task(body(state)) for _ in range(case.size))
        )
        return sum(result["n"] for result in results)

    return go


def dag(case):
    """Return a task for every node as soon as the last of its predecessors has ended."""
    successors = [[] for _ in range(case.size)]
    waits = [0] * case.size
    for a, b in case.edges:
        successors[a].append(b)
        waits[b] += 1

    async def body(inputs):
        return {"in": inputs}

    async def go():
        waiting, inputs, count = list(waits), [[] for _ in range(case.size)], 0
        over = asyncio.Event()
        tasks = set()

        async def fire(node):
            nonlocal count
            out = await body(inputs[node])
            count += 1
            for after in successors[node]:
                inputs[after].append(out)
                waiting[after] -= 1
                if not waiting[after]:
                    begin(after)
            if count == case.size:
                over.set()

        def begin(node):
            task = asyncio.create_task(fire(node))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        begin(0)
        await over.wait()
        return count

    return go


def loop(case):
    async def same(state):
        return {}

    async def go():
        state = {"n": 0}
        while state["n"] < case.size:
            state.update(await add(state))
            state.update(await same(state))
        return state["n"]

    return go


def nested(case):
    async def go():
        state = {"n": 0, "outer": 0}
        while state["outer"] < case.size:
            state["outer"] += 1
            inner = 0
            while inner < 10:
                inner += 1
                state.update(await add(state))
        return state["n"]

    return go


def mapped(case):
    async def body(item):
        return item + 1

    async def go():
        return sum(await asyncio.gather(*(asyncio.create_task(body(i)) for i in range(case.size))))

    return go


def growing(case):
    async def body(state):
        case.mark()
        return {"log": ["m"]}

    async def go():
        state = {"log": []}
        while len(state["log"]) < case.size:
            state["log"] += (await body(state))["log"]
        return len(state["log"])

    return go


def payload(case):
    data = case.records

    async def go():
        state = {"n": 0, "data": data}
        for _ in range(50):
            state.update(await add(state))
        return state["n"], len(state["data"])

    return go


def crowd(case):
    async def body(state):
        await case.wait()
        return {"n": state["n"] + 1}

    async def one():
        state = {"n": 0}
        for _ in range(10):
            state.update(await body(state))
        return state["n"]

    async def go():
        return list(await asyncio.gather(*(asyncio.create_task(one()) for _ in range(case.size))))

    return go


async def add_one(n):
    return n + 1


def agent(case):
    """Ask, call, ask again: what any loop of a model and its tools does at least."""

    async def model(messages):
        await case.wait()
        last = messages[-1]
        n = last["content"] if last["role"] == "tool" else 0
        if n < case.size:
            return {"role": "assistant", "calls": [("add_one", {"n": n})]}
        return {"role": "assistant", "content": str(n)}

    async def go():
        messages = [
            {"role": "system", "content": "You count with your tool." + case.message},
            {"role": "user", "content": f"Count to {case.size}."},
        ]
        while calls := (reply := await model(messages)).get("calls"):
            messages.append(reply)
            for _, arguments in calls:
                messages.append({"role": "tool", "content": await add_one(**arguments)})
        return int(reply["content"])

    return go


def first():
    async def go():
        state = {"n": 0}
        state.update(await add(state))
        state.update(await add(state))
        return state["n"]

    assert asyncio.run(go()) == 2
