"""``sandbox``: bodies of nodes in processes of their own, each in a sandbox.

The executor takes the bodies of a run, the wrapper that of one node. Both are ``process`` with
other defaults: one firing per process, no variables of the environment, a sandbox or an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Unpack

from pydantic import Field

from axil import NodeSpec
from axil.plugin import Body
from axil_process.config import ProcessConfig, ProcessExecutorConfig
from axil_process.executor import ProcessExecutor
from axil_process.programs.sandbox import Wanted
from axil_process.wrapper import ProcessWrapper

if TYPE_CHECKING:
    from axil_process.keywords import SandboxExecutorKeywords, SandboxWrapperKeywords


class SandboxConfig(ProcessConfig):
    """Processes for bodies, in a sandbox."""

    sandbox: Wanted = Field(
        "required",
        description="required: in the first sandbox that works here, or an error; a name: that "
        "one, or an error; auto: without one where none works; off: none.",
    )
    memory_megabytes: int | None = Field(
        2048, ge=64, description="What each may take, all together and of addresses each."
    )
    firings_per_worker: int | None = Field(
        1, ge=1, description="A process is replaced after this many bodies. None: never."
    )
    environment: tuple[str, ...] | None = Field(
        (), description="Names of the variables that bodies see, beside a few without secrets."
    )
    timeout_seconds: float | None = Field(
        300,
        gt=0,
        allow_inf_nan=False,
        description="How long a body may take; then it is killed. None: no limit.",
    )
    output_bytes: int | None = Field(
        16 << 20,
        ge=1024,
        description="What a body may send to its run in one firing, its result included. "
        "None: no limit.",
    )


class SandboxExecutorConfig(SandboxConfig, ProcessExecutorConfig):
    """The bodies that run in a sandbox, and the settings of their processes."""

    lanes: tuple[str, ...] = Field(
        (),
        description="Bodies of nodes in these lanes. Without lanes: all functions of the graph; "
        "components, such as agents, run where the run is.",
    )


class SandboxExecutor(ProcessExecutor):
    """The executor ``sandbox``: functions, or all bodies in certain lanes, run in a sandbox."""

    type: ClassVar[str] = "sandbox"
    Config: ClassVar[type[ProcessExecutorConfig]] = SandboxExecutorConfig

    if TYPE_CHECKING:

        def __init__(
            self,
            config: SandboxExecutorConfig | Mapping[str, object] | None = None,
            /,
            **settings: Unpack[SandboxExecutorKeywords],
        ) -> None: ...

    def takes(self, node: NodeSpec, body: Body) -> bool:
        """Return whether the body of a node runs in the sandbox, where no lanes are given."""
        return node.use is None and body.mode != "scope"


class SandboxWrapper(ProcessWrapper):
    """The wrapper ``sandbox``: a node's body runs in a sandbox."""

    type: ClassVar[str] = "sandbox"
    Config: ClassVar[type[ProcessConfig]] = SandboxConfig
    examples = ({}, {"timeout_seconds": 60, "memory_megabytes": 512})

    if TYPE_CHECKING:

        def __init__(
            self,
            config: SandboxConfig | Mapping[str, object] | None = None,
            /,
            **settings: Unpack[SandboxWrapperKeywords],
        ) -> None: ...
