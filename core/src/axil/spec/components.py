"""Cycles of directed graphs: strongly connected components, and levels."""

from __future__ import annotations

from collections.abc import Sequence


def components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return strongly connected components, each sorted, in topological order, sources first.

    Args:
        successors: for each vertex ``0 … n-1`` the vertices its edges lead to; repeats are
            harmless.

    Cost: O(vertices + edges), no recursion. Source: R. Tarjan, Depth-first search and linear graph
    algorithms, SIAM J. Comput. 1(2), 1972.

    >>> components([[1], [2], [1, 3], []])
    [[0], [1, 2], [3]]
    """
    n = len(successors)
    if lead_onward(successors):
        return [[v] for v in range(n)]
    unseen = [0] * n  # in-edges from vertices that are not in ``free``
    for each in successors:
        for w in each:
            unseen[w] += 1
    free = [v for v in range(n) if not unseen[v]]
    for v in free:  # it grows
        for w in successors[v]:
            unseen[w] -= 1
            if not unseen[w]:
                free.append(w)
    if len(free) == n:
        return [[v] for v in free]
    order = [0 if unseen[v] else -1 for v in range(n)]  # visit number, 0 = not visited
    low = [0] * n
    on_stack = bytearray(n)
    stack: list[int] = []
    found: list[list[int]] = []
    visit = 0
    for root in range(n):
        if order[root]:
            continue
        visit += 1
        order[root] = low[root] = visit
        stack.append(root)
        on_stack[root] = 1
        path = [(root, iter(successors[root]))]
        while path:
            v, rest = path[-1]
            for w in rest:
                if not order[w]:
                    visit += 1
                    order[w] = low[w] = visit
                    stack.append(w)
                    on_stack[w] = 1
                    path.append((w, iter(successors[w])))
                    break
                if on_stack[w] and order[w] < low[v]:
                    low[v] = order[w]
            else:
                path.pop()
                if path and low[v] < low[path[-1][0]]:
                    low[path[-1][0]] = low[v]
                if low[v] == order[v]:
                    component: list[int] = []
                    while True:
                        w = stack.pop()
                        on_stack[w] = 0
                        component.append(w)
                        if w == v:
                            break
                    component.sort()
                    found.append(component)
    return [[v] for v in free] + found[::-1]


def lead_onward(successors: Sequence[Sequence[int]]) -> bool:
    """Return whether each edge leads to a later vertex, as in most graphs; they have no cycle."""
    for v, each in enumerate(successors):
        for w in each:
            if w <= v:
                return False
    return True


def is_cyclic(component: Sequence[int], successors: Sequence[Sequence[int]]) -> bool:
    """Return whether the component holds a cycle."""
    return len(component) > 1 or component[0] in successors[component[0]]


def levels(successors: Sequence[Sequence[int]]) -> list[int]:
    """Return the longest distance of each vertex from a source; vertices on a cycle share a level.

    >>> levels([[1, 2], [2], []])
    [0, 1, 2]
    """
    result = [0] * len(successors)
    if lead_onward(successors):
        for v, each in enumerate(successors):
            beyond = result[v] + 1
            for w in each:
                if result[w] < beyond:
                    result[w] = beyond
        return result
    for component in components(successors):
        level = max([result[v] for v in component])
        for v in component:
            result[v] = level
        inside = set(component)
        for v in component:
            for w in successors[v]:
                if w not in inside and result[w] <= level:
                    result[w] = level + 1
    return result
