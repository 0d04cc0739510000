"""Tools that work on the files of a run: ``files``, and each by its own name."""

from __future__ import annotations

import base64
import datetime
import json
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from axil_workspace.entries import Entry, missing
from axil_workspace.errors import TextFault
from axil_workspace.search import Budget, Wanted, search
from axil_workspace.text import Newline, decoded, encoded, exchanged, lines_of, with_lines
from axil_workspace.toolset import Tools, ToolsConfig, again, one_of
from axil_workspace.workspace import Limits, Workspace

Path = Annotated[str, "a path inside the workspace"]
Everywhere = Annotated[bool, "replace every occurrence; otherwise the text must occur exactly once"]
Count = Annotated[int, Field(ge=1, le=10_000)]
_SEEN: Final = {
    **dict.fromkeys(("image/png", "image/jpeg", "image/gif", "image/webp"), "image"),
    **dict.fromkeys(("audio/mpeg", "audio/wav", "audio/x-wav"), "audio"),
    "application/pdf": "file",
}
"""Kinds of files that models are shown, as the types of content parts."""


class Files(Tools):
    """``files``: look at, read, write, search and arrange the files of the run's workspace."""

    class Config(ToolsConfig, frozen=True):
        """The tools, and how much they may read and write."""

        file_bytes: int = Field(
            default=Limits().file_bytes,
            ge=1,
            description="The largest size of one file that is read or written.",
        )
        total_bytes: int = Field(
            default=Limits().total_bytes, ge=1, description="The largest total size of all files."
        )
        files: int = Field(
            default=Limits().files, ge=1, description="The largest number of files and folders."
        )
        shown_characters: int = Field(
            default=200_000,
            ge=1,
            description="The largest number of characters that load_file returns.",
        )
        seen_bytes: int = Field(
            default=5_000_000,
            ge=1,
            description="The largest size of an image, a recording or a PDF that load_file shows.",
        )
        search_seconds: int | float = Field(
            default=5, gt=0, allow_inf_nan=False, description="The longest time a search may take."
        )

    provides: ClassVar = (
        *("list_files", "list_folder", "describe_file", "read_text", "read_lines", "load_file"),
        *("search_files", "write_file"),
        *("edit_file", "edit_lines", "create_folder", "copy_path", "move_path", "delete_path"),
    )

    def place(self, ctx: object) -> Workspace:
        """Return the run's workspace. Raises: WorkspaceError (AX874)."""
        config = self.config
        limits = Limits(
            file_bytes=config.file_bytes, total_bytes=config.total_bytes, files=config.files
        )
        return Workspace.of(ctx, limits)

    def list_files(
        self,
        ctx: object,
        path: Path = ".",
        recursive: bool = True,
        limit: Count = 200,
        include_hidden: bool = False,
    ) -> object:
        """List the files that there are, folders included, with their sizes in bytes.

        Args:
            recursive: also what is in folders
            limit: how many at most
            include_hidden: also names that begin with a dot
        """
        return _listing(self.place(ctx), path, 100 if recursive else 1, limit, include_hidden)

    def list_folder(
        self,
        ctx: object,
        path: Path = ".",
        recursive: bool = False,
        max_depth: Annotated[int, Field(ge=1, le=100)] = 3,
        include_hidden: bool = False,
        limit: Count = 500,
    ) -> object:
        """List what is in one folder.

        Args:
            recursive: also what is in its folders, down to max_depth
            max_depth: how deep; 1 is the folder itself
            include_hidden: also names that begin with a dot
            limit: how many at most
        """
        return _listing(self.place(ctx), path, max_depth if recursive else 1, limit, include_hidden)

    def describe_file(self, ctx: object, path: Path) -> dict[str, Any]:
        """Say what a file is: size in bytes, media type, SHA-256, lines if it is a text, when it
        was changed.
        """
        place = self.place(ctx)
        found = _there(place, path)
        data: dict[str, Any] = {"path": found.path or ".", "kind": found.kind}
        if found.kind == "file":
            data |= {"size": found.size, "media_type": found.media_type}
            data["sha256"] = place.sha256(path)
            try:
                data["lines"] = len(lines_of(decoded(place.read(path), "auto", path)[0]))
            except TextFault:
                data["lines"] = None
        modified = datetime.datetime.fromtimestamp(found.modified, datetime.UTC)
        return {**data, "modified": modified.isoformat(timespec="seconds")}

    def read_text(
        self,
        ctx: object,
        path: Path,
        offset: Annotated[int, Field(ge=0)] = 0,
        limit: Annotated[int, Field(ge=1)] = 4000,
        encoding: str = "auto",
    ) -> str:
        """Read a part of a text file, counted in characters.

        Args:
            offset: the character to begin with, from 0
            limit: how many characters at most
            encoding: the encoding, or auto
        """
        text, _ = decoded(self.place(ctx).read(path), encoding, path)
        end = offset + limit
        if offset == 0 and end >= len(text):
            return text
        rest = f"; continue with offset={end}" if end < len(text) else ""
        shown = f"[characters {offset} to {min(end, len(text))} of {len(text)}{rest}]"
        return f"{text[offset:end]}\n{shown}"

    def read_lines(
        self,
        ctx: object,
        path: Path,
        start_line: Annotated[int, Field(ge=1)] = 1,
        line_count: Count = 40,
        inline_line_numbers: bool = False,
        encoding: str = "auto",
    ) -> str:
        """Read some lines of a text file.

        Args:
            start_line: the first line, from 1
            line_count: how many lines at most
            inline_line_numbers: put the number before each line
            encoding: the encoding, or auto
        """
        lines = lines_of(decoded(self.place(ctx).read(path), encoding, path)[0])
        if start_line > max(1, len(lines)):
            message = f'"{path}" has {len(lines)} lines, so line {start_line} does not exist.'
            raise TextFault("AX882", message, "Lines are numbered from 1.")
        chosen = lines[start_line - 1 : start_line - 1 + line_count]
        last = start_line + len(chosen) - 1
        if inline_line_numbers:
            chosen = [f"{number}: {line}" for number, line in enumerate(chosen, start_line)]
        shown = "".join(chosen)
        if start_line == 1 and last >= len(lines):
            return shown
        rest = f"; continue with start_line={last + 1}" if last < len(lines) else ""
        separator = "" if shown.endswith("\n") else "\n"
        return f"{shown}{separator}[lines {start_line} to {last} of {len(lines)}{rest}]"

    def load_file(
        self,
        ctx: object,
        path_or_id: Annotated[str, "a path inside the workspace, or the name of an attachment"],
    ) -> object:
        """Read a whole text file, or an attachment.

        An image, a recording or a PDF is shown; of other files it says what they are.
        """
        place = self.place(ctx)
        path = path_or_id
        if place.stat(path) is None and place.stat(f"attachments/{path_or_id}") is not None:
            path = f"attachments/{path_or_id}"
        try:
            text, _ = decoded(place.read(path), "auto", path)
        except TextFault:
            return self._seen(ctx, path)
        most = self.config.shown_characters
        if len(text) <= most:
            return text
        return f"{text[:most]}\n[characters 0 to {most} of {len(text)}; read_text gives the rest]"

    def _seen(self, ctx: object, path: str) -> object:
        """Return the description of a file, and the file itself if models can be shown its kind."""
        report = self.describe_file(ctx, path)
        kind = _SEEN.get(report["media_type"])
        if kind is None:
            return report
        if report["size"] > self.config.seen_bytes:
            why = f"it has more than {self.config.seen_bytes} bytes"
            return {**report, "shown": False, "why": why}
        part = {"type": kind, "media_type": report["media_type"], "name": path.rpartition("/")[2]}
        part["data"] = base64.b64encode(self.place(ctx).read(path)).decode("ascii")
        return [{"type": "text", "text": json.dumps(report, ensure_ascii=False)}, part]

    def search_files(
        self,
        ctx: object,
        pattern: Annotated[str, "a regular expression, or a plain text"],
        globs: list[str] | None = None,
        exclude_globs: list[str] | None = None,
        use_regex: bool = True,
        case_sensitive: bool = False,
        max_results: Count = 200,
        before_context: Annotated[int, Field(ge=0, le=20)] = 2,
        after_context: Annotated[int, Field(ge=0, le=20)] = 2,
        include_hidden: bool = False,
    ) -> object:
        """Find lines that match, in all text files.

        Args:
            globs: only files that match one of these, like *.py or src/**/*.md
            exclude_globs: not these
            use_regex: false: the pattern is a plain text
            case_sensitive: tell upper case from lower case
            max_results: how many lines at most
            before_context: how many lines before one that matches
            after_context: how many lines after it
            include_hidden: also files whose names begin with a dot
        """
        wanted = Wanted(
            pattern=pattern,
            globs=globs or (),
            without=exclude_globs or (),
            is_regex=use_regex,
            case_sensitive=case_sensitive,
            most=max_results,
            before=before_context,
            after=after_context,
            hidden=include_hidden,
        )
        found = search(self.place(ctx), wanted, Budget(self.config.search_seconds))
        data: dict[str, Any] = {
            "matches": found.matches,
            "limited": found.limited,
            "searched_files": found.searched,
        }
        return data | ({"passed_over": found.passed_over} if found.passed_over else {})

    @again(lambda arguments: "external" if arguments.get("mode") == "append" else "idempotent")
    def write_file(
        self,
        ctx: object,
        path: Path,
        content: str,
        encoding: str = "utf-8",
        mode: Literal["overwrite", "append"] = "overwrite",
    ) -> object:
        """Write a text file, or append to it; folders on the way are made.

        Args:
            content: the text
            encoding: how it is written
            mode: overwrite replaces the file
        """
        data = encoded(content, encoding, path)
        return _shown(self.place(ctx).write(path, data, append=mode == "append"))

    @again(
        lambda arguments: (
            "external"
            if str(arguments.get("old_text")) in str(arguments.get("new_text"))
            else "idempotent"
        )
    )
    def edit_file(
        self,
        ctx: object,
        path: Path,
        old_text: Annotated[str, "the text to be replaced, exactly as it stands in the file"],
        new_text: Annotated[str, "the new text"],
        everywhere: Everywhere = False,
    ) -> object:
        """Replace a text in a file by another."""
        times = 0

        def change(data: bytes) -> bytes:
            nonlocal times
            text, encoding = decoded(data, "auto", path)
            text, times = exchanged(text, old_text, new_text, everywhere, path)
            return encoded(text, encoding, path)

        return {**_shown(self.place(ctx).update(path, change)), "replaced": times}

    @again("external")  # the lines are others by then
    def edit_lines(
        self,
        ctx: object,
        path: Path,
        start_line: Annotated[int, Field(ge=1)],
        end_line: int | None = None,
        replacement: str | None = "",
        encoding: str = "auto",
        newline: Newline = "preserve",
        ensure_trailing_newline: bool | None = None,
    ) -> object:
        """Replace some lines of a text file.

        Args:
            start_line: the first line to replace, from 1
            end_line: the last one; without it start_line; start_line - 1 inserts before start_line
            replacement: the new lines; empty: none
            encoding: the encoding, or auto
            newline: how lines end
            ensure_trailing_newline: whether the file ends with a line break; without it as it did
        """

        def change(data: bytes) -> bytes:
            text, used = decoded(data, encoding, path)
            last, ends = start_line if end_line is None else end_line, ensure_trailing_newline
            new = with_lines(text, start_line, last, replacement or "", newline, ends, path)
            return encoded(new, used, path)

        return _shown(self.place(ctx).update(path, change))

    def create_folder(
        self, ctx: object, path: Path, parents: bool = True, exist_ok: bool = True
    ) -> object:
        """Make a folder.

        Args:
            parents: also make the folders on the way
            exist_ok: it is no fault if it is there already
        """
        created = self.place(ctx).make_folder(path, parents=parents, exist_ok=exist_ok)
        return {"path": path, "created": created}

    def copy_path(self, ctx: object, src: Path, dst: Path, overwrite: bool = False) -> object:
        """Copy a file or a folder.

        Args:
            overwrite: replace what is there
        """
        return _shown(self.place(ctx).copy(src, dst, overwrite=overwrite))

    def move_path(self, ctx: object, src: Path, dst: Path, overwrite: bool = False) -> object:
        """Move or rename a file or a folder.

        Args:
            overwrite: replace what is there
        """
        return _shown(self.place(ctx).move(src, dst, overwrite=overwrite))

    def delete_path(
        self, ctx: object, path: Path, recursive: bool = False, missing_ok: bool = False
    ) -> object:
        """Delete a file or a folder.

        Args:
            recursive: a folder, with all that is in it
            missing_ok: it is no fault if nothing is there
        """
        kind = self.place(ctx).delete(path, recursive=recursive)
        if kind is None and not missing_ok:
            raise missing(path)
        return {"path": path, "deleted": kind is not None}


def _there(place: Workspace, path: str) -> Entry:
    found = place.stat(path)
    if found is None:
        raise missing(path)
    return found


def _listing(place: Workspace, path: str, depth: int, limit: int, hidden: bool) -> dict[str, Any]:
    files: list[dict[str, Any]] = []
    for each in place.entries(path, depth=depth, hidden=hidden):
        if len(files) == limit:
            return {"files": files, "truncated": True}
        files.append(_shown(each))
    return {"files": files, "truncated": False}


def _shown(each: Entry) -> dict[str, Any]:
    shown = {"path": each.path, "kind": each.kind}
    return {**shown, "size": each.size} if each.kind == "file" else shown


# Each tool as a component of its own, with the same config.
list_files = one_of(Files, "list_files")
list_folder = one_of(Files, "list_folder")
describe_file = one_of(Files, "describe_file")
read_text = one_of(Files, "read_text")
read_lines = one_of(Files, "read_lines")
load_file = one_of(Files, "load_file")
search_files = one_of(Files, "search_files")
write_file = one_of(Files, "write_file")
edit_file = one_of(Files, "edit_file")
edit_lines = one_of(Files, "edit_lines")
create_folder = one_of(Files, "create_folder")
copy_path = one_of(Files, "copy_path")
move_path = one_of(Files, "move_path")
delete_path = one_of(Files, "delete_path")
