"""Laws of the workspace: nothing leads out of it, nothing is lost, nothing grows without end."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from axil_workspace import Limits, Workspace, folders
from axil_workspace.errors import FileFault, LimitExceeded, PathRefused, WorkspaceError

law = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(params=["at", "paths"])
def place(request, tmp_path, monkeypatch):
    """A workspace with a secret beside it; once as on Linux, once as where folders cannot be held
    open.
    """
    if request.param == "paths":
        monkeypatch.setattr(folders, "HAS_AT", False)
    (tmp_path / "secret.txt").write_text("canary")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("canary")
    (tmp_path / "run").mkdir()
    return Workspace(tmp_path / "run")


def outside(place: Workspace) -> dict[str, bytes]:
    """Everything beside the workspace."""
    home = place.root.parent
    return {
        str(p.relative_to(home)): p.read_bytes()
        for p in sorted(home.rglob("*"))
        if p.is_file() and place.root not in p.parents
    }


HOSTILE = [
    "..",
    "../secret.txt",
    "a/../../secret.txt",
    "a/..",
    "/etc/passwd",
    "//etc/passwd",
    "a\0b",
    "a\nb",
    "a\x1b[2J",
    "..\\secret.txt",
    "C:\\secret.txt",
    "a" * 300,
    "a/" * 3000,
    "d/" * 120 + "x",
    "\ud800",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_a_hostile_path_is_refused_and_touches_nothing(place, path):
    before = outside(place)
    for attempt in (
        lambda: place.read(path),
        lambda: place.write(path, b"x"),
        lambda: place.delete(path, recursive=True),
        lambda: place.make_folder(path),
        lambda: list(place.entries(path)),
        lambda: place.resolve(path),
    ):
        with pytest.raises(PathRefused, match="AX870"):
            attempt()
    assert outside(place) == before
    assert list(place.entries()) == []


PARTS = st.sampled_from(
    [
        "..",
        ".",
        "a",
        "b",
        "in",
        "out",
        "up",
        "abs",
        "loop",
        "dangling",
        "deep",
        "secret.txt",
        "run",
        "",
        "/",
        "~",
        "file",
    ]
)


@law
@given(parts=st.lists(PARTS, min_size=1, max_size=6), absolute=st.booleans())
def test_whatever_a_path_is_made_of_it_stays_inside(tmp_path_factory, parts, absolute):
    home = tmp_path_factory.mktemp("law")
    (home / "secret.txt").write_text("canary")
    (home / "run/a/deep").mkdir(parents=True)
    (home / "run/file").write_text("inside")
    for name, target in {
        "in": "a",
        "out": "../..",
        "up": "..",
        "abs": str(home),
        "loop": "loop",
        "dangling": "../new",
        "a/up": "../../secret.txt",
        "a/deep/file": "../../file",
    }.items():
        os.symlink(target, home / "run" / name)
    path = "/".join(parts)
    path = f"{home}/run/{path}" if absolute else path
    place = Workspace(home / "run")
    with contextlib.suppress(WorkspaceError):
        assert place.resolve(path).is_relative_to(place.root)
        assert b"canary" not in place.read(path)
    for change in (
        lambda: place.write(path, b"x"),
        lambda: place.make_folder(path),
        lambda: place.delete(path, recursive=True),
    ):
        with contextlib.suppress(WorkspaceError):
            change()
    assert (home / "secret.txt").read_text() == "canary"
    assert sorted(p.name for p in home.iterdir()) == ["run", "secret.txt"]


def test_links_that_stay_inside_are_followed_and_others_are_not(place):
    place.write("a/b/file", b"inside")
    os.symlink("b", place.root / "a/link")
    os.symlink(place.root / "a", place.root / "whole")
    os.symlink("../outside", place.root / "out")
    os.symlink("../secret.txt", place.root / "leak")
    os.symlink("/etc", place.root / "etc")
    assert place.read("a/link/file") == place.read("whole/b/file") == b"inside"
    assert place.resolve("whole/link/file") == place.root / "a/b/file"
    for path in ("out/secret.txt", "leak", "etc/passwd", "out"):
        with pytest.raises(PathRefused, match="AX871"):
            place.read(path)
        with pytest.raises(PathRefused, match="AX871"):
            place.write(path, b"x")
    assert {each.path: each.kind for each in place.entries(depth=9) if "/" not in each.path}[
        "out"
    ] == "link"


def test_a_link_is_deleted_and_not_what_it_leads_to(place):
    os.symlink("../outside", place.root / "out")
    place.make_folder("tree")
    os.symlink("../../outside", place.root / "tree/out")
    place.delete("out")
    place.delete("tree", recursive=True)
    assert (place.root.parent / "outside/secret.txt").read_text() == "canary"


def test_links_that_turn_in_a_circle_come_to_an_end(place):
    os.symlink("b", place.root / "a")
    os.symlink("a", place.root / "b")
    with pytest.raises(LimitExceeded, match="AX873"):
        place.read("a")


@pytest.mark.skipif(not folders.HAS_AT, reason="folders cannot be held open here")
@pytest.mark.parametrize("what", ["read", "write", "delete", "list"])
def test_a_folder_that_becomes_a_link_while_it_is_used_leads_nowhere(tmp_path, what):
    """Another process swaps a folder for a link that leads out, as fast as it can, while the
    workspace is used.
    """
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("canary")
    place = Workspace(tmp_path / "run")
    place.write("d/file", b"inside")
    folder, real, link = (tmp_path / "run" / name for name in ("d", "real", "link"))
    os.symlink("../outside", link)
    over, turns = threading.Event(), []

    def swap() -> None:
        while not over.is_set():
            if real.exists() and folder.exists() and not folder.is_symlink():
                shutil.rmtree(folder, ignore_errors=True)  # a write made it anew
            for old, new in ((folder, real), (link, folder), (folder, link), (real, folder)):
                with contextlib.suppress(OSError):
                    os.rename(old, new)
            turns.append(1)

    mischief = threading.Thread(target=swap)
    mischief.start()
    seen = set[str]()
    try:
        for _ in range(1500):
            try:
                if what == "read":
                    assert place.read("d/file") == b"inside"
                elif what == "write":
                    place.write("d/file", b"inside")
                elif what == "list":
                    assert "secret" not in [each.name for each in place.entries("d")]
                    seen.update(each.name for each in place.entries("d"))
                else:
                    place.delete("d/file")
            except WorkspaceError as error:
                seen.add(error.id)
    finally:
        over.set()
        mischief.join()
    assert (tmp_path / "outside/file").read_text() == "canary"
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["file"]
    assert seen <= {"AX871", "AX872", "AX873", "AX875", "file"}
    assert turns


def test_special_files_are_not_opened(place):
    if not hasattr(os, "mkfifo"):
        pytest.skip("no such files here")
    os.mkfifo(place.root / "pipe")
    for attempt in (
        lambda: place.read("pipe"),
        lambda: place.write("pipe", b"x"),
        lambda: place.sha256("pipe"),
    ):
        with pytest.raises(FileFault, match="AX872"):
            attempt()


def test_what_is_written_is_there_whole_or_not_at_all(place, monkeypatch):
    place.write("file", b"old")

    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders.Folder, "replace", broken)
    with pytest.raises(FileFault, match="No space left"):
        place.write("file", b"new")
    assert place.read("file") == b"old"
    assert os.listdir(place.root) == ["file"]


def test_a_change_that_fails_leaves_the_file_as_it_was(place):
    place.write("file", b"old")
    with pytest.raises(ZeroDivisionError):
        place.update("file", lambda old: old * (1 // 0))
    assert place.read("file") == b"old"


@pytest.mark.skipif(not folders.HAS_AT, reason="folders cannot be locked here")
def test_changes_that_meet_are_made_one_after_another(tmp_path):
    place = Workspace(tmp_path)
    place.write("count", b"0")

    def count() -> None:
        for _ in range(25):
            place.update("count", lambda old: str(int(old) + 1).encode())
            place.write("log", b"x", append=True)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert place.read("count") == b"100"
    assert place.read("log") == b"x" * 100


def test_permissions_stay_when_a_file_is_changed(place):
    place.write("tool.sh", b"#!/bin/sh\n")
    (place.root / "tool.sh").chmod(0o750)
    place.write("tool.sh", b"true\n", append=True)
    assert (place.root / "tool.sh").stat().st_mode & 0o777 == 0o750


def test_limits_hold_and_what_is_refused_changes_nothing(tmp_path):
    place = Workspace(tmp_path, Limits(file_bytes=10, total_bytes=25, files=3))
    place.write("a", b"x" * 10)
    place.write("b", b"x" * 10)
    for attempt in (
        lambda: place.write("a", b"x" * 11),
        lambda: place.write("a", b"x", append=True),
        lambda: place.write("c", b"x" * 6),
        lambda: place.write("d/e", b"x"),
        lambda: place.copy("a", "c"),
    ):
        with pytest.raises(LimitExceeded, match="AX873"):
            attempt()
    assert [(each.path, each.size) for each in place.entries() if each.kind == "file"] == [
        ("a", 10),
        ("b", 10),
    ]
    (tmp_path / "large").write_bytes(b"x" * 11)
    with pytest.raises(LimitExceeded, match="AX873"):
        place.read("large")


@pytest.mark.parametrize("name", ["runs.db", "runs.db-wal", "lock"])
def test_recorded_runs_in_a_workspace_are_neither_read_nor_changed(place, name):
    (place.root / ".axil").mkdir()
    (place.root / ".axil" / name).write_bytes(b"a canary of another run")
    os.symlink(f".axil/{name}", place.root / "alias")
    for path in (f".axil/{name}", "alias"):
        for act in (
            lambda path=path: place.read(path),
            lambda path=path: place.write(path, b"x"),
            lambda path=path: place.copy(path, "mine"),
        ):
            with pytest.raises(PathRefused):
                act()
    assert (place.root / ".axil" / name).read_bytes() == b"a canary of another run"


def test_attachments_stay_as_they_came(place):
    (place.root / "attachments").mkdir()
    (place.root / "attachments/in.txt").write_text("given")
    os.symlink("attachments", place.root / "alias")
    for attempt in (
        lambda: place.write("attachments/in.txt", b"x"),
        lambda: place.write("alias/in.txt", b"x"),
        lambda: place.write("alias/new/in.txt", b"x"),
        lambda: place.delete("attachments", recursive=True),
        lambda: place.move("attachments/in.txt", "mine.txt"),
    ):
        with pytest.raises(PathRefused, match="AX881"):
            attempt()
    place.copy("attachments/in.txt", "mine.txt")
    place.write("mine.txt", b" and changed", append=True)
    assert place.read("attachments/in.txt") == b"given"
    assert [each.path for each in place.entries("attachments", depth=5)] == ["attachments/in.txt"]


def test_files_are_copied_and_moved_with_what_is_in_them(place):
    place.write("a/b/file", b"1")
    place.write("other", b"2")
    place.copy("a", "c/d")
    assert place.read("c/d/b/file") == b"1"
    place.move("c/d", "e")
    assert place.stat("c/d") is None
    with pytest.raises(FileFault, match="AX886"):
        place.move("e", "other")
    place.move("e", "other", overwrite=True)
    assert place.read("other/b/file") == b"1"
    for attempt in (
        lambda: place.move("a", "a/b/a"),
        lambda: place.copy("a", "a/x"),
        lambda: place.copy("a", "a"),
        lambda: place.move("a/b", "a", overwrite=True),
        lambda: place.copy("a/b/file", "a", overwrite=True),
    ):
        with pytest.raises(FileFault, match="AX872"):
            attempt()
    assert place.read("a/b/file") == b"1"


def test_what_is_to_be_overwritten_is_there_until_its_successor_is(place, monkeypatch):
    place.write("new/file", b"new")
    place.write("old", b"old")
    replace = folders.Folder.replace

    def broken(folder: folders.Folder, name: str, other: folders.Folder, new: str) -> None:
        if new == "old" and name == "new":
            raise OSError(18, "Invalid cross-device link")
        replace(folder, name, other, new)

    monkeypatch.setattr(folders.Folder, "replace", broken)
    with pytest.raises(FileFault, match="cross-device"):
        place.move("new", "old", overwrite=True)
    assert (place.read("old"), place.read("new/file")) == (b"old", b"new")
    monkeypatch.undo()
    place.write("large", b"x" * 50)
    small = Workspace(place.root, Limits(file_bytes=10))
    with pytest.raises(LimitExceeded):
        small.copy("large", "old", overwrite=True)
    assert place.read("old") == b"old"
    assert sorted(os.listdir(place.root)) == ["large", "new", "old"]


def test_a_file_that_is_overwritten_by_another_is_never_missing(place, monkeypatch):
    place.write("new", b"new")
    place.write("old", b"old")
    replace, seen = folders.Folder.replace, list[bytes]()

    def watched(folder: folders.Folder, name: str, other: folders.Folder, new: str) -> None:
        replace(folder, name, other, new)
        seen.append(place.read("old"))  # so would one find it that was killed here

    monkeypatch.setattr(folders.Folder, "replace", watched)
    place.move("new", "old", overwrite=True)
    assert seen == [b"new"]


def test_a_folder_that_goes_while_it_is_looked_into_is_passed_over(place, monkeypatch):
    for path in ("a/file", "b/file"):
        place.write(path, b"x")
    enter = folders.Folder.enter

    def late(folder: folders.Folder, name: str) -> folders.Folder:
        entered = enter(folder, name)
        if name == "a":
            shutil.rmtree(place.root / "a")
        return entered

    monkeypatch.setattr(folders.Folder, "enter", late)
    assert [each.path for each in place.entries(depth=9)] == ["a", "b", "b/file"]


def test_what_cannot_be_deleted_is_not_said_to_be_gone(place, monkeypatch):
    place.write("file", b"x")

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folders.Folder, "unlink", refused)
    with pytest.raises(FileFault, match=r"AX875.*Permission denied"):
        place.delete("file")


def test_what_is_copied_is_counted_once(place, monkeypatch):
    """Looking at everything for each file would make copying quadratic."""
    for number in range(20):
        place.write(f"a/{number}", b"x")
    looked: list[int] = []
    entries = Workspace.entries
    monkeypatch.setattr(
        Workspace, "entries", lambda *args, **named: looked.append(1) or entries(*args, **named)
    )
    place.copy("a", "b")
    assert len(list(entries(place, "b"))) == 20
    assert len(looked) <= 4


def test_a_workspace_that_is_not_there_yet_is_empty_and_is_made_when_needed(tmp_path):
    place = Workspace(tmp_path / "not/yet")
    assert list(place.entries(depth=5)) == []
    assert place.stat("file") is None
    with pytest.raises(FileFault, match="AX875"):
        place.read("file")
    assert not (tmp_path / "not").exists()
    place.write("file", b"x")
    assert place.read(tmp_path / "not/yet/file") == b"x"


def test_a_run_without_a_workspace_says_so():
    with pytest.raises(WorkspaceError, match="AX874"):
        Workspace.of(object())


def test_the_workspace_itself_is_not_taken_away(place):
    for attempt in (
        lambda: place.delete(".", recursive=True),
        lambda: place.write(str(place.root), b""),
        lambda: place.move(".", "x"),
    ):
        with pytest.raises(PathRefused, match="AX870"):
            attempt()
    os.symlink(".", place.root / "me")
    with pytest.raises(PathRefused, match="AX870"):
        place.write("me", b"")


def test_a_root_that_is_reached_through_a_link_is_known_by_both_names(tmp_path):
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "name")
    place = Workspace(tmp_path / "name")
    place.write("file", b"x")
    assert place.root == Path(os.path.realpath(tmp_path / "real"))
    assert place.read(place.root / "file") == b"x"


@pytest.mark.parametrize("name", [".axil-{}", ".axil-x/{}", "{}"])
def test_files_count_whatever_their_names_are(tmp_path, name):
    place = Workspace(tmp_path, Limits(files=3, total_bytes=100))

    def fill() -> None:
        for number in range(5):
            place.write(name.format(number), b"x")

    with pytest.raises(LimitExceeded, match="AX873"):
        fill()
