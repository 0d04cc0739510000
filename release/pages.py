"""Hooks of MkDocs: the site is made of docs/, the READMEs, and whatever files these link to.

A page may link to any file of the checkout. Files outside docs/ become pages of their own; long
pages are split at their headings; every id of docs/reference/errors.md gets a page; links are
written anew for all that. The navigation is that of the index pages. ``llms.txt`` lists all pages
for programs that read, each with its Markdown beside its HTML.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^( *)(`{3,})[^`\n]*\n.*?^\1\2 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(rf"{FENCE.pattern}|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s]+)((?: \"[^\"]*\")?\))")
ENTRY = re.compile(r"^(?:-|\d+\.) \[`?(.+?)`?\]\(([^)#]+\.md)\)(.*)$")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
ID_ROW = re.compile(r"^\| (AX\d{3}) \|(.*?)(?<!\\)\|(.*)\|$", re.MULTILINE)
BETWEEN_HAN = re.compile(r"(?<=[\u4e00-\u9fff])(?=[\u4e00-\u9fff])")
FOLDERS = {
    "Tutorials": "tutorials",
    "How-to": "how-to",
    "Examples": "examples",
    "Reference": "reference",
    "Explanation": "explanation",
    "Decisions": "decisions",
    "中文": "zh",
}
"""The tabs of the navigation, and the folders whose index pages they follow."""
SPLIT = {
    "reference/packages.md": re.compile(r"^axil\w*(?:\.\w+)*$"),
    "how-to/teams.md": re.compile(r"^`(\w+)`$"),
}
"""Long pages, and the headings that begin a page of their own."""
ERRORS = "reference/errors.md"
PLANTED = ROOT / "tests/integration/planted"
"""Workflow files with one fault each, which the tests find: the first line has the id."""
SHOWN = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".csv": "text", ".txt": "text"}
"""Files that become pages; others are copied."""


@dataclass
class Site:
    """The pages and files of one build, by their places on the site."""

    pages: dict[str, str] = field(default_factory=dict[str, str])
    """Markdown, its links still as they were written."""
    origins: dict[str, Path] = field(default_factory=dict[str, Path])
    """The file that each page was made of."""
    copies: dict[str, Path] = field(default_factory=dict[str, Path])
    parts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Of a long page: the pages that it was split into."""
    waiting: list[str] = field(default_factory=list[str])
    """Pages whose links were not looked at yet."""

    def add(self, place: str, text: str, origin: Path) -> None:
        """Add a page."""
        self.pages[place] = text
        self.origins[place] = origin
        self.waiting.append(place)

    def read(self, file: Path, place: str) -> None:
        """Add a file of the checkout as a page, or as several."""
        text = file.read_text("utf-8").replace("```python sketch", "```python")
        if place in SPLIT:
            text, parts = split(text, place, SPLIT[place])
            self.parts[place] = list(parts)
            for part, written in parts.items():
                self.add(part, written, file)
        if place == ERRORS:
            for part, written in errors(text).items():
                self.add(part, written, file)
        self.add(place, text, file)

    def place_of(self, file: Path, anchor: str) -> str:
        """Return the place of a file on the site, which has it from now on; empty: it has none."""
        if file.is_dir():
            file /= "README.md"
        if not file.is_file():
            return ""
        name = file.relative_to(ROOT).as_posix()
        if name.startswith("docs/"):
            name = name.removeprefix("docs/")
            if file.suffix != ".md":
                return name
            inside = (each for each in self.parts.get(name, ()) if has(self.pages[each], anchor))
            return next(inside, name)
        if file.suffix == ".md":
            place = f"readmes/{name.removesuffix('README.md').rstrip('/') or 'axil'}"
            place = place if place.endswith(".md") else f"{place}.md"
            if place not in self.pages:
                self.read(file, place)
            return place
        place = f"files/{name}"
        if file.suffix not in SHOWN:
            self.copies[place] = file
        elif f"{place}.md" not in self.pages:
            text = file.read_text("utf-8").rstrip()
            ticks = "`" * max(3, *(len(each) + 1 for each in re.findall(r"`+", text)), 3)
            head = f"---\nsearch:\n  exclude: true\n---\n# `{name}`\n\n"
            self.add(f"{place}.md", f"{head}{ticks}{SHOWN[file.suffix]}\n{text}\n{ticks}\n", file)
        return place if place in self.copies else f"{place}.md"

    def with_links(self, place: str) -> str:
        """Return a page with links to where things are on the site."""
        origin, folder = self.origins[place], posixpath.dirname(place)

        def written(link: re.Match[str]) -> str:
            name, _, anchor = link[2].partition("#")
            if re.match(r"[a-z]+:", name):
                return link[0]
            file = (origin.parent / name).resolve() if name else origin
            target = self.place_of(file, anchor)
            if not target:
                return link[0]
            found = has(self.pages.get(target, ""), anchor) or not anchor
            to = posixpath.relpath(target, folder or ".")
            return f"{link[1]}{to}{'#' + anchor if anchor and found else ''}{link[3]}"

        text = outside_code(self.pages[place], lambda prose: LINK.sub(written, prose))
        errors_at = posixpath.relpath("errors", folder or ".")
        return ID_ROW.sub(rf"| [\1]({errors_at}/\1.md) |\2|\3|", text)


def outside_code(text: str, change: Any) -> str:
    """Return a text whose prose was changed, and its code was not."""
    written, end = [], 0
    for code in CODE.finditer(text):
        # a link whose text is code is prose: only fences are left as they are
        if code[0].lstrip().startswith("```"):
            written += [change(text[end : code.start()]), code[0]]
            end = code.end()
    return "".join([*written, change(text[end:])])


def has(text: str, anchor: str) -> bool:
    """Return whether a page has an anchor."""
    slugs = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(FENCE.sub("", text))
    }
    return anchor in slugs or f'id="{anchor}"' in text


def split(text: str, place: str, begins: re.Pattern[str]) -> tuple[str, dict[str, str]]:
    """Return a page without its parts, but with a list of them, and the parts by place."""
    folder = place.removesuffix(".md")
    kept, parts, names = [], {}, []
    fences = [(code.start(), code.end()) for code in FENCE.finditer(text)]
    starts = [
        found.start()
        for found in re.finditer(r"^## ", text, re.MULTILINE)
        if not any(start < found.start() < end for start, end in fences)
    ]
    for start, end in zip([0, *starts], [*starts, len(text)], strict=True):
        section = text[start:end]
        heading = section.splitlines()[0].removeprefix("## ")
        if start and begins.match(heading):
            name = heading.strip("`")
            parts[f"{folder}/{name}.md"] = raised(section)
            names.append(f"- [`{name}`]({posixpath.basename(folder)}/{name}.md)")
        else:
            kept.append(section)
    return f"{''.join(kept).rstrip()}\n\n" + "\n".join(names) + "\n", parts


def raised(section: str) -> str:
    """Return a section as a page: its headings one level higher."""
    return outside_code(section, lambda prose: re.sub(r"^#(?=#)", "", prose, flags=re.MULTILINE))


def errors(text: str) -> dict[str, str]:
    """Return a page for each id."""
    pages = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        group = section.splitlines()[0]
        anchor = re.sub(r"[^\w\- ]", "", group.lower()).replace(" ", "-")
        for row in ID_ROW.finditer(section):
            means, do = (each.strip().replace("\\|", "|") for each in (row[2], row[3]))
            pages[f"errors/{row[1]}.md"] = (
                f"# {row[1]}\n\n**Means:** {means}.\n\n**Do:** {do}.\n\n{example(row[1])}"
                f"One of [{group}](errors.md#{anchor}).\n"
            )
    return pages


def example(id: str) -> str:
    """Return the shortest planted file in which an id is found, as Markdown; empty: none has it."""
    files = (each.read_text("utf-8") for each in sorted(PLANTED.glob("*.yaml")))
    found = sorted((each for each in files if each.startswith(f"# {id} |")), key=len)
    if not found:
        return ""
    first, _, text = found[0].partition("\n")
    _, where, says = first.split(" | ", 2)
    return f"**For example**, at `{where or 'graph'}`: {says}.\n\n```yaml\n{text.rstrip()}\n```\n\n"


def entries(place: str, pages: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield heading, title, place and remark of each page that an index page lists."""
    heading = ""
    for line in pages[place].splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif entry := ENTRY.match(line):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(place), entry[2]))
            if target in pages:
                yield heading, entry[1][:1].upper() + entry[1][1:], target, entry[3].strip(" :,")


def navigation(site: Site) -> list[Any]:
    """Return the tabs: each index page with what it lists, by its headings. A page that several
    list stands in the first tab only: beside it is shown the tab that has it last.
    """
    tabs: list[Any] = [{"Start": "index.md"}]
    listed = {"index.md"}
    for tab, folder in FOLDERS.items():
        if (index := f"{folder}/index.md") in site.pages:
            groups: dict[str, list[Any]] = {"": [index]}
            for heading, title, place, _ in entries(index, site.pages):
                if place in listed:
                    continue
                listed.add(place)
                parts = [{Path(part).stem: part} for part in site.parts.get(place, ())]
                entry = {title: [place, *parts] if parts else place}
                groups.setdefault(heading, []).append(entry)
            first = groups.pop("")
            tabs.append({tab: [*first, *({name: each} for name, each in groups.items())]})
    return tabs


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show the version that the checkout has."""
    core = tomllib.loads((ROOT / "core/pyproject.toml").read_text("utf-8"))
    version = core["project"]["version"]
    config.site_name = f"{config.site_name} {version}"
    config.copyright = f"axil {version} · {config.copyright}"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the pages of docs/ by those of the site, and set the navigation."""
    site = Site()
    for file in list(files.documentation_pages()):
        site.read(Path(file.abs_src_path or ""), file.src_uri)
        files.remove(file)
    written: dict[str, str] = {}
    while site.waiting:
        place = site.waiting.pop()
        written[place] = site.with_links(place)
    for place, text in written.items():
        files.append(File.generated(config, place, content=text))
    for place, file in site.copies.items():
        files.append(File.generated(config, place, abs_src_path=str(file)))
    config.nav = navigation(site)
    config.extra["written"] = written
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Write ``llms.txt``, each page as Markdown beside its HTML, and the index of the search with
    Chinese characters apart: without a dictionary it knows no words.
    """
    written: dict[str, str] = config.extra["written"]
    target = Path(config.site_dir)
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for tab, folder in FOLDERS.items():
        lines += [f"## {tab}", ""]
        for _, title, place, remark in entries(f"{folder}/index.md", written):
            lines.append(f"- [{title}]({place})" + (f": {remark}" if remark else ""))
        lines.append("")
    (target / "llms.txt").write_text("\n".join(lines), "utf-8")
    for place, text in written.items():
        if not place.startswith("files/"):
            (target / place).write_text(text, "utf-8")
    index = target / "search/search_index.json"
    found = json.loads(index.read_text("utf-8"))
    for each in found["docs"]:
        for name in ("title", "text"):
            each[name] = BETWEEN_HAN.sub("\u200b", each[name])
    index.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")), "utf-8")
