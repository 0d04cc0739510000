"""Writes what only a release knows into the members: where the project lives, and their names in
an index.

    python release/stamp.py https://host/owner/project REF

Each member's ``pyproject.toml`` gets ``[project.urls]``. The links of its README become absolute,
and its commands that install from a checkout install from an index, so that all of it holds in a
wheel. It changes the checkout that it runs in: the release workflow does so in a copy, and the
changes are never committed.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(!?\[[^\]]*)\]\((?!#)(?![a-z][a-z0-9+.-]*:)([^)\s#]+)(#[^)\s]*)?\)")
_INSTALL = re.compile(r"pip install (\"?\.[^\s`#]*(?: [^\s`#]+)*)( +# in the checkout.*)?")
_FENCE = re.compile(r"^```.*?^```[^\n]*$", re.MULTILINE | re.DOTALL)


def members(root: Path = ROOT) -> list[Path]:
    """Return the folders of all distributions."""
    files = [root / "core/pyproject.toml"]
    files += sorted(root.glob("plugins/*/pyproject.toml"))
    files += sorted(root.glob("contrib/*/pyproject.toml"))
    return [file.parent for file in files]


def urls_of(folder: Path, url: str, ref: str, root: Path = ROOT) -> dict[str, str]:
    """Return the URLs of a distribution by the names that indexes know."""
    return {
        "Homepage": url,
        "Documentation": f"{url}/tree/{ref}/docs",
        "Source": f"{url}/tree/{ref}/{folder.relative_to(root).as_posix()}",
        "Changelog": f"{url}/blob/{ref}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }


def with_urls(text: str, urls: dict[str, str]) -> str:
    """Return a ``pyproject.toml`` with ``[project.urls]``. Raises: ValueError: it has them."""
    if "urls" in tomllib.loads(text)["project"]:
        raise ValueError("it has [project.urls] already; stamp a fresh checkout")
    lines = [f"{name} = {json.dumps(url)}\n" for name, url in urls.items()]
    return f"{text.rstrip()}\n\n[project.urls]\n{''.join(lines)}"


def with_links(text: str, folder: Path, url: str, ref: str, root: Path = ROOT) -> str:
    """Return a page whose relative links are absolute; code stays as it is.

    Raises: ValueError: a link leads nowhere, or out of the project.
    """

    def absolute(link: re.Match[str]) -> str:
        label, target, anchor = link[1], link[2], link[3] or ""
        place = (folder / target).resolve()
        if not place.is_relative_to(root) or not place.exists():
            raise ValueError(f"{folder.name}/README.md: the link {target} leads nowhere")
        kind = "tree" if place.is_dir() else "raw" if label.startswith("!") else "blob"
        return f"{label}]({url}/{kind}/{ref}/{place.relative_to(root).as_posix()}{anchor})"

    pieces: list[str] = []
    end = 0
    for fence in _FENCE.finditer(text):
        pieces += [_LINK.sub(absolute, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, _LINK.sub(absolute, text[end:])])


def with_names(text: str, folder: Path) -> str:
    """Return a README whose commands install distributions by name, not from a checkout."""

    def published(command: re.Match[str]) -> str:
        paths = [word for word in command[1].split() if word != "."]
        names = [re.sub(r"\./(?:plugins/|contrib/)?", "", word) for word in paths]
        names = [re.sub(r"^(\"?)core\b", r"\1axil-core", word) for word in names]
        usual = "axil" if folder.name == "core" else folder.name
        return f"pip install {' '.join(names or [usual])}"

    return _INSTALL.sub(published, text)


def stamp(url: str, ref: str, root: Path = ROOT) -> None:
    """Write the URLs and the links of all members; nothing is written if one cannot be.

    Raises: ValueError.
    """
    texts: dict[Path, str] = {}
    for folder in members(root):
        project, readme = folder / "pyproject.toml", folder / "README.md"
        urls = urls_of(folder, url, ref, root)
        texts[project] = with_urls(project.read_text("utf-8"), urls)
        text = with_names(readme.read_text("utf-8"), folder)
        texts[readme] = with_links(text, folder, url, ref, root)
    for file, text in texts.items():
        file.write_text(text, "utf-8")


def main(argv: list[str]) -> int:
    """Stamp the checkout; 2: it cannot be done, and why."""
    if len(argv) != 2 or urlsplit(argv[0]).scheme != "https":
        sys.stderr.write("usage: python release/stamp.py https://host/owner/project REF\n")
        return 2
    try:
        stamp(argv[0].rstrip("/"), argv[1])
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
