"""A topological order kept while edges are added one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping


class Order:
    """A topological order kept while edges are added: finds the edge that closes a cycle without
    searching the whole graph.

    Source: D. Pearce and P. Kelly, A dynamic topological sort algorithm for directed acyclic
    graphs, JEA 11, 2006.
    """

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self._out: dict[str, list[str]] = {}
        self._into: dict[str, list[str]] = {}

    def enter(self, name: str) -> None:
        """Add a vertex, behind those that are there: edges in the order of vertices then cost no
        search.
        """
        self._at.setdefault(name, len(self._at))

    def add(self, source: str, target: str) -> list[str] | None:
        """Add an edge, or give the cycle that it would close, from the target around to the
        target.
        """
        if source == target:
            return [source, target]
        for name in (source, target):
            self.enter(name)
        if self._at[target] < self._at[source]:
            came: dict[str, str] = {}
            ahead = self._region(target, self._out, lambda place: place <= self._at[source], came)
            if source in ahead:
                path = [source]
                while path[-1] != target:
                    path.append(came[path[-1]])
                return [source, *reversed(path)]
            behind = self._region(source, self._into, lambda place: place >= self._at[target], {})
            names = sorted(behind, key=self._at.__getitem__) + sorted(
                ahead, key=self._at.__getitem__
            )
            places = sorted(self._at[name] for name in names)
            self._at.update(zip(names, places, strict=True))
        self._out.setdefault(source, []).append(target)
        self._into.setdefault(target, []).append(source)
        return None

    def _region(
        self,
        start: str,
        links: Mapping[str, list[str]],
        within: Callable[[int], bool],
        came: dict[str, str],
    ) -> set[str]:
        seen, stack = {start}, [start]
        while stack:
            here = stack.pop()
            for there in links.get(here, ()):
                if there not in seen and within(self._at[there]):
                    seen.add(there)
                    came[there] = here
                    stack.append(there)
        return seen
