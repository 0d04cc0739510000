"""Plain calls: what the work itself costs, without joins, dead paths, waiting or anything else."""

from __future__ import annotations

TITLE = "plain calls"
KIND = "baseline"
FAR = True


def add(state):
    return {"n": state["n"] + 1}


def chain(case, extra=None):
    bodies = [add] * case.size

    def go():
        state = {"n": 0, **(extra or {})}
        for body in bodies:
            state.update(body(state))
        return state["n"]

    return go


def plain(case):
    return chain(case)


def idle(case):
    def nothing(state):
        return {}

    bodies = [nothing] * case.size

    def go():
        state, count = {}, 0
        for body in bodies:
            state.update(body(state))
            count += 1
        return count

    return go


def fields(case):
    names = [f"f{i % case.size}" for i in range(1000)]

    def write(state):
        return 1

    def go():
        state = {f"f{i}": 0 for i in range(case.size)}
        for name in names:
            state[name] += write(state)
        return sum(state.values())

    return go


def dag(case):
    """Counters of open predecessors and a queue: what anybody would write."""
    successors = [[] for _ in range(case.size)]
    waits = [0] * case.size
    for a, b in case.edges:
        successors[a].append(b)
        waits[b] += 1

    def body(inputs):
        return {"in": inputs}

    def go():
        waiting, ready, inputs = list(waits), [0], [[] for _ in range(case.size)]
        for node in ready:
            out = body(inputs[node])
            for after in successors[node]:
                inputs[after].append(out)
                waiting[after] -= 1
                if not waiting[after]:
                    ready.append(after)
        return len(ready)

    return go


def loop(case):
    def same(state):
        return {}

    def go():
        state = {"n": 0}
        while state["n"] < case.size:
            state.update(add(state))
            state.update(same(state))
        return state["n"]

    return go


def plain_loop(case):
    return loop(case)


def nested(case):
    def go():
        state = {"n": 0, "outer": 0}
        while state["outer"] < case.size:
            state["outer"] += 1
            inner = 0
            while inner < 10:
                inner += 1
                state.update(add(state))
        return state["n"]

    return go


def mapped(case):
    def body(item):
        return item + 1

    def go():
        return sum(map(body, range(case.size)))

    return go


def growing(case):
    def body(state):
        case.mark()
        return {"log": ["m"]}

    def go():
        state = {"log": []}
        while len(state["log"]) < case.size:
            state["log"] += body(state)["log"]
        return len(state["log"])

    return go


def payload(case):
    data = case.records
    case.size, size = 50, case.size
    plain = chain(case, {"data": data})
    case.size = size
    return lambda: (plain(), len(data))


def first():
    state = {"n": 0}
    state.update(add(state))
    state.update(add(state))
    assert state["n"] == 2
