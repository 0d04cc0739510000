"""Docker and Podman: the command, with a program in the place of the client that records what it
is asked. What containers promise is in ``test_hostile``, where one of the two works.
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from axil_process import Bubblewrap, Docker, Place, Podman, find_sandbox, run_program
from axil_process.sandboxes import containers

_CLIENT = f"""#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
with open(os.path.join(folder, "calls"), "a") as file:
    file.write(json.dumps(words) + "\\n")
if os.path.exists(os.path.join(folder, "broken")):
    sys.exit("Cannot connect to the service.")
if words[0] == "image":
    sys.exit(not os.path.exists(os.path.join(folder, "image")))
if words[0] == "import":
    assert sys.stdin.buffer.read() == bytes(10240)
    open(os.path.join(folder, "image"), "w").close()
if words[0] == "info":
    print("[name=seccomp name=rootless]" if os.path.exists(folder + "/rootless") else "[]")
if words[0] == "run":  # the program alone: its supervisor is for a namespace of its own
    program = words[words.index("{containers._IMAGE}") + 7:]
    os.execvp(program[0], program)
"""


class Client:
    """The stand-in for a client, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def calls(self, what: str) -> list[list[str]]:
        lines = (self.folder / "calls").read_text().splitlines()
        return [call for call in map(json.loads, lines) if call[0] == what]


@pytest.fixture
def client(tmp_path, monkeypatch) -> Client:
    """A machine with the stand-in as its docker and its podman, and without bubblewrap."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("docker", "podman"):
        (folder / name).write_text(_CLIENT)
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(Bubblewrap, "problem", lambda self: "bwrap is not installed")
    for cached in (containers._problem, containers._is_rootless):
        cached.cache_clear()
    yield Client(folder)
    for cached in (containers._problem, containers._is_rootless):
        cached.cache_clear()


def values(command: list[str], option: str) -> list[str]:
    return [command[at + 1] for at, word in enumerate(command) if word == option]


def test_docker_is_used_where_bubblewrap_is_not_and_makes_its_empty_image_once(client):
    for _ in range(2):
        found, why = find_sandbox()
        assert isinstance(found, Docker), why
    assert [call[:2] for call in client.calls("import")] == [["import", "-"]]
    assert isinstance(find_sandbox("podman")[0], Podman)


def test_podman_is_used_where_docker_is_not(client):
    (client.folder / "docker").unlink()
    assert isinstance(find_sandbox()[0], Podman)


def test_where_none_works_each_says_why(client):
    (client.folder / "broken").touch()
    (client.folder / "podman").unlink()
    assert find_sandbox() == (
        None,
        "bwrap is not installed; docker does not work here (Cannot connect to the service.); "
        "the program podman is not installed",
    )


@pytest.mark.parametrize("kind", [Docker, Podman])
def test_a_container_has_no_network_no_rights_limits_and_one_folder_to_write(
    client, tmp_path, kind
):
    folder = tmp_path / "w, mine"
    folder.mkdir()
    given = tmp_path / "given"
    given.touch()
    place = Place(folder=folder, reads=[given], memory_bytes=1 << 28, processes=9, seconds=5)
    launch = kind().launch(["prog", "--privileged"], place)
    command = launch.command
    options = command[: command.index(containers._IMAGE)]
    assert command[1] == "run"
    assert {"--rm", "--read-only"} <= set(options)
    for option, value in {
        "--network": "none",
        "--cap-drop": "ALL",
        "--security-opt": "no-new-privileges",
        "--pull": "never",
        "--log-driver": "none",
        "--memory": str(1 << 28),
        "--memory-swap": str(1 << 28),
        "--pids-limit": "10",
        "--user": f"{os.getuid()}:{os.getgid()}",
        "--workdir": str(folder),
    }.items():
        assert values(options, option) == [value]
    mounts = [next(csv.reader([mount])) for mount in values(options, "--mount")]
    written = [mount for mount in mounts if "readonly" not in mount]
    assert written == [["type=bind", f"source={folder}", f"target={folder}"]]
    targets = {mount[2].removeprefix("target=") for mount in mounts}
    assert {"/usr", str(given)} <= targets
    assert not {"/", "/etc", "/home", "/root", "/var", str(Path.home())} & targets
    assert "--privileged" not in options
    assert command[-2:] == ["prog", "--privileged"]
    limits = json.loads(command[-3])
    assert (limits["memory_bytes"], limits["processes"], limits["seconds"]) == (1 << 28, 9, 5)
    name = values(options, "--name")[0]
    assert launch.ends == [command[0], "rm", "--force", name]


def test_a_container_of_a_service_without_rights_is_its_own_root(client):
    (client.folder / "rootless").touch()
    assert values(Docker().launch(["prog"], Place()).command, "--user") == ["0:0"]


def test_a_secret_is_passed_by_its_name_and_the_client_keeps_what_is_its_own(client, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///somewhere")
    monkeypatch.setenv("API_KEY", "of axil")
    wanted = {"TOKEN": "secret", "HOME": "/w", "LD_PRELOAD": "x.so", "DOCKER_HOST": "tcp://evil"}
    launch = Docker().launch(["prog"], Place(variables=wanted))
    stated = values(launch.command, "--env")
    assert stated == ["TOKEN", "HOME=/w", "LD_PRELOAD=x.so", "DOCKER_HOST=tcp://evil"]
    assert launch.variables["DOCKER_HOST"] == "unix:///somewhere"
    assert launch.variables["TOKEN"] == "secret"
    assert not {"API_KEY", "LD_PRELOAD"} & launch.variables.keys()


def test_a_container_that_is_cancelled_is_ended_and_one_that_ends_is_not(client, tmp_path):
    async def go(code: str, **options: Any) -> Any:
        launch = Docker().launch([sys.executable, "-c", code], Place(folder=tmp_path))
        given = {"env": launch.variables, "ends": launch.ends, "cwd": tmp_path, **options}
        return await run_program(launch.command, output_bytes=100, timeout_seconds=60, **given)

    async def cancelled() -> None:
        code = "import time; open('begun', 'w').close(); time.sleep(60)"
        job = asyncio.ensure_future(go(code))
        # the program is another process: there is no event to wait for
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    assert asyncio.run(go("print('out')")).stdout == b"out\n"
    assert client.calls("rm") == []
    asyncio.run(cancelled())
    name = values(client.calls("run")[-1], "--name")[0]
    assert client.calls("rm") == [["rm", "--force", name]]
