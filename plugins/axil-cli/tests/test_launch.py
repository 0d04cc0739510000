"""Options that plugins add to ``axil run``."""

from __future__ import annotations

from argparse import ArgumentParser
from importlib import metadata
from types import SimpleNamespace

import pytest

from axil.plugin import (
    ComponentBlocked,
    Policy,
    Registry,
    component_index,
    install_advice,
    use_registry,
)
from axil_cli import launch
from axil_cli.command import Exit
from axil_cli.main import main


class Shout:
    """say it LOUDLY, 100 %"""

    def prepare(self, value, launch):
        assert value is True
        launch.inputs.append(lambda text, workflow: f"{text.upper()} to {workflow.spec.id}")


class Tone:
    """the tone of everything"""

    metavar = "TONE"
    excludes = ("shout",)

    def prepare(self, value, launch):
        launch.reading["vars"]["tone"] = value


class Mark:
    """observers that mark"""

    metavar = "WORD"
    repeated = True

    def prepare(self, value, launch):
        launch.tell(f"marks: {value}")
        launch.observers.append(
            SimpleNamespace(run_finished=lambda run_id: launch.tell(f"finished {run_id}"))
        )
        launch.running["run_id"] = "the-run"
        launch.within.callback(launch.tell, "closed")


@pytest.fixture
def contributed(registry):
    for name, option in {
        "run.shout": Shout,
        "run.tone": Tone,
        "run.mark": Mark,
        "check.mark": Mark,
    }.items():
        registry.register("options", name, option)
    return registry


@pytest.fixture
def file(flow):
    said = {"id": "b", "type": "say", "config": {"text": "in a ${tone} tone"}}
    return flow(["a echo", said], ["a b"], vars={"tone": "dry"})


def test_an_option_changes_what_goes_in(axil, contributed, flow):
    file = flow(["a echo"], id="everybody")
    assert axil("run", file, "--shout", "--input", "hello").out == "HELLO to everybody\n"
    assert axil("run", file, "--input", "hello").out == "hello\n"


def test_an_option_changes_how_a_file_is_read(axil, contributed, file):
    assert axil("run", file, "--tone", "wet").out == "in a wet tone\n"
    assert axil("run", file, "--tone=").out == "in a  tone\n"


def test_an_option_changes_how_a_run_is_made_and_holds_things_open(axil, contributed, file):
    done = axil("run", file, "--mark", "a", "--format", "json", "--mark=b")
    assert done.data["run_id"] == "the-run"
    assert done.err == "marks: ['a', 'b']\nfinished the-run\nclosed\n"


def test_what_is_held_open_is_closed_when_nothing_can_run(axil, contributed, tmp_path):
    done = axil("run", tmp_path / "none.json", "--mark", "a")
    assert done.code == Exit.MISUSE
    assert done.err.startswith("marks: ['a']\nclosed\nerror: AX100 ")


def test_options_that_exclude_each_other_are_refused_in_any_order(axil, contributed, file):
    for order in (["--shout", "--tone", "x"], ["--tone", "x", "--shout"]):
        done = axil("run", file, *order)
        assert done.code == Exit.MISUSE
        assert done.err.startswith("error: AX700 --")
        assert "cannot be used together with --" in done.err


def test_an_option_of_a_sub_command_is_not_missed_by_another(axil, tmp_path):
    # `runs resume --prompts` is a plugin's, `runs show --prompts` is its own
    done = axil("runs", "show", "x", "--prompts", "--journal", str(tmp_path))
    assert done.err.startswith("error: AX")


def test_help_shows_all_and_a_broken_one_says_so(axil, contributed):
    contributed.register("options", "run.wrong", object())
    reported = axil("run", "--help").out
    assert "--shout" in reported
    assert "say it LOUDLY, 100 %" in reported
    assert "--mark WORD" in reported
    assert "AX305" in reported
    assert "--wrong" not in axil("check", "--help").out


def test_an_option_is_imported_only_when_it_is_typed(capsys, flow):
    dist = SimpleNamespace(name="acme", version="1", requires=None)
    broken = SimpleNamespace(
        name="run.broken", group="axil.options", value="no_such_module:X", dist=dist
    )
    installed = [e for each in metadata.distributions() for e in each.entry_points]
    with use_registry(Registry(entry_points=[*installed, broken])) as known:
        known.register("nodes", "echo", lambda messages: messages)
        file = flow(["a echo"])
        assert main(["run", file, "--input", "x"]) == 0
        capsys.readouterr()
        assert main(["run", file, "--broken"]) == Exit.MISUSE
    assert capsys.readouterr().err.startswith(
        'error: AX304 --broken: the option "run.broken" is provided by acme 1'
    )


def test_the_option_of_another_command_is_unknown(axil, contributed, file):
    assert "unrecognized arguments: --tone" in axil("check", file, "--tone", "x").err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["run", "FILE", "--inputs", "x"], "--input"),
        (["show", "FILE", "--format", "mermiad"], "mermaid"),
        (["runs", "lst"], "list"),
        (["runs", "list", "--limt", "3"], "--limit"),
    ],
)
def test_a_misspelt_argument_is_answered_with_the_one_that_is_meant(axil, file, given, meant):
    done = axil(*(file if each == "FILE" else each for each in given))
    assert done.code == 2
    assert done.err.endswith(f'. Did you mean "{meant}"?\n')


def test_the_commands_own_options_are_its_own(axil, registry, file):
    registry.register("options", "run.input", Shout)
    assert axil("run", file, "--input", "x").out == "in a dry tone\n"


def test_an_option_that_is_not_installed_says_what_to_install(axil, file, monkeypatch):
    monkeypatch.setitem(component_index(), "options:run.far", "axil-far")
    assert axil("run", file, "--far", "x").err == (
        'error: AX301 --far: unknown option "run.far". It is provided by axil-far (not '
        f"installed): {install_advice('axil-far')}\n"
    )
    assert "unrecognized arguments: --near" in axil("run", file, "--near").err


def test_a_blocked_option_is_refused_and_not_in_the_help():
    far = SimpleNamespace(
        name="run.far",
        group="axil.options",
        value="far:X",
        dist=SimpleNamespace(name="axil-far", version="1"),
    )
    known = Registry(Policy(block=frozenset({"axil-far"})), entry_points=[far])
    with pytest.raises(ComponentBlocked, match="--far: the option"):
        launch.add(ArgumentParser(), "run", known, ["--far"])
    parser = ArgumentParser()
    assert launch.add(parser, "run", known, ["--help"]) == {}
    assert "--far" not in parser.format_help()
