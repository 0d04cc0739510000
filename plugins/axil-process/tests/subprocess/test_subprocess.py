"""Programs in process groups of their own: nothing of them is left, and nothing grows."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from axil_process import Child, Ended, run_program
from axil_testing.members import ends, is_gone

SLEEP = "import time; time.sleep(600)"


def program(code: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code)]


def ran(code: str, *, timeout_seconds: float | None = 120, output_bytes: int = 1000) -> Ended:
    given = program(code)
    return asyncio.run(
        run_program(given, timeout_seconds=timeout_seconds, output_bytes=output_bytes)
    )


async def started(code: str) -> tuple[Child, int]:
    """Start a program, and wait until it has written a number; return both."""
    child = await Child.start(program(code))
    assert child.process.stdout is not None
    return child, int(await child.process.stdout.readline())


def test_a_program_ends_with_its_code_and_its_outputs():
    ended = ran("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (3, b"out\n", b"err\n")
    assert not ended.is_stdout_cut


def test_output_beyond_its_limit_is_dropped_and_holds_up_nothing():
    ended = ran("print('x' * 10_000_000)", output_bytes=10)
    assert (ended.exit_code, ended.stdout, ended.is_stdout_cut) == (0, b"x" * 10, True)
    assert not ended.is_stderr_cut


def test_output_as_long_as_its_limit_is_whole():
    ended = ran("print('123456789')", output_bytes=10)
    assert (ended.stdout, ended.is_stdout_cut) == (b"123456789\n", False)


def test_a_program_whose_time_is_up_is_killed_with_all_it_started():
    code = f"""
        import os, subprocess, sys, time
        print(os.getpid(), subprocess.Popen([sys.executable, "-c", {SLEEP!r}]).pid, flush=True)
        time.sleep(600)
    """
    for seconds in (0.5, 2, 20, 120):  # where it takes longer to begin, it has to be given longer
        ended = ran(code, timeout_seconds=seconds)
        assert ended.exit_code is None
        if pids := [int(pid) for pid in ended.stdout.split()]:
            break
    assert len(pids) == 2
    assert all(map(ends, pids))


def test_what_a_program_leaves_behind_holds_up_nothing_and_is_killed():
    code = f"""
        import subprocess, sys
        print(subprocess.Popen([sys.executable, "-c", {SLEEP!r}]).pid)
    """
    ended = ran(code)
    assert ended.exit_code == 0
    assert ends(int(ended.stdout))


def test_what_a_program_leaves_behind_in_silence_is_killed_as_well():
    code = f"""
        import subprocess, sys
        quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        print(subprocess.Popen([sys.executable, "-c", {SLEEP!r}], **quiet).pid)
    """
    assert ends(int(ran(code).stdout))


def test_a_program_whose_run_is_cancelled_is_gone_before_the_run_is(tmp_path):
    code = f"""
        import os, time
        open("pid.tmp", "w").write(str(os.getpid()))
        os.rename("pid.tmp", "pid")
        {SLEEP}
    """

    async def cancelled() -> bool:
        doing = run_program(program(code), timeout_seconds=None, output_bytes=10, cwd=tmp_path)
        job = asyncio.ensure_future(doing)
        # the program is another process: there is no event to wait for
        while not (tmp_path / "pid").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        return is_gone(int((tmp_path / "pid").read_text()))

    assert asyncio.run(cancelled())


def test_a_program_that_ends_when_its_input_does_is_sent_no_signal():
    async def code_of_one() -> int | None:
        child, _ = await started(
            "print(1, flush=True); input_ended = __import__('sys').stdin.read()"
        )
        await child.end(grace_seconds=120)
        return child.process.returncode

    assert asyncio.run(code_of_one()) == 0


def test_a_signal_reaches_all_that_a_program_started():
    code = f"""
        import subprocess, sys
        print(subprocess.Popen([sys.executable, "-c", {SLEEP!r}]).pid, flush=True)
        {SLEEP}
    """

    async def signalled() -> tuple[int | None, int]:
        child, inner = await started(code)
        child.signal(signal.SIGTERM)
        assert await child.exited()
        await child.kill()
        return child.process.returncode, inner

    code_of_child, inner = asyncio.run(signalled())
    assert code_of_child == -signal.SIGTERM
    assert ends(inner)


def test_a_program_that_is_deaf_is_killed():
    code = f"""
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(1, flush=True)
        {SLEEP}
    """

    async def code_of_one() -> int | None:
        child, _ = await started(code)
        await child.end(grace_seconds=0.05)
        return child.process.returncode

    assert asyncio.run(code_of_one()) == -signal.SIGKILL


def test_no_pipe_is_left_open():
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("this system does not list open files")

    async def counts() -> tuple[int, int]:
        await run_program(
            program(""), timeout_seconds=120, output_bytes=10
        )  # asyncio keeps some for itself
        before = len(os.listdir(folder))
        for _ in range(3):
            await run_program(program(""), timeout_seconds=120, output_bytes=10)
            child, _ = await started(f"print(1, flush=True); {SLEEP}")
            await child.kill()
        return before, len(os.listdir(folder))

    before, after = asyncio.run(counts())
    assert after <= before


def test_a_program_that_is_not_there_cannot_be_started():
    with pytest.raises(FileNotFoundError):
        asyncio.run(run_program(["/there/is/no/such/program"], timeout_seconds=1, output_bytes=1))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("is_leader_gone", [False, True])
def test_a_program_that_is_deaf_does_not_outlive_a_parent_that_is_killed(is_leader_gone):
    deaf = f"""
        import os, subprocess, sys, time
        inner = subprocess.Popen([sys.executable, "-c", {SLEEP!r}])
        print(os.getpid(), inner.pid, flush=True)
        {"os._exit(0)" if is_leader_gone else "time.sleep(600)"}
    """
    parent = f"""
        import asyncio, os, signal, sys
        from axil_process import Child

        async def main():
            for _ in range(2):
                child = await Child.start({program(deaf)!r}, ends_with_parent=True)
                print((await child.process.stdout.readline()).decode().strip(), flush=True)
            print("ready", flush=True)
            await asyncio.sleep(600)

        asyncio.run(main())
    """
    with subprocess.Popen(program(parent), stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        pids = [int(each) for each in "".join(iter(client.stdout.readline, "ready\n")).split()]
        assert len(pids) == 4
        client.kill()
    for pid in pids:
        assert ends(pid), pid


def test_a_program_that_has_ended_is_not_killed_later(monkeypatch):
    told: list[int] = []
    monkeypatch.setattr("axil_process.programs.child.tell_watchdog", told.append)

    async def go() -> int:
        child = await Child.start(program(SLEEP), ends_with_parent=True)
        await child.kill()
        await child.kill()
        return child.process.pid

    pid = asyncio.run(go())
    assert told == [pid, -pid]
