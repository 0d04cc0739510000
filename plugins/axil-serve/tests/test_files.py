"""Laws of files: runs receive uploads and write artifacts, each caller sees its own, and no path
leads out of the folder of a run.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from axil import Context, RootGraph, Workflow
from axil_journals import MemoryJournal
from axil_models import open_below
from axil_serve import Caller, Limits, RunService, app_of
from axil_serve.errors import BadRequest, TooLarge
from axil_serve.files import RunFiles, _checked, _files

from .conftest import BEN, EVE, access, as_caller, greeting, refund


def copying() -> Workflow:
    """Return a graph that reads what it received, writes a file, and makes a link out."""
    graph = RootGraph("copying")

    def copy(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        folder = ctx.workspace
        assert folder is not None
        text = (folder / "attachments" / inputs["name"]).read_text("utf-8")
        (folder / "out").mkdir()
        (folder / "out" / "copy.html").write_text(text.upper(), "utf-8")
        (folder / "out" / "passwd").symlink_to("/etc/passwd")
        (folder / "outside").symlink_to("/etc")
        return {"text": text}

    graph.create_node(copy, name="copy")
    graph.edge_from_entry("copy", {"name": ""})
    graph.edge_to_exit("copy", {"text": ""})
    return graph.build()


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(tmp_path / "runs", file_bytes=1000, caller_bytes=1500)


@pytest.fixture
def client(files: RunFiles) -> Iterator[TestClient]:
    workflows = {"copying": copying(), "asking": refund()}
    service = RunService(MemoryJournal(), workflows, files=files, poll_seconds=0.01)
    app = app_of(service, access(), limits=Limits(file_bytes=1000))
    with TestClient(app, base_url="http://127.0.0.1", headers=as_caller("ada-" * 8)) as client:
        yield client


def uploaded(client: TestClient, name: str = "a.txt", content: Any = b"rain") -> Any:
    headers = {"content-type": "text/plain"}
    return client.post("/v1/files", params={"name": name}, content=content, headers=headers)


def copied(client: TestClient, **more: Any) -> Any:
    """Run the workflow over an upload; return the run and its files."""
    body = {"workflow": "copying", "input": {"name": "a.txt"}, **more}
    body.setdefault("files", [uploaded(client).json()["file_id"]])
    answer = client.post("/v1/runs", json=body)
    assert answer.status_code == 201, answer.text
    run_id = answer.json()["run_id"]
    client.get(f"/v1/runs/{run_id}/events")
    return run_id, client.get(f"/v1/runs/{run_id}/files").json()


def test_a_run_receives_uploads_and_its_files_are_listed_and_downloaded(client):
    run_id, listed = copied(client)
    assert [(each["path"], each["kind"]) for each in listed["files"]] == [
        ("attachments/a.txt", "attachment"),
        ("out/copy.html", "artifact"),
    ]
    made = listed["files"][1]
    got = client.get(f"/v1/runs/{run_id}/files/{made['file_id']}")
    assert (got.text, int(got.headers["content-length"])) == ("RAIN", made["size"])
    assert got.headers["content-disposition"].startswith("attachment;")
    assert "sandbox" in got.headers["content-security-policy"]
    forked = client.post(f"/v1/runs/{run_id}/fork", json={}).json()["run_id"]
    again = client.get(f"/v1/runs/{forked}/files").json()["files"]
    assert [each["path"] for each in again] == ["attachments/a.txt", "out/copy.html"]


def test_an_image_that_is_passed_by_its_path_is_in_the_run_and_downloaded(files):
    graph = RootGraph("drawing")

    def draw(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        assert ctx.workspace is not None
        ctx.workspace.mkdir(parents=True, exist_ok=True)
        (ctx.workspace / "leaf.png").write_bytes(b"leaf")
        return {"picture": {"type": "image", "path": "leaf.png", "media_type": "image/png"}}

    graph.create_node(draw, name="draw")
    graph.edge_from_entry("draw", ["name"])
    graph.edge_to_exit("draw", ["picture"])
    workflows = {"drawing": graph.build()}
    service = RunService(MemoryJournal(), workflows, files=files, poll_seconds=0.01)
    headers = as_caller("ada-" * 8)
    with TestClient(
        app_of(service, access()), base_url="http://127.0.0.1", headers=headers
    ) as client:
        asked = {"workflow": "drawing", "input": {"name": "leaf"}}
        run = f"/v1/runs/{client.post('/v1/runs', json=asked).json()['run_id']}"
        client.get(f"{run}/events")
        seen = client.get(run).json()
        assert seen["status"] == "done", seen
        picture = seen["output"]["picture"]
        assert (picture["path"], "data" in picture) == ("leaf.png", False)
        [listed] = client.get(f"{run}/files").json()["files"]
        assert (listed["path"], listed["media_type"]) == (picture["path"], "image/png")
        assert client.get(f"{run}/files/{listed['file_id']}").content == b"leaf"


def test_no_file_is_had_from_outside_the_folder_of_its_run(client, files):
    run_id, listed = copied(client)
    for id in ("..%2Fa", "%2Fetc%2Fpasswd", "out%2Fpasswd", "0" * 32):
        assert client.get(f"/v1/runs/{run_id}/files/{id}").status_code == 404, id
    made = listed["files"][1]
    path = files.root / run_id / "out" / "copy.html"
    path.unlink()
    path.symlink_to("/etc/passwd")  # bent after it was listed
    assert client.get(f"/v1/runs/{run_id}/files/{made['file_id']}").status_code == 404
    with pytest.raises(OSError, match="outside"):
        open_below(files.root / run_id, ("outside", "passwd"))
    os.mkfifo(files.root / run_id / "pipe")
    assert "pipe" not in client.get(f"/v1/runs/{run_id}/files").text
    for name in ("", ".", "..", "../a", "a/b", "a\\b", ".axil", "a\nb", "x" * 300):
        answer = uploaded(client, name)
        assert (answer.status_code, answer.json()["error"]["id"]) == (400, "AX966"), name


HOSTILE_NAMES = (
    "a\x00b",
    "\x00",
    "a\u202etxt.exe",
    "a\u200bb",
    "a\u2028b",
    "\ufeffa",
    "a\x1b[31m",
    "..\u2215a",
    "C:\\a",
    "\\\\host\\a",
    "a:stream",
    "a/",
    "/etc/passwd",
    "./a",
    "a.",
    "a ",
    " a",
    "\ud800",
    "%2e%2e/a",
)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_of_an_upload_is_refused_by_either_way(client, files, name):
    if name.encode("utf-8", "ignore").decode() == name:  # else no client can send it
        plain = uploaded(client, name)
        assert (plain.status_code, plain.json()["error"]["id"]) == (400, "AX966")
        form = client.post("/v1/files", files={"file": (name, b"rain")})
        made = form.json()["name"] if form.status_code == 201 else "refused"
        # a form's own escapes and folders are not taken for a name
        assert form.status_code in (201, 400)
        assert not set(made) & set("/\\:\x00\u202e\u200b\u2028\x1b")
    with pytest.raises(BadRequest):
        _checked(name)
    assert [each.name for each in files.root.rglob("*") if each.name == name] == []


def test_a_name_that_is_too_long_for_the_file_system_is_refused_and_nothing_stays(client, files):
    file = uploaded(client, "雨" * 200).json()["file_id"]  # 600 bytes
    body = {"workflow": "copying", "files": [file], "input": {"name": "a.txt"}}
    answer = client.post("/v1/runs", json=body)
    assert (answer.status_code, answer.json()["error"]["id"]) == (400, "AX966")
    assert [each.name for each in files.root.iterdir()] == [".uploads"]


def test_a_folder_that_becomes_a_link_while_it_is_listed_is_not_entered(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    (outside / "secret.txt").write_text("x", "utf-8")
    for each in ("one", "two"):
        (folder / each).mkdir(parents=True)
        (folder / each / "own.txt").write_text("x", "utf-8")
    listing = _files(folder)
    first, _ = next(listing)[0]
    other = folder / ({"one", "two"} - {first}).pop()
    other.rename(tmp_path / "aside")
    other.symlink_to(outside)  # after it was seen as a folder
    assert [*listing] == []
    assert [*_files(folder)] == [((first, "own.txt"), 1)]
    folder.rename(tmp_path / "moved")
    folder.symlink_to(outside)
    assert [*_files(folder)] == []


def test_an_attachment_that_was_swapped_is_not_read_when_its_run_is_begun_again(client, files):
    upload = files.upload("ada", uploaded(client).json()["file_id"])
    place = files.root / "r/attachments"
    place.mkdir(parents=True)
    (files.root / "same.txt").write_bytes(b"rain")
    for make in (
        lambda: (place / "a.txt").symlink_to(files.root / "same.txt"),
        lambda: os.mkfifo(place / "a.txt"),
    ):
        make()
        with pytest.raises(BadRequest, match="other files"):
            files.attach("ada", [upload], "r")
        (place / "a.txt").unlink()


def test_files_of_another_caller_do_not_exist(client):
    mine = uploaded(client).json()["file_id"]
    run_id, listed = copied(client)
    ben = as_caller(BEN)
    assert client.get("/v1/files", headers=ben).json()["files"] == []
    body = {"workflow": "copying", "input": {"name": "a.txt"}, "files": [mine]}
    unknown = {**body, "files": ["0" * 32]}
    answers = [client.post("/v1/runs", json=each, headers=ben) for each in (body, unknown)]
    assert [each.status_code for each in answers] == [404, 404]
    assert answers[0].text.replace(mine, "0" * 32) == answers[1].text
    assert client.delete(f"/v1/files/{mine}", headers=ben).status_code == 404
    file_id = listed["files"][0]["file_id"]
    for path in (f"/v1/runs/{run_id}/files", f"/v1/runs/{run_id}/files/{file_id}"):
        assert client.get(path, headers=ben).status_code == 404
    eve = as_caller(EVE)
    assert client.post("/v1/files?name=a", content=b"x", headers=eve).status_code == 403
    assert client.delete(f"/v1/files/{mine}").status_code == 200
    assert client.delete(f"/v1/files/{mine}").status_code == 404


def test_what_curl_sends_as_data_has_the_media_type_of_its_name(client):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    made = client.post("/v1/files?name=a.csv", content=b"a,b\n", headers=headers).json()
    assert made["media_type"] == "text/csv"


def test_uploads_are_limited_in_size_one_by_one_and_together(client, files):
    parts = (b"x" * 400 for _ in range(3))  # of no stated length
    for content in (b"x" * 1001, parts):
        assert uploaded(client, "large", content).status_code == 413
    assert uploaded(client, "one", b"x" * 900).status_code == 201
    third = uploaded(client, "two", b"x" * 900)
    assert (third.status_code, third.json()["error"]["id"]) == (413, "AX964")
    assert [each["name"] for each in client.get("/v1/files").json()["files"]] == ["one"]
    left = [path for path in files.root.rglob("*") if path.is_file()]
    assert len(left) == 2  # the file, and what is known of it


def test_uploads_that_arrive_at_the_same_time_are_limited_together(files):
    async def go() -> list[Any]:
        is_first = asyncio.Event()

        async def of(name: str) -> Any:
            async def chunks() -> AsyncIterator[bytes]:
                yield b"x"  # by then it is known what was there before
                if name == "second":
                    await is_first.wait()
                yield b"x" * 899

            try:
                return await files.save("ada", name, "", chunks())
            finally:
                is_first.set()

        return await asyncio.gather(of("first"), of("second"), return_exceptions=True)

    first, second = asyncio.run(go())
    assert (first.size, type(second)) == (900, TooLarge)
    assert [each.name for each in files.uploads("ada")] == ["first"]
    assert len(list((files.root / ".uploads").rglob("content"))) == 1


def test_a_run_that_cannot_have_all_of_its_files_has_none(client, files):
    first, second = (uploaded(client, each).json()["file_id"] for each in ("a", "ü" * 200))
    body = {"workflow": "copying", "input": {"name": "a"}, "files": [first, second]}
    headers = {"idempotency-key": "k"}
    answer = client.post("/v1/runs", json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["id"]) == (400, "AX966")
    assert [each.name for each in files.root.iterdir()] == [".uploads"]
    other = uploaded(client, "a", b"snow").json()["file_id"]
    again = client.post("/v1/runs", json={**body, "files": [other]}, headers=headers)
    assert again.status_code == 201


def test_a_key_stands_for_the_files_too(client):
    first, other = (uploaded(client, content=text).json()["file_id"] for text in (b"a", b"b"))
    body = {"workflow": "copying", "input": {"name": "a.txt"}}
    headers = {"idempotency-key": "k"}
    answers = [
        client.post("/v1/runs", json={**body, "files": [file]}, headers=headers)
        for file in (first, first, other)
    ]
    assert [each.status_code for each in answers] == [201, 201, 400]
    assert answers[0].json() == answers[1].json()
    both = {**body, "files": [first, other]}
    assert client.post("/v1/runs", json=both).status_code == 400  # of one name


def test_two_servers_that_begin_one_run_leave_its_files_as_they_are(client, files):
    first, second = (
        files.upload("ada", uploaded(client, content=each).json()["file_id"])
        for each in (b"rain", b"snow")
    )
    for _ in range(2):
        files.attach("ada", [first], "r")
    with pytest.raises(BadRequest, match="other files"):
        files.attach("ada", [second], "r")
    assert (files.root / "r/attachments/a.txt").read_bytes() == b"rain"


def test_a_run_that_makes_its_folder_a_link_receives_nothing_by_it(client, files, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (files.root / "r").mkdir(parents=True)
    (files.root / "r/attachments").symlink_to(elsewhere)
    upload = files.upload("ada", uploaded(client).json()["file_id"])
    with pytest.raises(BadRequest, match="other files"):
        files.attach("ada", [upload], "r")
    assert list(elsewhere.iterdir()) == []


def test_a_run_that_does_not_begin_leaves_no_folder(client, files):
    file = uploaded(client).json()["file_id"]
    wrong = {"workflow": "copying", "input": 5, "files": [file]}
    assert client.post("/v1/runs", json=wrong).status_code == 422
    assert [each.name for each in files.root.iterdir()] == [".uploads"]


def test_the_folder_of_a_run_is_removed_with_its_record_and_not_before_its_end(client, files):
    run_id, _ = copied(client)
    kept, _ = copied(client)
    assert client.delete(f"/v1/runs/{run_id}", headers=as_caller(BEN)).status_code == 404
    assert client.delete(f"/v1/runs/{run_id}").status_code == 200
    assert client.get(f"/v1/runs/{run_id}").status_code == 404
    assert client.get(f"/v1/runs/{run_id}/files").status_code == 404
    assert [path.name for path in files.root.iterdir() if path.name[0] != "."] == [kept]
    body = {"workflow": "asking", "input": {"amount": 1}}
    waiting = client.post("/v1/runs", json=body).json()["run_id"]
    refused = client.delete(f"/v1/runs/{waiting}")
    assert (refused.status_code, refused.json()["error"]["id"]) == (409, "AX506")


def test_old_runs_of_servers_and_old_uploads_are_removed(client, files):
    service: RunService = client.app._app.routes[0].endpoint.__self__.service
    assert service.keep_seconds is None
    run_id, _ = copied(client)
    greeting().invoke({"name": "x"}, journal=service.journal, run_id="mine")  # by no server
    service.keep_seconds = 60

    def tidied(seconds: float) -> int:
        return client.portal.call(service.tidy, time.time() + seconds)

    assert tidied(0) == 0
    assert len(client.get("/v1/files").json()["files"]) == 1
    assert tidied(61) == 1
    assert not (files.root / run_id).exists()
    assert client.get("/v1/files").json()["files"] == []
    assert [info.run_id for info in service.journal.runs()] == ["mine"]


def test_a_server_removes_old_runs_while_it_is_at_work(tmp_path):
    async def left() -> list[str]:
        journal, ada = MemoryJournal(), Caller(name="ada")
        first = RunService(journal, {"greeting": greeting()}, files=RunFiles(tmp_path))
        async with first.running():
            run_id = await first.start(ada, "greeting", {"name": "x"})
            await first.engine.result(run_id)
        (tmp_path / run_id).mkdir()
        later = RunService(journal, files=RunFiles(tmp_path), keep_seconds=-60.0)
        async with asyncio.timeout(60), later.running():
            while journal.runs() or (tmp_path / run_id).exists():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        return [path.name for path in tmp_path.iterdir()]

    assert asyncio.run(left()) == []


def test_what_was_looked_at_and_stays_is_not_looked_at_again(monkeypatch):
    read: list[str] = []

    async def go() -> None:
        journal = MemoryJournal()
        entries = journal.entries
        monkeypatch.setattr(journal, "entries", lambda run: (read.append(run), entries(run))[1])
        service = RunService(journal, {"greeting": greeting()}, keep_seconds=1.0)
        for name in ("a", "b"):
            await greeting().run({"name": "x"}, journal=journal, run_id=name)  # by no server
            service.records.owned.clear()
            read.clear()
            await service.tidy(time.time() + 1.0)
            assert set(read) == {name}

    asyncio.run(go())


def test_of_many_old_runs_a_part_is_looked_at_at_a_time(monkeypatch):
    monkeypatch.setattr("axil_serve.service._PAGE", 1)
    monkeypatch.setattr("axil_serve.service._TIDY_MOST", 2)
    read: list[str] = []

    async def go() -> None:
        journal, ada, now = MemoryJournal(), Caller(name="ada"), time.time() + 9.0
        entries = journal.entries
        monkeypatch.setattr(journal, "entries", lambda run: (read.append(run), entries(run))[1])
        service = RunService(journal, {"greeting": greeting()}, keep_seconds=1.0)
        async with service.running():
            await service.engine.result(await service.start(ada, "greeting", {"name": "old"}))
        for name in "abcde":
            await greeting().run({"name": "x"}, journal=journal, run_id=name)  # by no server
        service.records.owned.clear()
        read.clear()
        assert [await service.tidy(now) for _ in range(2)] == [0, 0]
        assert read == ["e", "d", "c", "b"]
        journal.forget("b")  # behind which the next part would begin
        assert [await service.tidy(now) for _ in range(3)] == [0, 0, 1]
        assert {info.run_id for info in journal.runs()} == {"a", "c", "d", "e"}
        read.clear()
        assert await service.tidy(now) == 0
        assert len(read) <= 1  # all that is older was looked at

    asyncio.run(go())


def test_the_owners_of_so_many_runs_are_known_at_once(monkeypatch):
    monkeypatch.setattr("axil_serve.records._KNOWN", 2)

    async def go() -> None:
        journal, ada = MemoryJournal(), Caller(name="ada")
        service = RunService(journal, {"greeting": greeting()})
        async with service.running():
            runs = [await service.start(ada, "greeting", {"name": "x"}) for _ in range(4)]
            for run_id in runs:
                await service.engine.result(run_id)
                assert service.records.kept(run_id)["owner"] == "ada"
        assert list(service.records.owned) == runs[-2:]

    asyncio.run(go())
