"""The pages in Chinese and the pages that they translate; ``make manifests`` copies the code of the
latter into the former.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.house.checkout import ROOT

INDEX = ROOT / "docs/zh/index.md"
"""The list of all of them; it translates no page."""
TRANSLATED = [ROOT / "README.zh.md", *sorted((ROOT / "docs/zh").rglob("*/*.md"))]
CODE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})[^`\n]*\n.*?^(?P=indent)(?P=ticks) *$"
    r"|(?:^    \S[^\n]*\n(?:\n(?=    \S))?)+",
    re.MULTILINE | re.DOTALL,
)
"""A block of code, fenced or indented."""


def original(page: Path) -> Path:
    """Return the page that a Chinese one translates."""
    if page.name == "README.zh.md":
        return ROOT / "README.md"
    return ROOT / "docs" / page.relative_to(ROOT / "docs/zh")


def code(text: str) -> list[str]:
    """Return the blocks of code of a page."""
    return [match[0] for match in CODE.finditer(text)]


def with_code(text: str, source: str) -> str:
    """Return a translation with the code of its original; as it is where their numbers differ."""
    blocks = code(source)
    if len(blocks) != len(code(text)):
        return text
    waiting = iter(blocks)
    return CODE.sub(lambda _: next(waiting), text)


def renewed() -> dict[str, str]:
    """Return the translations with the code of their originals, by path."""
    return {
        page.relative_to(ROOT).as_posix(): with_code(
            page.read_text("utf-8"), original(page).read_text("utf-8")
        )
        for page in TRANSLATED
    }
