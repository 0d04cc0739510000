"""Effects that the kit observes: those of the code that is watched, and no others."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import pytest

from axil_testing.kit.watch import watched


class Holder:
    """A member of a cycle, that removes a file when it is collected."""

    def __init__(self, path: Path) -> None:
        self.path, self.itself = path, self

    def __del__(self) -> None:
        os.remove(self.path)


def test_it_sees_what_is_done() -> None:
    with watched() as seen:
        os.putenv("AXIL_KIT", "1")
    assert seen.effects == ["changes the environment"]


def test_it_sees_what_is_done_in_a_thread_that_is_begun(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with watched() as seen:
        thread = threading.Thread(target=os.remove, args=(path,))
        thread.start()
        thread.join()
    assert seen.effects == ["removes a file"]


def test_it_does_not_see_what_a_thread_of_before_does(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    begin = threading.Event()

    def removing() -> None:
        begin.wait(60)
        os.remove(path)

    thread = threading.Thread(target=removing)
    thread.start()
    with watched() as seen:
        begin.set()
        thread.join()
    assert not path.exists()
    assert seen.effects == []


def test_it_does_not_see_how_older_things_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    gc.collect()  # so that the next collection is not at once
    Holder(path)
    with watched() as seen:
        [[] for _ in range(100_000)]  # enough to have garbage collected
    assert path.exists()
    assert seen.effects == []
    gc.collect()
    assert not path.exists()


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_again_as_before(collects: bool) -> None:
    was = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        with watched():
            assert not gc.isenabled()
        assert gc.isenabled() is collects
    finally:
        gc.enable() if was else gc.disable()
