"""Laws of the command itself: options for all, and the way to a sub-command."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import pytest

from axil import Problem, hookimpl
from axil.plugin import Policy, Registry, use_registry
from axil_cli.command import Exit, can_show, clean, without_repeats, write
from axil_cli.main import main


def in_a_process(*arguments: str, stdin: str = "", **more):
    return subprocess.run(
        [sys.executable, "-m", "axil_cli.main", *arguments],
        capture_output=True,
        text=True,
        input=stdin,
        timeout=600,
        **more,
    )


def test_the_command_runs_as_a_process(flow):
    file = flow(["a nothing_of_that_name"])
    done = in_a_process("check", file)
    assert done.returncode == Exit.MISUSE
    assert 'unknown node type "nothing_of_that_name"' in done.stdout
    assert (
        in_a_process("--version").stdout
        == f"axil {version('axil-core')} (axil-cli {version('axil-cli')})\n"
    )


def test_a_reader_that_has_enough_is_no_error():
    with subprocess.Popen(
        [sys.executable, "-m", "axil_cli.main", "schema"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_without_a_command_help_is_shown(axil):
    done = axil()
    assert done.code == Exit.MISUSE
    assert "COMMAND" in done.err


def test_help_lists_commands_without_importing_them(axil, registry):
    done = axil("--help")
    assert done.code == 0
    words = " ".join(done.out.split())
    for line in ("run run a workflow", "schema print", "batch run a", "worker execute the runs"):
        assert line in words
    assert "hello" in done.out
    listed = done.out.partition("commands:\n")[2].splitlines()
    bare = [line.split() for line in listed if len(line.split()) < 4 or "None" in line]
    assert bare == [["hello", "(this", "process)"]]  # each of ours says what it does


def test_help_says_what_commands_of_others_do_without_importing_them(capsys):
    about = {"Summary": "Counts stars. MCP servers"}
    dist = SimpleNamespace(name="acme-stars", version="1", requires=None, metadata=about)
    silent = SimpleNamespace(name="acme-silent", version="1", requires=None)
    entries = [
        SimpleNamespace(name="stars", group="axil.commands", value="no_such_module:X", dist=dist),
        SimpleNamespace(name="quiet", group="axil.commands", value="no_such_module:X", dist=silent),
    ]
    with use_registry(Registry(entry_points=entries)):
        assert main([]) == Exit.MISUSE
    reported = capsys.readouterr().err
    assert "  stars  counts stars. MCP servers (acme-stars)\n" in reported
    assert "  quiet  (acme-silent 1)\n" in reported


def test_the_settings_of_the_folder_hold_for_the_command(axil, tmp_path, monkeypatch):
    (tmp_path / "axil.toml").write_text('[plugins]\nblock = ["commands:schema"]\n')
    assert axil("schema").code == 0
    monkeypatch.chdir(tmp_path)
    assert axil("schema").err.startswith('error: AX303 the command "schema"')


def test_every_command_of_ours_has_help(axil):
    for name in ("run", "check", "show", "schema"):
        done = axil(name, "--help")
        assert done.code == 0
        assert done.out.startswith(f"usage: axil {name} ")


def test_an_unknown_command_gets_a_proposal(axil):
    done = axil("rnu", "file")
    assert done.code == Exit.MISUSE
    assert done.err.startswith('error: AX301 unknown command "rnu". Did you mean "run"')


def test_anybody_can_provide_a_command(axil):
    assert axil("hello", "you") == (7, "hello you\n", "")


def test_a_command_that_is_none_is_the_plugins_fault(axil, registry):
    registry.register("commands", "wrong", object())
    done = axil("wrong")
    assert (done.code, done.err[:12]) == (Exit.MISUSE, "error: AX305")


def test_a_broken_command_costs_only_itself(capsys, flow):
    class Point(SimpleNamespace):
        """An entry point."""

    dist = SimpleNamespace(name="acme", version="1", requires=None)
    broken = Point(name="broken", group="axil.commands", value="no_such_module:X", dist=dist)
    fine = Point(name="schema", group="axil.commands", value="axil_cli.schema:Schema", dist=dist)
    with use_registry(Registry(entry_points=[broken, fine])):
        assert main(["schema"]) == 0
        capsys.readouterr()
        assert main(["broken"]) == Exit.MISUSE
    assert capsys.readouterr().err.startswith("error: AX304 ")


class Breaks:
    """Looks something up that is not there."""

    def configure(self, parser):
        """It has no options."""

    def run(self, options, session):
        return {}["the key"]


def test_what_a_plugins_command_did_not_expect_names_the_plugin(axil, registry, monkeypatch):
    registry.register("commands", "breaks", Breaks, "acme-tools")
    assert axil("breaks") == (
        Exit.MISUSE,
        "",
        "error: AX300 the command \"breaks\" of acme-tools failed (KeyError: 'the key'). "
        "Report it to the plugin's owner; AXIL_DEBUG=1 prints the traceback.\n",
    )
    monkeypatch.setenv("AXIL_DEBUG", "1")
    with pytest.raises(KeyError):
        axil("breaks")


@pytest.mark.parametrize(
    "options", [["--no-plugins"], ["--only-plugins", "axil-cli"], ["--only-plugins", "axil-core"]]
)
def test_policy_leaves_the_kernel_and_the_command(axil, flow, options):
    done = axil(*options, "check", flow(["a echo"]))
    assert done.code == Exit.MISUSE
    assert "AX301" in done.out
    assert axil(*options, "schema").code == 0


def test_a_plugin_that_is_not_there_is_refused_where_only_it_is_wanted(axil):
    done = axil("--only-plugins", "axil-agnt", "schema")
    assert done.code == Exit.MISUSE
    assert 'no plugin is called "axil-agnt". Did you mean "axil-agent"?' in done.err


def test_policy_of_the_environment_admits_the_command(capsys, monkeypatch):
    monkeypatch.setenv("AXIL_PLUGINS", "acme")
    with use_registry(Registry(Policy.from_environment())):
        assert main(["schema"]) == 0


def test_settings_without_meaning_are_said(capsys, monkeypatch):
    monkeypatch.setenv("AXIL_PLUGINS_MODE", "sometimes")
    assert main(["--no-plugins", "schema"]) == Exit.MISUSE
    assert capsys.readouterr().err.startswith("error: AX135 ")
    assert main(["--help"]) == 0


def test_debugging_lets_errors_through(axil, tmp_path, monkeypatch):
    monkeypatch.setenv("AXIL_DEBUG", "1")
    with pytest.raises(Exception, match="AX100"):
        main(["run", str(tmp_path / "none.json")])


def test_text_does_not_steer_a_terminal():
    assert (
        clean("a\x1b]52;c;x\x07 \u202e\r\n\tb\ud800") == "a\\x1b]52;c;x\\x07 \\u202e\\r\n\tb\\ud800"
    )
    assert clean("Größe 👩‍🌾 日本") == "Größe 👩‍🌾 日本"


def test_what_an_encoding_lacks_is_written_as_an_escape():
    import io

    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write(stream, "é→")
    assert raw.getvalue() == b"\\xe9\\u2192"
    assert not can_show(stream, "→")


def test_a_reader_that_leaves_early_is_seen_in_the_exit_code(flow):
    with subprocess.Popen(
        [sys.executable, "-m", "axil_cli.main", "schema"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == Exit.UNREAD == 141


# --------------------------------------------------------------------------------------------------


class Misspelt:
    """Means to count the nodes that fire."""

    @hookimpl
    def node_finish(self):
        raise AssertionError("there is no such hook")


class Counter:
    """Says what fired."""

    @hookimpl
    def firing_finished(self, activation):
        sys.stderr.write(f"fired {activation.path}\n")


@pytest.fixture
def hooked(registry):
    registry.register("hooks", "counter", Counter)
    registry.register("hooks", "nothing", object())
    registry.register("hooks", "misspelt", Misspelt)
    return registry


def test_an_installed_hook_plugin_acts_only_where_it_is_named(axil, flow, hooked, monkeypatch):
    file = flow(["a echo"])
    assert axil("run", file, "--input", "x").err == ""
    assert axil("--hook", "counter", "--hook", "counter", "run", file, "--input", "x") == (
        0,
        "x\n",
        "fired a\n",
    )
    monkeypatch.setenv("AXIL_HOOKS", " counter ,")
    assert axil("run", file, "--input", "x").err == "fired a\n"
    assert axil("check", file).code == axil("show", file).code == 0


def test_a_hook_plugin_that_is_not_one_is_reported(axil, flow, hooked):
    assert axil("--hook", "countre", "run", flow(["a echo"])).err.startswith(
        'error: AX301 unknown hook plugin "countre". Did you mean'
    )
    for name in ("nothing", "misspelt"):
        refused = axil("--hook", name, "run", flow(["a echo"])).err
        assert refused.startswith(f'error: AX305 the hook plugin "{name}" ')


def test_what_is_wrong_in_the_same_way_at_several_places_is_reported_once():
    problems = [
        Problem("AX1", f"/tmp/a.yaml:{n} here", "it is wrong.", "Mend it.") for n in (1, 2, 2)
    ] + [Problem("AX2", "", "another.")]
    assert without_repeats(problems) == [
        "AX1 /tmp/a.yaml:1 here: it is wrong. Mend it. Also at a.yaml:2 here.",
        "AX2 another.",
    ]


IMPORTED = """
import sys
from axil_cli.main import main
code = main(sys.argv[1:])
sys.stderr.write("\\n".join(sorted(sys.modules)))
sys.exit(code)
"""


def imported(*arguments):
    """Return the modules that are imported for a command, in a process of its own."""
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return set(done.stderr.splitlines())


def test_help_imports_no_command_and_nothing_of_the_kernel():
    found = imported("--help")
    assert not {"axil_cli.run", "axil_cli.check", "asyncio"} & found
    assert not {name for name in found if name.startswith(("axil.kernel", "axil.runtime"))}


def test_a_check_imports_neither_what_runs_nor_what_keeps_runs(tmp_path):
    (tmp_path / "flow.py").write_text(
        "from axil import RootGraph\n\ngraph = RootGraph('one')\n"
        "node = graph.create_node(lambda inputs: inputs, name='a')\n"
        "graph.edge_from_entry(node)\ngraph.edge_to_exit(node)\n"
    )
    found = imported("check", tmp_path / "flow.py:graph")
    assert "axil_journals.pictures.scopes" in found
    assert not {"asyncio", "axil_journals.recorder", "axil.runtime.run", "axil_cli.run"} & found


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5"])
def test_a_worker_in_which_no_run_could_begin_is_refused(axil, given):
    refused = axil("worker", f"--concurrency={given}")
    assert refused.code == 2
    assert f"--concurrency: expected a whole number ≥ 1, found {given}" in refused.err
