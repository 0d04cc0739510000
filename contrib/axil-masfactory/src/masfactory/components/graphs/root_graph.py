"""``RootGraph``: a graph that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import axil
from masfactory.components.graphs.base_graph import BaseGraph, the_graphs_own
from masfactory.components.graphs.graph import Graph
from masfactory.core.node import Keys, Node
from masfactory.utils.apart import apart
from masfactory.utils.hook import masf_hook


class RootGraph(Graph):
    """A graph that runs: ``build()``, then ``invoke(input)`` as often as wanted.

    Its attributes stay from one ``invoke`` to the next. ``axil`` is the graph of axil that was made
    of it: what axil does beyond ``invoke`` (``run``, ``stream``, journals, limits) begins there.
    """

    root_only = True

    def __init__(
        self,
        name: str,
        attributes: Mapping[str, Any] | None = None,
        edges: Sequence[Sequence[Any]] | None = None,
        nodes: Sequence[Sequence[Any]] | None = None,
        build_func: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(name, None, None, attributes, build_func, edges=edges, nodes=nodes)
        self._made: axil.RootGraph | None = None
        self._lock = threading.RLock()

    def component(self) -> Any:
        return axil.RootGraph(self.name, attributes=self.attributes)

    def changed(self) -> None:
        self._made = None

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make what was declared, build the nodes, and check the whole.

        Raises: SpecError: all that is wrong with it.
        """
        BaseGraph.build(self)
        _ = self.axil

    @property
    def axil(self) -> axil.RootGraph:
        """The built graph of axil. Raises: RuntimeError: this one is not built."""
        self._expect_built()
        with self._lock:
            if self._made is None:
                self.hooked()
                self._made = cast("axil.RootGraph", self.assembled()).build()
            return self._made

    def invoke(
        self,
        input: dict[str, Any],
        attributes: Keys | None = None,  # MASFactory's name
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run once: the output fields and the attributes.

        Raises: what a node raised, with a note that names the node; RuntimeError: it is not built.
        """
        self._expect_built()
        if attributes:
            self._attributes.update(attributes)
        hooks, outer = self._hooks, dict(self._attributes)
        hooks.dispatch(self.Hook.EXECUTE.BEFORE, self, outer)
        hooks.dispatch(self.Hook.FORWARD.BEFORE, self, input)
        try:
            output, after = apart(lambda: self._invoked(input, outer))
        except Exception as error:
            hooks.dispatch(self.Hook.FORWARD.ERROR, self, error, input)
            hooks.dispatch(self.Hook.EXECUTE.ERROR, self, error, outer)
            raise
        self._attributes.update(after)
        # what comes out counts as pushed, as of any node
        known = {n: v for n, v in output.items() if n in self._attributes}
        self._attributes.update(known)
        hooks.dispatch(self.Hook.FORWARD.AFTER, self, output, input)
        hooks.dispatch(self.Hook.EXECUTE.AFTER, self, None, outer)
        return output, dict(self._attributes)

    def _expect_built(self) -> None:
        if not self._is_built:
            raise RuntimeError(f'"{self.name}" is not built yet. Call build() first.')

    @the_graphs_own
    def _forward(self, input: dict[str, Any]) -> Any:  # MASFactory's name
        """Run once: the output fields."""
        return self.invoke(input)[0]

    def _invoked(
        self, fields: dict[str, Any], attributes: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        from masfactory.components.human.console import Console

        try:
            output, after = self.axil.invoke(
                fields, attributes, channel=Console(), workspace=Path.cwd()
            )
        except axil.NodeFailed as error:
            cause = error.__cause__
            if cause is None:
                raise
            cause.add_note(str(error))
            raise cause from cause.__cause__
        return dict(output), dict(after)
