"""Tools for research: sources that were found, and a report in chapters; ``research``, and each by
its own name.

Sources are in ``deep_research/search_results.json`` of the run's workspace, the report in
``deep_research/report.md``, as workflows of DevAll know them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Final, cast

from pydantic import Field

from axil_workspace.chapters import (
    chapter_at,
    chapters_of,
    extended,
    ordered,
    rewritten,
    with_chapter,
    without,
)
from axil_workspace.errors import NothingThere, TextFault
from axil_workspace.toolset import Tools, ToolsConfig, again, one_of
from axil_workspace.workspace import Workspace

_FIELDS: Final = ("title", "abs", "detail")
Address = Annotated[str, Field(min_length=1, description="the URL of the source")]
ChapterPath = Annotated[
    str,
    Field(min_length=1, description="a chapter's title; Parent/Title for a chapter inside another"),
]


class Research(Tools):
    """``research``: keep what was found with its sources, and write a report chapter by chapter."""

    class Config(ToolsConfig, frozen=True):
        """The tools, and the place of the files."""

        folder: str = Field(
            default="deep_research",
            min_length=1,
            description="The folder of the sources and the report, inside the workspace.",
        )
        font: str = Field(
            default="",
            description="A TrueType font for the PDF, inside the workspace; empty: a font with "
            "Western European letters.",
        )

    provides: ClassVar = (
        *("save_source", "list_sources", "read_source", "mark_source"),
        *("read_report", "read_chapter", "outline_report", "add_chapter", "rewrite_chapter"),
        *("extend_chapter", "order_chapters", "delete_chapter", "export_report"),
    )

    def save_source(
        self,
        ctx: Any,
        url: Address,
        title: Annotated[str, "its title"],
        abs: Annotated[str, "a summary of the source"],
        detail: Annotated[str, "the content of the source"],
    ) -> str:
        """Keep a source, or write a newer text for one that is kept."""

        def change(sources: dict[str, dict[str, Any]]) -> None:
            marked = sources.get(url, {}).get("highlight_keys", [])
            sources[url] = {"title": title, "abs": abs, "detail": detail, "highlight_keys": marked}

        self._change_sources(ctx, change)
        return f"Saved {url}."

    def list_sources(self, ctx: Any) -> str:
        """List all sources that are kept: addresses, titles and what they say in short."""
        sources = self._sources(ctx)
        if not sources:
            return "No source is saved yet."
        return "\n\n".join(_shown(url, each, ("title", "abs")) for url, each in sources.items())

    def read_source(self, ctx: Any, url: Address) -> str:
        """Read all that is kept of one source."""
        return _shown(url, _known(self._sources(ctx), url), _FIELDS)

    def mark_source(
        self,
        ctx: Any,
        url: Address,
        keys: Annotated[
            list[str], Field(min_length=1, description="important words of the source")
        ],
    ) -> str:
        """Mark a source as important, with the words for which it is."""
        marked: list[str] = []

        def change(sources: dict[str, dict[str, Any]]) -> None:
            source = _known(sources, url)
            marked[:] = dict.fromkeys([*source.get("highlight_keys", []), *keys])
            source["highlight_keys"] = list(marked)

        self._change_sources(ctx, change)
        return f"Marked {url}: {', '.join(marked)}."

    def read_report(self, ctx: Any) -> str:
        """Read the whole report."""
        return self._report(ctx) or "The report is empty."

    def read_chapter(self, ctx: Any, title: ChapterPath) -> str:
        """Read one chapter, with the chapters inside it and without its own heading."""
        lines = self._report(ctx).splitlines()
        found = chapter_at(lines, title)
        return "\n".join(lines[found.start + 1 : found.end]).strip("\n")

    def outline_report(self, ctx: Any) -> str:
        """List the headings of the report."""
        found = chapters_of(self._report(ctx).splitlines())
        shown = [f"{'#' * each.level} {each.title}" for each in found]
        return "\n".join(shown) or "The report has no headings yet."

    @again("external")  # a second time it would be there twice
    def add_chapter(
        self,
        ctx: Any,
        title: Annotated[
            str,
            "Title; Parent/Title puts the chapter inside a chapter, Before|Title after the "
            "chapter Before, |Title first",
        ],
        level: Annotated[
            int, Field(ge=1, le=6, description="the level of its heading: 1 is the highest")
        ],
        content: Annotated[str, "the chapter's text, without the heading"],
    ) -> str:
        """Add a chapter to the report: at the end, unless the title says where."""
        self._change_report(ctx, lambda lines: with_chapter(lines, title, level, content))
        return f'Added "{title}".'

    def rewrite_chapter(
        self, ctx: Any, title: ChapterPath, content: Annotated[str, "the chapter's new text"]
    ) -> str:
        """Write another text under a chapter's heading; chapters inside it are replaced, too."""
        self._change_report(ctx, lambda lines: rewritten(lines, title, content))
        return f'Rewrote "{title}".'

    @again("external")
    def extend_chapter(
        self, ctx: Any, title: ChapterPath, content: Annotated[str, "the text to append"]
    ) -> str:
        """Add a text at the end of a chapter."""
        self._change_report(ctx, lambda lines: extended(lines, title, content))
        return f'Extended "{title}".'

    def order_chapters(
        self,
        ctx: Any,
        new_order: Annotated[
            list[str],
            Field(min_length=1, description="the titles of the chapters, in their new order"),
        ],
    ) -> str:
        """Let chapters change places; none of them may be inside another."""
        self._change_report(ctx, lambda lines: ordered(lines, new_order))
        return "The chapters have the new order."

    @again("external")  # a second time another chapter of that title would go
    def delete_chapter(self, ctx: Any, title: ChapterPath) -> str:
        """Delete a chapter, with the chapters inside it."""
        self._change_report(ctx, lambda lines: without(lines, title))
        return f'Deleted "{title}".'

    def export_report(self, ctx: Any) -> Any:
        """Write the report as a PDF beside it."""
        from axil_workspace.pdf import pdf_of

        place = Workspace.of(ctx)
        text = self._report(ctx)
        if not text.strip():
            raise NothingThere("AX875", "the report is empty.", "Add chapters first.")
        font = place.read(self.config.font) if self.config.font else b""
        made = place.write(self._path("report.pdf"), pdf_of(text, font))
        return {"path": made.path, "size": made.size}

    def _path(self, name: str) -> str:
        return f"{self.config.folder.rstrip('/')}/{name}"

    def _sources(self, ctx: Any) -> dict[str, dict[str, Any]]:
        path = self._path("search_results.json")
        return _parsed(_bytes_at(Workspace.of(ctx), path), path)

    def _change_sources(
        self, ctx: Any, change: Callable[[dict[str, dict[str, Any]]], None]
    ) -> None:
        path = self._path("search_results.json")

        def changed(old: bytes) -> bytes:
            sources = _parsed(old, path)
            change(sources)
            return json.dumps(sources, ensure_ascii=False, indent=2).encode()

        _updated(Workspace.of(ctx), path, changed)

    def _report(self, ctx: Any) -> str:
        return _text(_bytes_at(Workspace.of(ctx), self._path("report.md")))

    def _change_report(self, ctx: Any, change: Callable[[list[str]], list[str]]) -> None:
        def changed(old: bytes) -> bytes:
            lines = change(_text(old).splitlines())
            return "".join(f"{line}\n" for line in lines).encode()

        _updated(Workspace.of(ctx), self._path("report.md"), changed)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _bytes_at(place: Workspace, path: str) -> bytes:
    """Return the content of a file; nothing, if there is none."""
    try:
        return place.read(path)
    except NothingThere:
        return b""


def _updated(place: Workspace, path: str, change: Callable[[bytes], bytes]) -> None:
    """Change a file, one change after another; one that is not there is empty."""
    try:
        place.update(path, change)
    except NothingThere:
        change(b"")  # what cannot be done leaves no file behind
        place.write(path, b"", append=True)
        place.update(path, change)


def _parsed(data: bytes, path: str) -> dict[str, dict[str, Any]]:
    """Return the sources in a file. Raises: TextFault (AX883): it holds something else."""
    if not data.strip():
        return {}
    try:
        found: Any = json.loads(data)
    except ValueError:
        found = None
    if isinstance(found, dict):
        sources = cast("dict[str, Any]", found)
        if all(isinstance(each, dict) for each in sources.values()):
            return sources
    message = f'"{path}" is not a JSON file of sources.'
    raise TextFault("AX883", message, "Correct the file, or move it.")


def _known(sources: Mapping[str, dict[str, Any]], url: str) -> dict[str, Any]:
    """Return a source. Raises: NothingThere (AX875)."""
    if url not in sources:
        hint = "List the sources, or save this one first."
        raise NothingThere("AX875", f"the source {url} is not saved.", hint)
    return sources[url]


def _shown(url: str, source: Mapping[str, Any], fields: tuple[str, ...]) -> str:
    """Return a source as a model reads it."""
    names = {"title": "Title", "abs": "Abstract", "detail": "Detail"}
    marked = cast("list[Any]", source.get("highlight_keys") or [])
    lines = [f"URL: {url}"]
    if marked:
        lines.append(f"Important for: {', '.join(map(str, marked))}")
    return "\n".join([*lines, *(f"{names[each]}: {source.get(each, '')}" for each in fields)])


# Each tool as a component of its own, with the same config.
save_source = one_of(Research, "save_source")
list_sources = one_of(Research, "list_sources")
read_source = one_of(Research, "read_source")
mark_source = one_of(Research, "mark_source")
read_report = one_of(Research, "read_report")
read_chapter = one_of(Research, "read_chapter")
outline_report = one_of(Research, "outline_report")
add_chapter = one_of(Research, "add_chapter")
rewrite_chapter = one_of(Research, "rewrite_chapter")
extend_chapter = one_of(Research, "extend_chapter")
order_chapters = one_of(Research, "order_chapters")
delete_chapter = one_of(Research, "delete_chapter")
export_report = one_of(Research, "export_report")
