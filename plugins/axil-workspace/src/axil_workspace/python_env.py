"""Tools for a Python project in the run's workspace, by the program ``uv``: ``python_env``, and
each by its own name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from axil_workspace.code import Programs, Seconds, permitted, program
from axil_workspace.errors import TextFault
from axil_workspace.toolset import again, one_of
from axil_workspace.workspace import Workspace

_PACKAGE: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9_.\-]*(\[[A-Za-z0-9_.,\- "
    r"]*\])?\s*+([<>=!~]=?=?\s*+[A-Za-z0-9_.*+!\-]++\s*+,?\s*+)*+"
)
_VERSION: Final = re.compile(r"(cpython@?|pypy@?)?\d+(\.\d+){0,2}")


class PythonEnv(Programs):
    """``python_env``: make a Python environment in the workspace, install packages into it, and run
    programs with it.
    """

    class Config(Programs.Config, frozen=True):
        """The time limit of a program, and its other limits."""

        timeout_seconds: int | float = Field(
            default=600, gt=0, allow_inf_nan=False, description="The longest time a step may take."
        )
        cpu_seconds: int = Field(default=600, ge=1, description="Processor time of each process.")
        memory_bytes: int = Field(
            default=8 << 30,
            ge=16 << 20,
            description="The memory of all processes together, and the address space of each.",
        )
        processes: int = Field(
            default=128, ge=1, description="The largest number of processes at the same time."
        )

    provides: ClassVar = ("init_python_env", "install_python_packages", "uv_run")

    @property
    def wants(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The words that a file asks leave for."""
        installs = "install_python_packages" in (self.config.only or self.provides)
        return ("program:uv", *(("network",) if installs else ()))

    async def init_python_env(
        self,
        ctx: Any,
        python_version: Annotated[str | None, "like 3.12; without it the default version"] = None,
    ) -> Any:
        """Make a Python project with its own environment in the workspace, if there is none."""
        if python_version is not None and not _VERSION.fullmatch(python_version.strip()):
            message = f'"{python_version}" is not a version of Python.'
            raise TextFault("AX888", message, "Write one like 3.12.")
        steps = _project(ctx)
        if not _has(ctx, ".venv"):
            version = ("--python", python_version.strip()) if python_version else ()
            steps.append(("venv", *version))
        return await self._steps(ctx, steps)

    async def install_python_packages(
        self,
        ctx: Any,
        packages: Annotated[list[str], Field(min_length=1, description="like numpy, or pandas>=2")],
        upgrade: bool = False,
    ) -> Any:
        """Install Python packages into the workspace's environment.

        Args:
            upgrade: take newer versions of what is there
        """
        wrong = [each for each in packages if not _PACKAGE.fullmatch(each.strip())]
        if wrong:
            hint = "Write names, with a version where one is needed: pandas>=2."
            raise TextFault("AX888", f'"{wrong[0]}" is not the name of a package.', hint)
        permitted(ctx, "network", "install packages")
        options = ("--upgrade", "--") if upgrade else ("--",)
        added = ("add", *options, *(each.strip() for each in packages))
        return await self._steps(ctx, [*_project(ctx), added])

    @again("external")
    async def uv_run(
        self,
        ctx: Any,
        module: Annotated[str | None, "a module; give either a module or a script"] = None,
        script: Annotated[str | None, "a path inside the workspace"] = None,
        args: list[str] | None = None,
        env: Annotated[dict[str, str] | None, "additional environment variables"] = None,
        timeout_seconds: Seconds | None = None,
    ) -> Any:
        """Run a module or a script with the workspace's Python environment.

        Args:
            args: its arguments
            timeout_seconds: how long it may run
        """
        if (module is None) == (script is None):
            message = "expected either a module or a script."
            raise TextFault("AX888", message, "Set script, like main.py.")
        if script is not None:
            what = ["python", str(Workspace.of(ctx).resolve(script))]
        else:
            what = ["python", "-m", str(module)]
        set_first = ["env", *(f"{name}={value}" for name, value in env.items())] if env else []
        arguments = ["run", "--", *set_first, *what, *(args or ())]
        return await self._run(ctx, arguments, timeout_seconds)

    async def _steps(self, ctx: Any, steps: Sequence[Sequence[str]]) -> Any:
        """Run the steps until one fails."""
        done: list[dict[str, Any]] = []
        for step in steps:
            done.append({"step": " ".join(("uv", *step)), **await self._run(ctx, step)})
            if done[-1]["exit_code"] != 0:
                break
        return {"ok": all(each["exit_code"] == 0 for each in done), "steps": done}

    async def _run(
        self, ctx: Any, arguments: Sequence[str], timeout_seconds: float | None = None
    ) -> dict[str, Any]:
        permitted(ctx, "program:uv", "run programs")
        bounds = self.bounds(timeout_seconds)
        command = [program("uv", "this tool"), *arguments]
        return (await self.started(ctx, command, bounds, word="program:uv")).as_data(bounds)


def _project(ctx: Any) -> list[tuple[str, ...]]:
    """Return the steps that make a project, if there is none."""
    return [] if _has(ctx, "pyproject.toml") else [("init", "--bare", "--no-workspace")]


def _has(ctx: Any, name: str) -> bool:
    return Workspace.of(ctx).stat(name) is not None


# Each tool as a component of its own, with the same config.
init_python_env = one_of(PythonEnv, "init_python_env")
install_python_packages = one_of(PythonEnv, "install_python_packages")
uv_run = one_of(PythonEnv, "uv_run")
