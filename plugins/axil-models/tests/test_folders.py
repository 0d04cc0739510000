"""Laws of files in folders in which others write at the same time."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from axil_models import Reply, filed, image, open_below, written_below

pytestmark = pytest.mark.skipif(
    os.open not in os.supports_dir_fd, reason="there are no folders by their descriptors"
)
_meanwhile: list[Callable[[], None]] = []
"""The acts at the moment before a file is made."""


def _look(event: str, values: tuple[object, ...]) -> None:
    if event == "open" and _meanwhile and isinstance(values[2], int) and values[2] & os.O_CREAT:
        _meanwhile.pop()()


sys.addaudithook(_look)


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A workspace whose folder ``made`` becomes a link elsewhere before a file is made in it; and
    the folder that it leads to.
    """
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    (workspace / "made").mkdir(parents=True)
    elsewhere.mkdir()

    def swap() -> None:
        (workspace / "made").rename(workspace / "aside")
        (workspace / "made").symlink_to(elsewhere)

    _meanwhile.append(swap)
    yield workspace, elsewhere
    _meanwhile.clear()


def test_what_becomes_a_link_while_a_picture_is_written_is_not_followed(swapped):
    workspace, elsewhere = swapped
    reply = Reply(text="", parts=(image(b"\x89PNG\r\n\x1a\n" + bytes(9_000)),))
    asyncio.run(filed(reply, workspace))
    assert not _meanwhile
    assert list(elsewhere.iterdir()) == []


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    def written(text: bytes, error: type[Exception] | None = None) -> None:
        with written_below(tmp_path / "w", ("a", "b", "c")) as file:
            file.write(text)
            if error is not None:
                raise error

    written(b"one")
    with pytest.raises(KeyError):
        written(b"two", KeyError)
    with open_below(tmp_path / "w", ("a", "b", "c")) as file:
        assert file.read() == b"one"
    assert [path.name for path in (tmp_path / "w/a/b").iterdir()] == ["c"]


@pytest.mark.parametrize("at", ["a", "a/b", "a/b/c"])
def test_no_link_leads_out_and_one_in_the_place_of_the_file_is_replaced(tmp_path, at):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "c").write_text("kept")
    link = tmp_path / "w" / at
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere / "c" if at.endswith("c") else elsewhere)

    def written() -> None:
        with written_below(tmp_path / "w", ("a", "b", "c")) as file:
            file.write(b"new")

    if at.endswith("c"):
        written()
        assert (link.read_bytes(), link.is_symlink()) == (b"new", False)
    else:
        with pytest.raises(OSError, match=r"."):
            written()
    assert [(path.name, path.read_text()) for path in elsewhere.iterdir()] == [("c", "kept")]
