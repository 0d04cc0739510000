"""The picture of a graph in a notebook, live: its nodes change colour while a run is under way.

A graph that a cell shows, or whose first run begins in a cell, has one picture. Every run of the
graph changes that picture, wherever the run is started. A terminal cannot change what it has
shown, so all this is for shells with a kernel (Jupyter and the like).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from axil import Activation, AxilError
from axil.plugin import has_failed
from axil_journals.pictures.drawing import as_text, notebook_picture
from axil_journals.pictures.vectors import as_svg

if TYPE_CHECKING:
    from axil import Workflow
    from axil.plugin import Plan

_LEAST_SECONDS: Final = 0.1
"""Between two changes of a picture."""
_SHARE: Final = 10
"""A picture that takes long to draw is drawn more seldom: it waits so many times as long."""


class LivePicture:
    """The picture of one graph in a notebook."""

    def __init__(self, plan: Plan) -> None:
        """Show the picture. Raises: ImportError: IPython is not installed."""
        display: Any = import_module("IPython.display").display
        self.plan = plan
        self.run: object = None
        """The run that is shown: the one that began last."""
        self._text = "\n".join(as_text(plan))
        self._handle: Any = display(self._bundle({}), raw=True, display_id=True)

    def draw(self, states: Mapping[str, str]) -> None:
        """Change the picture."""
        self._handle.update(self._bundle(states), raw=True)

    def _bundle(self, states: Mapping[str, str]) -> dict[str, str]:
        return {
            "text/plain": self._text,
            "image/svg+xml": "\n".join(as_svg(self.plan, states)),
        }


class RunPicture:
    """An observer that shows one run in the picture of its graph."""

    def __init__(self, picture: LivePicture) -> None:
        self._picture = picture
        self._states: dict[str, str] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._cost = 0.0

    def run_started(self, run_id: str) -> None:
        self._picture.run = self
        self._draw()

    def firing_started(self, activation: Activation) -> None:
        self._note(activation, "running")

    def firing_finished(self, activation: Activation, output: Any) -> None:
        self._note(activation, "failed" if has_failed(output) else "done")

    def firing_failed(self, activation: Activation) -> None:
        self._note(activation, "failed")

    def firing_skipped(self, activation: Activation) -> None:
        self._note(activation, "skipped")

    def run_finished(self, result: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for path, state in self._states.items():
            if state == "running":  # a run that pauses leaves its firings as they are
                self._states[path] = "skipped"
        for question in result.questions:
            self._states[question.node] = "waiting"
        self._draw()

    def _note(self, activation: Activation, state: str) -> None:
        self._states[path_in_plan(activation)] = state
        if self._timer is None:
            wait = max(_LEAST_SECONDS, _SHARE * self._cost)
            self._timer = asyncio.get_running_loop().call_later(wait, self._draw)

    def _draw(self) -> None:
        self._timer = None
        if self._picture.run is self:
            begun = time.perf_counter()
            self._picture.draw(self._states)
            self._cost = time.perf_counter() - begun


def path_in_plan(activation: Activation) -> str:
    """Return the path of a node in the picture: through graphs, without rounds, and without what
    wrappers put around it.

    >>> path_in_plan(Activation(("team", "#try:1", "#inside", "team"), "write"))
    'team/write'
    """
    parts: list[str] = []
    is_again = False
    for part in (*activation.frame, activation.node):
        if part == "#inside":
            is_again = True
        elif isinstance(part, str) and not part.startswith(("cycle(", "#")):
            if not is_again:
                parts.append(part)
            is_again = False
    return "/".join(parts)


_pictures: WeakKeyDictionary[Workflow[Any], LivePicture] = WeakKeyDictionary()


def has_kernel() -> bool:
    """Return whether this process is a notebook's: an IPython shell with a kernel."""
    module = sys.modules.get("IPython")
    shell: Any = module.get_ipython() if module is not None else None
    return getattr(shell, "kernel", None) is not None


def show(workflow: Workflow[Any]) -> None:
    """Show the picture of a graph in a notebook: the one that its runs change from now on.

    Raises: NotImplementedError: this is no notebook, or the graph has no plan; what it has instead
    is shown by its ``_repr_mimebundle_``.
    """
    if not has_kernel():
        raise NotImplementedError
    try:
        _pictures[workflow] = LivePicture(workflow.plan)
    except AxilError:
        raise NotImplementedError from None


def watch(workflow: Workflow[Any]) -> RunPicture | None:
    """Return an observer that shows a run of the graph in its picture, which is shown now if it was
    not yet; None: this is no notebook.
    """
    if not has_kernel():
        return None
    if workflow not in _pictures:
        _pictures[workflow] = LivePicture(workflow.plan)
    return RunPicture(_pictures[workflow])


class Notebook:
    """The component ``notebook``: what a notebook shows of a workflow."""

    bundle = staticmethod(notebook_picture)
    show = staticmethod(show)
    watch = staticmethod(watch)


__all__ = ["LivePicture", "Notebook", "RunPicture", "has_kernel", "path_in_plan", "show", "watch"]
