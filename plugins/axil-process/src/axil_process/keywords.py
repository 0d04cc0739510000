"""Settings of ``axil_process`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from axil.plugin import EnvName, ImportPath, ReadPath
from axil_process.programs.sandbox import Wanted


class ProcessExecutorKeywords(TypedDict, total=False):
    """The settings of ``ProcessExecutor``; see ``ProcessExecutorConfig``."""

    workers: int
    """Processes at most; they are started when needed."""

    memory_megabytes: int | None
    """What each may take of addresses; Linux. None: no limit."""

    firings_per_worker: int | None
    """A process is replaced after this many bodies. None: never."""

    environment: Sequence[EnvName] | None
    """Names of the variables that processes see. None: all."""

    timeout_seconds: float | None
    """How long a body may take; then its process is killed. None: no limit."""

    output_bytes: int | None
    """What a body may send to its run in one firing, its result included. None: no limit."""

    sandbox: Wanted
    """off: bodies can do what axil can; auto: in a sandbox where one works; required: an error
    where none does; a name: that one.
    """

    reads: Sequence[ReadPath]
    """Files and folders that bodies in a sandbox read, beside the import path and the run's
    workspace.
    """

    state: ImportPath
    """Of a graph with typed state: where its class can be imported from, module:Class."""

    lanes: Sequence[str]
    """Bodies of nodes in these lanes. Without lanes: all plain functions."""


class ProcessWrapperKeywords(TypedDict, total=False):
    """The settings of ``ProcessWrapper``; see ``ProcessConfig``."""

    workers: int
    """Processes at most; they are started when needed."""

    memory_megabytes: int | None
    """What each may take of addresses; Linux. None: no limit."""

    firings_per_worker: int | None
    """A process is replaced after this many bodies. None: never."""

    environment: Sequence[EnvName] | None
    """Names of the variables that processes see. None: all."""

    timeout_seconds: float | None
    """How long a body may take; then its process is killed. None: no limit."""

    output_bytes: int | None
    """What a body may send to its run in one firing, its result included. None: no limit."""

    sandbox: Wanted
    """off: bodies can do what axil can; auto: in a sandbox where one works; required: an error
    where none does; a name: that one.
    """

    reads: Sequence[ReadPath]
    """Files and folders that bodies in a sandbox read, beside the import path and the run's
    workspace.
    """

    state: ImportPath
    """Of a graph with typed state: where its class can be imported from, module:Class."""


class SandboxExecutorKeywords(TypedDict, total=False):
    """The settings of ``SandboxExecutor``; see ``SandboxExecutorConfig``."""

    workers: int
    """Processes at most; they are started when needed."""

    memory_megabytes: int | None
    """What each may take, all together and of addresses each."""

    firings_per_worker: int | None
    """A process is replaced after this many bodies. None: never."""

    environment: Sequence[str] | None
    """Names of the variables that bodies see, beside a few without secrets."""

    timeout_seconds: float | None
    """How long a body may take; then it is killed. None: no limit."""

    output_bytes: int | None
    """What a body may send to its run in one firing, its result included. None: no limit."""

    sandbox: Wanted
    """required: in the first sandbox that works here, or an error; a name: that one, or an error;
    auto: without one where none works; off: none.
    """

    reads: Sequence[ReadPath]
    """Files and folders that bodies in a sandbox read, beside the import path and the run's
    workspace.
    """

    state: ImportPath
    """Of a graph with typed state: where its class can be imported from, module:Class."""

    lanes: Sequence[str]
    """Bodies of nodes in these lanes. Without lanes: all functions of the graph; components, such
    as agents, run where the run is.
    """


class SandboxWrapperKeywords(TypedDict, total=False):
    """The settings of ``SandboxWrapper``; see ``SandboxConfig``."""

    workers: int
    """Processes at most; they are started when needed."""

    memory_megabytes: int | None
    """What each may take, all together and of addresses each."""

    firings_per_worker: int | None
    """A process is replaced after this many bodies. None: never."""

    environment: Sequence[str] | None
    """Names of the variables that bodies see, beside a few without secrets."""

    timeout_seconds: float | None
    """How long a body may take; then it is killed. None: no limit."""

    output_bytes: int | None
    """What a body may send to its run in one firing, its result included. None: no limit."""

    sandbox: Wanted
    """required: in the first sandbox that works here, or an error; a name: that one, or an error;
    auto: without one where none works; off: none.
    """

    reads: Sequence[ReadPath]
    """Files and folders that bodies in a sandbox read, beside the import path and the run's
    workspace.
    """

    state: ImportPath
    """Of a graph with typed state: where its class can be imported from, module:Class."""
