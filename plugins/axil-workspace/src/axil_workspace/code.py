"""Tools that run programs in the run's workspace: ``code``, and each by its own name.

Only where the caller of the run allowed code.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from axil_process import Wanted
from axil_workspace.errors import NotAllowed, ProgramFault
from axil_workspace.process import Bounds, Ended, run_bounded
from axil_workspace.toolset import Tools, ToolsConfig, again, one_of
from axil_workspace.workspace import Workspace

_START: Final = (
    "import runpy, sys; del sys.argv[0]; "
    "sys.path.insert(0, ''); runpy.run_path(sys.argv[0], run_name='__main__')"
)
"""Isolated from the user's settings, but what is in the workspace can be imported."""
_STEERING: Final = re.compile(r"PATH|(LD|DYLD)_.*")
"""Variables of the environment that change which program starts, or what is loaded into it."""
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Programs(Tools):
    """The shared settings of tools that run programs."""

    class Config(ToolsConfig, frozen=True):
        """The tools, and the limits of a program."""

        timeout_seconds: int | float = Field(
            default=60, gt=0, allow_inf_nan=False, description="The longest time a program may run."
        )
        cpu_seconds: int = Field(default=60, ge=1, description="Processor time of each process.")
        memory_bytes: int = Field(
            default=Bounds().memory_bytes,
            ge=16 << 20,
            description="The memory of all processes together, and the address space of each.",
        )
        file_bytes: int = Field(
            default=Bounds().file_bytes,
            ge=1,
            description="The largest size of a file that the program writes.",
        )
        processes: int = Field(
            default=64, ge=1, description="The largest number of processes at the same time."
        )
        output_bytes: int = Field(
            default=100_000, ge=1, description="The number of bytes kept of stdout and of stderr."
        )
        env: dict[str, str] = Field(
            default_factory=dict[str, str], description="Additional environment variables."
        )

    wants: tuple[str, ...] = ("code",)
    """The words that a file asks leave for."""

    def bounds(self, timeout_seconds: float | None = None) -> Bounds:
        """Return the limits of a program; a request for a shorter time is granted."""
        config = self.config
        return Bounds(
            timeout_seconds=min(config.timeout_seconds, timeout_seconds or config.timeout_seconds),
            cpu_seconds=config.cpu_seconds,
            memory_bytes=config.memory_bytes,
            file_bytes=config.file_bytes,
            processes=config.processes,
            output_bytes=config.output_bytes,
        )

    async def started(
        self,
        ctx: Any,
        command: Sequence[str],
        bounds: Bounds,
        *,
        given: str = "",
        reads: Sequence[Path] = (),
        word: str = "code",
    ) -> Ended:
        """Run a program in the workspace, if ``word`` is allowed; in the config's sandbox.

        ``reads``: what it reads outside the workspace. Raises: NotAllowed (AX876); WorkspaceError
        (AX874); ProgramFault (AX879); ComponentBlocked (AX621).
        """
        permitted(ctx, word, "run programs")
        if not ctx.allows("program"):
            command = self._exactly(command)
        return await run_bounded(
            command,
            Workspace.of(ctx).root,
            bounds,
            env=self.config.env,
            given=given,
            sandbox=getattr(self.config, "sandbox", "off"),
            reads=reads,
        )

    def _exactly(self, command: Sequence[str]) -> Sequence[str]:
        """Return the command with the whole path of its program, which is looked up as axil's own
        process does: what lies in the workspace is not found.

        Raises: NotAllowed (AX876): settings of the file would start another program.
        """
        steering = [name for name in self.config.env if _STEERING.fullmatch(name)]
        if steering:
            message = f"the variable {steering[0]} can start other programs than those allowed."
            hint = "Remove it, or allow all programs: --allow program."
            raise NotAllowed("AX876", message, hint)
        if os.path.isabs(command[0]):
            return command
        found = None if os.path.dirname(command[0]) else shutil.which(command[0], path=_path())
        if found is None:
            message = f'"{shown(command[0])}" is not the name of a program.'
            raise ProgramFault("AX879", message, "Write the program's name without a folder.")
        return [found, *command[1:]]


class Code(Programs):
    """``code``: run Python and other programs in the run's workspace."""

    class Config(Programs.Config, frozen=True):
        """The programs, and their limits."""

        programs: tuple[str, ...] = Field(
            default=(), description="The programs that run_command may start; empty: all."
        )
        sandbox: Wanted = Field(
            default="auto",
            description="auto: in a sandbox where one works; required: an error where none does; "
            "off: none.",
        )

    provides: ClassVar = ("run_code", "run_command")

    @property
    def wants(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The words that a file asks leave for: its programs, if it runs no others."""
        names = self.config.only or self.provides
        if "run_code" in names or not self.config.programs:
            return ("code",)
        return tuple(f"program:{each}" for each in self.config.programs)

    @again("external")  # the program's effects are unknown
    async def run_code(
        self, ctx: object, code: Annotated[str, "a Python program"], timeout_seconds: Seconds = 60
    ) -> object:
        """Run a Python program in the workspace; what it prints is the result.

        It can read and write the files there.

        Args:
            timeout_seconds: how long it may run
        """
        bounds = self.bounds(timeout_seconds)
        with tempfile.TemporaryDirectory(prefix="axil-") as temporary:
            program = Path(temporary) / "program.py"
            program.write_text(code + "\n", "utf-8", errors="replace")
            command = [sys.executable, "-I", "-B", "-X", "utf8", "-c", _START, str(program)]
            ended = await self.started(ctx, command, bounds, reads=[program])
        return ended.as_data(bounds)

    @again("external")
    async def run_command(
        self,
        ctx: object,
        command: Annotated[
            list[str],
            Field(
                min_length=1,
                description="the program and its arguments, as separate items; no shell is used",
            ),
        ],
        timeout_seconds: Seconds = 60,
        stdin: Annotated[str, "the text on the program's standard input"] = "",
    ) -> object:
        """Run a program in the workspace: give the program and its arguments as a list.

        Args:
            timeout_seconds: how long it may run
        """
        if self.config.programs and command[0] not in self.config.programs:
            hint = f"Available: {', '.join(self.config.programs)}."
            raise NotAllowed("AX876", f'"{command[0]}" may not be started here.', hint)
        bounds = self.bounds(timeout_seconds)
        word = f"program:{command[0]}"
        return (await self.started(ctx, command, bounds, given=stdin, word=word)).as_data(bounds)


def permitted(ctx: Any, what: str, to_do: str) -> None:
    """Raises: NotAllowed (AX876): the caller of the run did not allow ``what``."""
    if not ctx.allows(what):
        word = shown(what)
        hint = f'Allow it: allow={{"{word}"}}, or axil run --allow {word}.'
        raise NotAllowed("AX876", f"this run may not {to_do}.", hint)


def shown(text: str) -> str:
    """Return a text of a model as messages show it: on one line, and not without end."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:200])


def _path() -> str:
    """Return the folders of this process's programs; relative ones are in the workspace."""
    given = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(each for each in given if os.path.isabs(each))


def program(name: str, needed_for: str) -> str:
    """Return where a program is. Raises: ProgramFault (AX879): it is not installed."""
    found = shutil.which(name, path=_path())
    if found is None:
        message = f"{needed_for} needs the program {name}, which is not installed here."
        raise ProgramFault("AX879", message, f"Install {name}.")
    return found


# Each tool as a component of its own, with the same config.
run_code = one_of(Code, "run_code")
run_command = one_of(Code, "run_command")
