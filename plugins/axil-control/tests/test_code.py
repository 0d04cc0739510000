"""Laws of ``python``."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from axil.plugin import ComponentBlocked, has_failed, message
from axil_control.code import Python, environment, program
from axil_testing.members import ends


@pytest.fixture(autouse=True)
def without_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """These are about programs as they run without one; axil-process has tests of its own."""
    monkeypatch.setattr(
        "axil_process.programs.sandbox.find_sandbox", lambda name, **_: (None, name)
    )


SLEEP = "import time; time.sleep(600)"
FAILED = "==CODE EXECUTION FAILED=="


class Allowing:
    """A context of a run that allows code, or does not."""

    def __init__(self, workspace: Path | None = None, allowed: bool = True) -> None:
        self.workspace, self.allowed = workspace, allowed

    def allows(self, what: str) -> bool:
        return self.allowed and what == "code"


def ran(*came: str, workspace: Path | None = None, **config: Any) -> str:
    node = Python(Python.Config(**config))
    # all that the node asks of a context
    messages = asyncio.run(node.run([message(text) for text in came], Allowing(workspace)))
    assert len(messages) == 1
    assert messages[0]["role"] == "assistant"
    return messages[0]["content"]


def test_code_is_refused_unless_the_run_allows_it():
    with pytest.raises(ComponentBlocked, match="AX620"):
        # as above
        asyncio.run(Python().run([message("print(1)")], Allowing(allowed=False)))


def test_a_program_that_failed_is_known_as_such(run):
    assert has_failed(ran(code="raise ValueError"))
    assert not has_failed(ran(code="print(1)"))


def test_a_run_that_does_not_allow_code_fails_at_the_node(run):
    graph = {"nodes": [{"id": "P", "type": "python", "config": {}}], "edges": [], "start": ["P"]}
    result = run(graph, "print(1)")
    assert result.status == "failed"
    assert "AX620" in str(result.error)
    assert run(graph, "print(1)", allow=frozenset({"code"})).output == "1\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("print(1)", "print(1)"),
        ("Like so:\n```python\nprint(1)\n```\nand\n```\nprint(2)\n```", "print(1)"),
        ("```\n    a = 1\n    b = 2\n```", "a = 1\nb = 2"),
        ("``` \r\nprint(1)\r\n```", "print(1)"),
        (" \n", ""),
        ("```py\n```", ""),
    ],
)
def test_the_first_fenced_block_is_the_program_or_the_whole_text(text, code):
    assert program(text) == code


def test_the_last_message_is_run_and_its_output_is_the_answer():
    assert ran("print(1)", "```python\nprint(6*7)\n```") == "42\n"


def test_a_program_of_the_config_is_run_whatever_came():
    assert ran("print(1)", code="print('mine')") == "mine\n"


def test_without_a_program_the_answer_says_so():
    assert ran() == ran(" ") == f"{FAILED}\nNo executable code segment found"


def test_a_failed_program_is_an_answer():
    assert ran("raise SystemExit(3)") == f"{FAILED}\nScript execution failed\nexit_code=3"
    failed = ran("import sys\nsys.exit('why')")
    assert failed == f"{FAILED}\nScript execution failed\nexit_code=1\nstderr:\nwhy\n"


def test_a_program_that_takes_too_long_is_killed_with_all_it_started():
    code = f"""
        import os, subprocess, sys, time
        print(os.getpid(), subprocess.Popen([sys.executable, "-c", {SLEEP!r}]).pid, flush=True)
        time.sleep(600)
    """
    for seconds in (0.5, 2, 20, 120):  # where it takes longer to begin, it has to be given longer
        answer = ran(code, timeout_seconds=seconds)
        assert answer.startswith(f"{FAILED}\nScript did not finish within {seconds}s")
        if pids := [int(pid) for pid in answer.partition("stderr:\n")[2].split()]:
            break
    assert len(pids) == 2
    assert all(map(ends, pids))


def test_a_program_that_leaves_something_behind_does_not_hold_up_the_answer():
    code = f"""
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", {SLEEP!r}], start_new_session={{apart}})
        print("done")
    """
    assert ran(code.format(apart=False), timeout_seconds=120) == "done\n"


def test_a_cancelled_program_is_killed(tmp_path):
    async def cancelled() -> int:
        node = Python(Python.Config(timeout_seconds=60))
        code = (
            "import os, time\nopen('pid.tmp', "
            "'w').write(str(os.getpid()))\nos.rename('pid.tmp', "
            "'pid')\ntime.sleep(60)"
        )
        # as above
        job = asyncio.ensure_future(node.run([message(code)], Allowing(tmp_path)))
        # the program is another process: there is no event to wait for
        while not (tmp_path / "pid").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        return int((tmp_path / "pid").read_text())

    assert ends(asyncio.run(cancelled()))
    assert [file.name for file in tmp_path.iterdir()] == ["pid"]


def test_output_is_cut_at_its_limit():
    assert ran("print('x' * 100000)", output_limit=10) == "xxxxxxxxxx\n[output cut after 10 bytes]"
    assert ran("print('123456789')", output_limit=10) == "123456789\n"


def test_a_program_runs_in_the_workspace_and_leaves_what_it_made(tmp_path):
    assert ran("open('made.txt', 'w').write('x')", workspace=tmp_path) == ""
    (tmp_path / "mine.py").write_text("value = 7")
    assert ran("import mine; print(mine.value)", workspace=tmp_path) == "7\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["made.txt", "mine.py"]


def test_a_program_sees_no_secrets(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    seen = ran("import os; print(sorted(os.environ))", workspace=tmp_path, env={"MINE": "1"})
    assert "OPENAI_API_KEY" not in seen
    assert "'MINE'" in seen
    assert ran("import os; print(os.path.expanduser('~'))", workspace=tmp_path) == f"{tmp_path}\n"


def test_only_harmless_variables_are_passed_on():
    around = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "x", "PYTHONSTARTUP": "x", "LD_PRELOAD": "x"}
    passed = environment(Python.Config(), Path("w"), around)
    assert passed == {
        "PATH": "/bin",
        "HOME": "w",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def test_a_program_gets_no_input():
    assert ran("import sys; print(repr(sys.stdin.read()), sys.argv[1:])") == "'' []\n"


def test_a_program_in_the_config_reads_what_came():
    assert ran("a", "ü", code="import sys; print(sys.stdin.read())") == "a\nü\n"
    assert ran("x" * 1_000_000, code="print(1)") == "1\n"


def test_a_program_can_import_what_is_installed():
    assert ran("import pydantic; print('yes')") == "yes\n"


def test_an_interpreter_that_is_not_there_is_an_answer():
    assert (
        ran("print(1)", interpreter="no-such-python")
        == f"{FAILED}\nInterpreter no-such-python not found"
    )


def test_arguments_are_the_interpreters():
    assert (
        ran("import sys; print(sys.flags.optimize)", args=("-O",), interpreter=sys.executable)
        == "1\n"
    )


@pytest.mark.skipif(os.name != "posix", reason="encodings of the terminal")
def test_output_is_decoded_as_it_is_encoded():
    assert ran("print('é')", encoding="latin-1") == "é\n"


@pytest.mark.parametrize(
    ("code", "config"),
    [("print(1)", {"encoding": "no-such-one"}), ("print('\ud800')", {})],
    ids=["its input", "its program"],
)
def test_a_program_that_cannot_be_written_leaves_nothing_in_the_workspace(tmp_path, code, config):
    with pytest.raises((LookupError, UnicodeError)):
        ran(code, workspace=tmp_path, **config)
    assert list(tmp_path.iterdir()) == []


def test_where_the_disk_is_full_nothing_is_left_in_the_workspace(tmp_path, monkeypatch):
    def full(*given: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("axil_control.code.tempfile.TemporaryFile", full)
    with pytest.raises(OSError, match="No space"):
        ran("print(1)", workspace=tmp_path)
    assert list(tmp_path.iterdir()) == []
