"""``axil``: options that hold for every sub-command, and the way from a name to the sub-command.

Sub-commands, our own four included, are components of the kind ``commands``: found without an
import, imported when typed.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import os
import re
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from axil import AxilError, ConfigError, PluginError
from axil.plugin import (
    KERNEL,
    Component,
    PluginContract,
    Policy,
    Registry,
    UnknownComponent,
    default_registry,
    stream_without_secrets,
    use_registry,
)
from axil_cli import launch
from axil_cli.arguments import OPENS, CommandParser, opening
from axil_cli.command import (
    Command,
    Exit,
    Session,
    Unwritten,
    clean,
    equipped,
    error_lines,
    is_debugging,
    write,
)

SELF = "axil-cli"
_GRACE_SECONDS = 0.5
"""The time that threads of bodies have to end."""
_COLLECTED_AFTER = 50_000
"""Objects that are made before the garbage collector looks at them."""
_BODIES = ("axil-", "asyncio_")
"""The beginning of the names of such threads."""
OWN = frozenset({SELF, "axil-files", "axil-plugins", KERNEL})
"""Always admitted: with every plugin blocked one can still see which there are, and why."""


def main(argv: Sequence[str] | None = None, *, program: str = "") -> int:
    """Execute a command and return the exit code; see ``Exit``.

    Args:
        program: the command of a distribution that was built around one workflow: it is what help
            and hints name, ``PROGRAM axil COMMAND``, and the workflow of ``run`` is its own.
    """
    with _clean_streams():
        return _main(argv, program)


@contextmanager
def _clean_streams() -> Generator[None]:
    """Within it, what this process writes is without its secrets: also what libraries print, and
    what is logged.
    """
    before: Any = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (each and stream_without_secrets(each) for each in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _main(argv: Sequence[str] | None, program: str) -> int:
    try:
        return int(_execute(sys.argv[1:] if argv is None else list(argv), program))
    except SystemExit as leaving:  # argparse has printed its help or its complaint
        return leaving.code if isinstance(leaving.code, int) else Exit.MISUSE
    except AxilError as error:
        if is_debugging():
            raise
        write(sys.stderr, "".join(f"{clean(line)}\n" for line in error_lines(error)))
        return Exit.MISUSE
    except (BrokenPipeError, Unwritten) as error:
        # nothing more can be written, not even at the end of the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, Unwritten):  # else the reader has closed its end
            with suppress(OSError):
                write(sys.stderr, f"error: the output cannot be written: {error.strerror}.\n")
        return Exit.UNREAD
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _execute(arguments: list[str], program: str) -> int:
    name = f"{program} axil" if program else "axil"
    parser = _parser(name)
    options = parser.parse_args(arguments)
    if not options.command:
        parser.print_help(sys.stderr)
        return Exit.MISUSE
    registry = _registry(options)
    command: Any = _command(registry, options.command)
    is_own = bool(program) and options.command == "run"
    about = f"Run this workflow; {name} COMMAND is the whole command, {name} --help."
    own = CommandParser(
        prog=program if is_own else f"{name} {options.command}",
        description=about if is_own else inspect.getdoc(command),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(own)
    if is_own and hasattr(command, "workflow"):  # it is known, and not typed
        command.workflow.help = argparse.SUPPRESS
    contributed: dict[str, Any] = {}
    # a command may take another one's options, as `runs resume` those of `run`
    takes = getattr(command, "takes", ((own, options.command),))
    for parser, of in (*takes, *((each, "workflow") for each in opening(own))):
        contributed |= launch.add(parser, of, registry, options.rest)
    given = own.parse_args(options.rest)
    extra = launch.given(contributed, given)
    # the policy holds for components that resolve others on their own, too
    with use_registry(registry):
        hooks = _hooks(registry, options.hook)
        streams: dict[str, Any] = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
        session = Session(registry=registry, hooks=hooks, options=extra, program=name, **streams)
        folder = given.functions if getattr(given, OPENS, False) else None
        try:
            with (
                equipped(session, folder, getattr(given, "allow", ())) as here,
                ExitStack() as within,
            ):
                if extra and not getattr(command, "prepares_options", False):
                    within.enter_context(here.launch(options.command))
                within.enter_context(_blamed(registry, options.command))
                return command.run(given, here)
        except AxilError as error:
            if refuse := getattr(command, "refuse", None):
                refuse(error, given, session)
            raise


class _Parser(argparse.ArgumentParser):
    """Looks for commands only when somebody asks for help."""

    def format_help(self) -> str:
        self.epilog = _listed()
        return super().format_help()


class _Version(argparse.Action):
    """Looks for versions only when somebody asks for them."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **more)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import version

        write(sys.stdout, f"axil {version(KERNEL)} ({SELF} {version(SELF)})\n")
        parser.exit()


def _parser(name: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=name,
        usage=f"{name} [--version] [--no-plugins | --only-plugins A,B] [--hook NAME …] COMMAND …",
        description="Multi-agent workflow graphs: run, check and look at them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="print the versions")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--no-plugins", action="store_true", help="only the kernel and this command")
    which.add_argument(
        "--only-plugins", metavar="A,B", help="the kernel, this command, and these distributions"
    )
    parser.add_argument(
        "--hook",
        action="append",
        default=[],
        metavar="NAME",
        help="use an installed hook plugin; may be repeated",
    )
    parser.add_argument(
        "command", nargs="?", metavar="COMMAND", help="see below; axil COMMAND --help says more"
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="…", help=argparse.SUPPRESS)
    return parser


def _listed() -> str:
    """Return all commands that may be used, with what is known of them without an import."""
    try:
        registry = _registry(argparse.Namespace())
        found = [each for each in registry.candidates("commands") if each.status != "blocked"]
    except ConfigError as error:  # settings that make no sense must not take the help away
        return "\n".join(map(str, error.problems))
    lines = [(each.name, _summary(each, registry)) for each in found]
    width = max((len(name) for name, _ in lines), default=0)
    return "\n".join(
        ["commands:", *(f"  {name:<{width}}  {words}".rstrip() for name, words in lines)]
    )


def _summary(command: Component, registry: Registry) -> str:
    """Return what the manifest, else the metadata, of a distribution says of its command."""
    manifest = registry.manifest(command.distribution)
    described = manifest.find("commands", command.name) if manifest is not None else None
    words = described.get("summary", "") if described is not None else ""
    if not words:
        metadata = getattr(registry.distribution(command.distribution), "metadata", None)
        words = str(metadata["Summary"] or "") if metadata is not None else ""
    words = clean(words).rstrip(".")
    words = words if words[1:2].isupper() else words[:1].lower() + words[1:]
    if words and command.distribution == SELF:
        return words
    return f"{words} ({command.distribution})" if words else f"({command})"


def _registry(options: argparse.Namespace) -> Registry:
    """Return the registry under the environment's policy and the options.

    The command's own distributions are always admitted.
    """
    only: str | None = getattr(options, "only_plugins", None)
    option = "--only-plugins"
    if getattr(options, "no_plugins", False):
        only, option = "", "--no-plugins"
    chosen = None if only is None else frozenset(only.replace(",", " ").split())
    policy = Policy.in_force(folder=".")
    if chosen is None and replace(policy, hooks=()) == Policy() == default_registry().policy:
        return default_registry()
    only_these = policy.only if chosen is None else chosen
    given = {} if chosen is None else {"only": option}
    made = Registry(
        replace(
            policy,
            allow=policy.allow | OWN,
            only=None if only_these is None else frozenset(only_these | OWN),
            origins={**policy.origins, **given},
        ),
    )
    for name in sorted(chosen or ()):
        from axil.plugin import canonical_name, did_you_mean

        if canonical_name(name) not in (installed := made.plugins()):
            hint = did_you_mean(name, installed) or "Those that are there: axil plugins list."
            raise UnknownComponent(f'--only-plugins: no plugin is called "{name}".', hint=hint)
    return made


def _command(registry: Registry, name: str) -> Command:
    try:
        found: Any = registry.resolve("commands", name)
    except UnknownComponent as error:
        # the provider of the right one does not matter after a slip of the key
        hint = re.sub(r" \([^()]*, installed\)", "", error.hint).replace("Installed:", "Commands:")
        raise UnknownComponent(error.message, hint=hint) from None
    command = found() if isinstance(found, type) else found
    if not (hasattr(command, "configure") and hasattr(command, "run")):
        raise PluginContract(
            f'the command "{name}" is no command: it lacks configure or run.',
            hint="Report it to the plugin's owner.",
        )
    return command


@contextmanager
def _blamed(registry: Registry, name: str) -> Generator[None]:
    """Within it, what a plugin's command did not expect is an error that names the plugin.

    Raises: PluginError (AX300).
    """
    try:
        yield
    except (AxilError, BrokenPipeError, Unwritten):
        raise
    except Exception as error:
        known = registry.candidates("commands")
        plugin = next((f"{each}" for each in known if each.name == name and each.distribution), "")
        if is_debugging() or not plugin or plugin.startswith("axil-"):
            raise
        why = f"{type(error).__name__}: {error}"
        message = f'the command "{name}" of {plugin} failed ({why}).'
        hint = "Report it to the plugin's owner; AXIL_DEBUG=1 prints the traceback."
        raise PluginError(message, hint=hint) from error


def _hooks(registry: Registry, wanted: Sequence[str]) -> Any:
    """Return a manager with the hook plugins that the settings and ``--hook`` name; None: none.

    Raises: UnknownComponent and its kin: it cannot be had; PluginContract: it implements no hook,
        or one that there is not.
    """
    names = list(dict.fromkeys((*Policy.in_force(folder=".").hooks, *wanted)))
    if not names:
        return None
    from axil.plugin import hook_manager

    found: dict[str, Any] = {name: registry.resolve("hooks", name) for name in names}
    made = hook_manager((f() if isinstance(f, type) else f for f in found.values()), found)
    for name, plugin in made.list_name_plugin():
        if not made.get_hookcallers(plugin):
            raise PluginContract(
                f'the hook plugin "{name}" implements no hook.',
                hint="Mark its functions with axil.hookimpl.",
            )
    return made


def script() -> None:
    """Run the command as a program, and end the process: the interpreter would wait for a thread
    that a body left behind.
    """
    # Collecting after every 700 objects is a third of the work on a large file.
    gc.set_threshold(_COLLECTED_AFTER)
    code = main()
    ends = time.monotonic() + _GRACE_SECONDS
    for thread in threading.enumerate():
        if thread.name.startswith(_BODIES) and not thread.daemon:
            thread.join(max(0.0, ends - time.monotonic()))
            if thread.is_alive():
                with suppress(OSError, ValueError):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(code)
    gc.freeze()  # what ends with the process need not be looked through before
    sys.exit(code)


if __name__ == "__main__":
    script()
