"""Tools that make videos, by the programs ``manim`` and ``ffmpeg``: ``video``, and each by name."""

from __future__ import annotations

import ast
import secrets
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from axil_workspace.code import Programs, permitted, program
from axil_workspace.entries import Entry, missing
from axil_workspace.errors import ProgramFault, TextFault
from axil_workspace.text import decoded
from axil_workspace.toolset import one_of
from axil_workspace.workspace import Workspace


class Video(Programs):
    """``video``: render animations and put videos together."""

    class Config(Programs.Config, frozen=True):
        """The time limit of a program, and its other limits."""

        timeout_seconds: int | float = Field(
            default=900, gt=0, allow_inf_nan=False, description="The longest time it may take."
        )
        cpu_seconds: int = Field(default=3600, ge=1, description="Processor time of each process.")
        memory_bytes: int = Field(
            default=8 << 30,
            ge=16 << 20,
            description="The memory of all processes together, and the address space of each.",
        )
        file_bytes: int = Field(
            default=4 << 30, ge=1, description="The largest size of a file that the program writes."
        )

    provides: ClassVar = ("render_manim", "concat_videos")

    @property
    def wants(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The words that a file asks leave for."""
        programs = {"render_manim": "program:manim", "concat_videos": "program:ffmpeg"}
        return tuple(programs[name] for name in self.config.only or self.provides)

    async def render_manim(
        self,
        ctx: Any,
        script_path: Annotated[str, "a Python file inside the workspace"],
        quality: Annotated[Literal["l", "m", "h", "p", "k"], "from l (low) to k (4K)"] = "h",
    ) -> Any:
        """Render the first scene of a Manim script to a video beside it."""
        permitted(ctx, "program:manim", "run programs")
        place = Workspace.of(ctx)
        found = place.stat(script_path)
        if found is None:
            raise missing(script_path)
        scene = _first_class(decoded(place.read(script_path), "auto", script_path)[0], script_path)
        folder = f"media-{secrets.token_hex(4)}"
        options = ("--media_dir", folder, f"-q{quality}")
        what = (str(place.resolve(script_path)), scene)
        command = [program("manim", "rendering"), "render", *options, *what]
        try:
            ended = await self.started(ctx, command, self.bounds(), word="program:manim")
            if ended.exit_code != 0:
                why = ended.stderr or ended.stopped
                message = f"{scene} of {script_path} was not rendered: {why}."
                raise ProgramFault("AX889", message, "Correct it.")
            made = [each for each in place.entries(folder, depth=10) if each.name == f"{scene}.mp4"]
            if not made:
                message = f"manim produced no video of {scene}."
                raise ProgramFault("AX889", message, "Correct the script.")
            target = _beside(found.path, f"{scene}.mp4")
            return {"path": place.move(made[0].path, target, overwrite=True).path}
        finally:
            place.delete(folder, recursive=True)

    async def concat_videos(
        self, ctx: Any, video_paths: Annotated[list[str], Field(min_length=1)]
    ) -> Any:
        """Put videos one after the other, into combined_video.mp4 beside the first."""
        permitted(ctx, "program:ffmpeg", "run programs")
        place = Workspace.of(ctx)
        found: list[Entry] = []
        for path in video_paths:
            entry = place.stat(path)
            if entry is None:
                raise missing(path)
            found.append(entry)
        paths = [str(place.resolve(path)).replace("'", "'\\''") for path in video_paths]
        target = _beside(found[0].path, "combined_video.mp4")
        listing = f"concat-{secrets.token_hex(4)}.txt"
        place.write(listing, "".join(f"file '{path}'\n" for path in paths).encode())
        try:
            options = ("-nostdin", "-y", "-f", "concat", "-safe", "0", "-i", listing, "-c", "copy")
            command = [program("ffmpeg", "putting videos together"), *options, target]
            ended = await self.started(ctx, command, self.bounds(), word="program:ffmpeg")
        finally:
            place.delete(listing)
        if ended.exit_code != 0:
            message = f"the videos were not joined: {ended.stderr or ended.stopped}."
            raise ProgramFault("AX889", message, "Check that each video plays.")
        return {"path": target}


def _beside(path: str, name: str) -> str:
    """Return the path of ``name`` in the folder of ``path``."""
    return path.removesuffix(path.rpartition("/")[2]) + name


def _first_class(source: str, path: str) -> str:
    """Return the name of the first class. Raises: TextFault (AX888): there is none."""
    try:
        names = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    except SyntaxError as error:
        message = f"{path}:{error.lineno} is not valid Python: {error.msg}."
        raise TextFault("AX888", message, "Correct it.") from error
    if not names:
        raise TextFault("AX888", f"{path} defines no scene.", "Define a subclass of manim.Scene.")
    return names[0]


# Each tool as a component of its own, with the same config.
render_manim = one_of(Video, "render_manim")
concat_videos = one_of(Video, "concat_videos")
