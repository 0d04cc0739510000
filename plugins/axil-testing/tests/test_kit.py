"""The shape of every kit: three lines make one, laws cannot be overridden in silence, and pytest is
not needed.
"""

from __future__ import annotations

import asyncio
import sys
import textwrap
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from axil.plugin import Secret
from axil_testing.kit import Kit, check, claimed, require


class Sound:
    class Config(BaseModel, extra="forbid"):
        marks: int = 1
        key: Secret | None = None

    def __init__(self, config: Config) -> None:
        self.config = config

    async def close(self) -> None: ...


class TestSound(Kit):
    def make(self) -> Any:
        return Sound(Sound.Config(marks=2))


class Claiming(Kit):
    component = Sound
    colourful: ClassVar[bool] = False

    @claimed("colourful")
    def test_it_is_colourful(self) -> None:
        require(False, "it is grey")


def verdicts(component: Any) -> dict[str, str]:
    kit: Any = type("Given", (Kit,), {"component": component})
    return {outcome.law: outcome.reason for outcome in check(kit).failures}


def test_a_sound_component_passes():
    report = check(TestSound)
    assert report.is_fine
    assert report.count("passed") >= 4


def test_a_claim_adds_a_law():
    silent, loud = check(Claiming), check(type("Loud", (Claiming,), {"colourful": True}))
    assert (
        next(each for each in silent.outcomes if "colourful" in each.law).reason
        == "it does not claim colourful"
    )
    assert [each.reason for each in loud.failures] == ["it is grey"]


def test_a_law_is_not_overridden_in_silence():
    with pytest.raises(
        TypeError, match=r"Bad overrides Kit\.test_its_config_has_a_schema, a law of its kind"
    ):
        type("Bad", (Kit,), {"test_its_config_has_a_schema": lambda self: None})
    with pytest.raises(TypeError, match="a law of its kind"):
        type("Gone", (Kit,), {"test_its_config_has_a_schema": None})


def test_a_law_may_be_excused_with_a_reason():
    @pytest.mark.xfail(reason="its config is written by hand")
    def test_its_config_has_a_schema(self: Kit) -> None:
        raise AssertionError

    outcome = {
        each.law: each
        for each in check(
            type(
                "Excused",
                (Claiming,),
                {test_its_config_has_a_schema.__name__: test_its_config_has_a_schema},
            )
        ).outcomes
    }
    assert (
        outcome["its config has a schema"].verdict,
        outcome["its config has a schema"].reason,
    ) == (
        "excused",
        "its config is written by hand",
    )


def test_one_cause_fails_one_law_and_the_others_name_it():
    class Broken(Sound):
        def __init__(self, config: Sound.Config) -> None:
            self.key = confg  # type: ignore[name-defined]  # noqa: F821

        async def close(self) -> None: ...

    report = check(type("Given", (Kit,), {"component": Broken}))
    [failed] = [each for each in report.failures if each.reason.startswith("NameError")]
    assert failed.law == "making it has no effects"
    named = "it ends with the error of test_making_it_has_no_effects: NameError: "
    assert [each.law for each in report.outcomes if each.reason.startswith(named)] == [
        "a secret is never shown",
        "closing it twice is closing it once",
    ]


def test_a_constructor_with_effects_is_caught(tmp_path):
    class Writes:
        def __init__(self) -> None:
            (tmp_path / "log").write_text("x")

    assert "making it has no effects" in verdicts(Writes)


def test_a_config_that_takes_anything_is_caught():
    class Loose(Sound):
        class Config(BaseModel, extra="allow"): ...

    assert "an unknown key in its config is an error" in verdicts(Loose)


def test_a_secret_that_is_shown_is_caught():
    class Chatty(Sound):
        def __init__(self, config: Sound.Config) -> None:
            self.key = config.key.resolve().get_secret_value() if config.key else ""

    assert "a secret is never shown" in verdicts(Chatty)


def test_a_second_close_that_fails_is_caught():
    class Fragile(Sound):
        def __init__(self, config: Sound.Config) -> None:
            self.open = ["connection"]

        async def close(self) -> None:
            self.open.pop()

    assert "closing it twice is closing it once" in verdicts(Fragile)


def test_a_task_that_is_left_behind_is_caught():
    class Careless(Sound):
        async def close(self) -> None:
            self.task = asyncio.ensure_future(asyncio.sleep(60))

    assert "it leaves tasks behind" in verdicts(Careless)["closing it twice is closing it once"]


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("print('hello')", "prints"),
        ("import os; os.environ['X_KIT'] = '1'", "changes the environment"),
        (
            "import threading; threading.Thread(target=threading.Event().wait, "
            "daemon=True).start()",
            "starts a thread",
        ),
        (
            "import socket; socket.socket(socket.AF_UNIX).connect_ex('nowhere')",
            "connects to a socket",
        ),
        ("import subprocess, sys; subprocess.run([sys.executable, '-c', ''])", "starts a process"),
        ("import os; os.close(os.open(__file__, os.O_WRONLY))", "writes "),
        ("raise SystemExit(3)", "fails"),
    ],
)
def test_an_import_that_does_more_than_define_is_caught(tmp_path, monkeypatch, code, fault):
    name = f"kit_subject_{abs(hash(code))}"
    (tmp_path / f"{name}.py").write_text(f"class Part: ...\n{textwrap.dedent(code)}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    part = type("Part", (), {"__module__": name})
    reasons = verdicts(part)
    assert fault in reasons["importing it does nothing else"]
    assert name not in sys.modules


def test_an_import_whose_bytecode_is_kept_is_not_caught(tmp_path, monkeypatch):
    """As of a package that was just installed."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "")
    package = tmp_path / "kit_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("class Part: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    part = type("Part", (), {"__module__": "kit_package.parts"})
    assert "importing it does nothing else" not in verdicts(part)
    assert list(package.glob("__pycache__/*.pyc"))
