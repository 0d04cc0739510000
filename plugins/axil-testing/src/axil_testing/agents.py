"""Fixtures for tests of workflows and agents: a script, a recording, a runner.

``axil_testing.fixtures`` has them, too. Scripts and recordings are components of axil-agent.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from axil import MISSING, ConfigError, Problem, Result, Workflow, run_sync
from axil.plugin import default_registry
from axil_files import load
from axil_testing.recorder import Recorder

Mode = Literal["none", "once", "all"]
_MODES: tuple[Mode, ...] = ("none", "once", "all")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--axil-record``."""
    parser.getgroup("axil").addoption(
        "--axil-record",
        nargs="?",
        const="all",
        choices=_MODES,
        help="cassettes: none (replay, the default), once (record those that are missing), all "
        "(record anew); or AXIL_RECORD=…",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "cassette(path): the file of the test's cassette, from the test's folder"
    )


# --------------------------------------------------------------------------------------------------


def _model(name: str) -> Any:
    return default_registry().resolve("models", name, "axil-testing")


ModelScript = Callable[..., Any]


@pytest.fixture
def model_script(request: pytest.FixtureRequest) -> Iterator[ModelScript]:
    """Answer every agent of this test from a script, whichever model it was given.

    ``script = model_script(["one", "two"])``: replies in order, the last one repeated; or rules,
    ``{"rules": […], "default": …}``; or the path of a script in JSON or YAML, from the test's
    folder. ``script.requests`` holds the requests.
    """
    with ExitStack() as stack:

        def follow(given: str | Path | Mapping[str, Any] | Sequence[Any] = (), **more: Any) -> Any:
            scripted = _model("scripted")
            if isinstance(given, (str, Path)):
                script = scripted.from_file(request.path.parent / given)
            else:
                script = scripted(given, **more)
            stack.enter_context(script.everywhere())
            return script

        yield follow


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Cassette:
    """The place of a test's exchanges with models."""

    path: Path
    is_recording: bool
    """Models are asked, and what they answer is written; false: the file answers."""


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """Answer every agent of this test from a recording.

    It is ``cassettes/<the test's file>/<test>.jsonl`` beside the file, or the path of
    ``@pytest.mark.cassette(path)``. A request that was not recorded is an error with a diff.
    ``pytest --axil-record`` (or ``AXIL_RECORD=all``) asks real models and records anew,
    ``--axil-record=once`` only where there is no recording. An empty recording replaces none.
    """
    path = _cassette(request)
    mode = _mode(request.config)
    if mode == "none" or (mode == "once" and path.exists()):
        with _model("replay")(path).everywhere():
            yield Cassette(path=path, is_recording=False)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    try:
        with _model("replay").recording(new):
            yield Cassette(path=path, is_recording=True)
        if new.stat().st_size:
            new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _cassette(request: pytest.FixtureRequest) -> Path:
    marker = cast("pytest.Mark | None", request.node.get_closest_marker("cassette"))
    if marker is not None and marker.args:
        return request.path.parent / str(marker.args[0])
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in str(request.node.name))
    return request.path.parent / "cassettes" / request.path.stem / f"{name}.jsonl"


def _mode(config: pytest.Config) -> Mode:
    """Return the flag, else the environment.

    Raises: ConfigError (AX712): the environment names no mode.
    """
    given = config.getoption("axil_record", default=None) or os.environ.get("AXIL_RECORD") or "none"
    if given not in _MODES:
        raise ConfigError(
            Problem("AX712", "AXIL_RECORD", f'expected none, once or all, found "{given}".')
        )
    return given


# --------------------------------------------------------------------------------------------------


class _Answers:
    """A channel with these answers, then none."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self._left = deque(answers)

    async def ask(self, question: Any) -> Any:
        return self._left.popleft() if self._left else MISSING


@dataclass
class Runner:
    """Runs workflow files and graphs, and records what happened."""

    folder: Path
    """The folder in which files are looked for."""
    recorder: Recorder = field(default_factory=Recorder)
    """The trace of the last run."""

    def __call__(
        self,
        what: str | Path | Workflow,
        input: Any = None,
        *,
        answers: Sequence[Any] | None = None,
        **options: Any,
    ) -> Result:
        """Run to the end.

        Args:
            what: a file, or a graph that is built.
            input: a text, or fields; None: an empty message, or no fields.
            answers: answers to questions, in their order; at a question without one the run pauses.
            options: ``vars``, ``allow_code`` and ``functions`` (a folder, from the test's) for a
                file; all others are the run's.
        Raises: NodeFailed: a node failed; SpecError and ConfigError: it cannot run.
        """
        observers = [*options.pop("observers", ()), self.recorder]
        known = ("vars", "allow_code", "functions")
        reading = {name: options.pop(name) for name in known if name in options}
        if "functions" in reading:
            reading["functions"] = self.folder / reading["functions"]
        if answers is not None:
            options["channel"] = _Answers(answers)
        if isinstance(what, (str, Path)):
            if reading.get("allow_code"):
                options.setdefault("allow", frozenset({"code"}))
            what = load(self.folder / what, **reading)
        elif reading:
            raise TypeError(f"{', '.join(reading)}: only files are read with these.")
        if input is None and what.plan.graph.spec.payload == "messages":
            input = ""  # as the command does: a graph of messages begins with one
        return run_sync(what.run(input, observers=observers, **options))


@pytest.fixture
def workflow(request: pytest.FixtureRequest) -> Runner:
    """Run a workflow file of the test's folder, or a graph: ``workflow("a.yaml", "hello").output``.

    ``workflow.recorder`` knows what fired: ``workflow.recorder.order() == ["plan", "write"]``.
    """
    return Runner(request.path.parent)
