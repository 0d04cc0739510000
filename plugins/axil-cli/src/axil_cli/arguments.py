"""Arguments that commands have in common; those of other distributions, too."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn, cast

from axil import ConfigError
from axil.plugin import Grants, did_you_mean, format_names

JOURNAL_FOLDER: Final = ".axil"
OPENS: Final = "opens_workflows"
"""A default of parsers whose command opens workflows: options ``workflow.…`` of plugins are theirs,
and their session has the functions of ``--functions``.
"""


def add_shared_arguments(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add arguments that mean the same for each command that has them.

    Args:
        names: ``--workflow``: all that says how workflows are opened, as every command that opens
            some takes it: ``--set``, their variables; ``--allow``, with ``--allow-code``, what
            files may do; ``--functions``, a folder of functions. ``session.reading`` reads the
            first two, the session has the third. ``--set`` and ``--allow`` alone, for commands
            that open none. ``--journal``: the place of runs, for ``session.journal``.
    Raises: ValueError: no argument is called so.

    >>> parser = argparse.ArgumentParser()
    >>> add_shared_arguments(parser, "--set", "--allow")
    >>> parser.parse_args(["--allow", "network", "--allow-code", "--set", "tone=dry"])
    Namespace(set=['tone=dry'], allow=['network', 'code'])
    """
    for name in names:
        if name not in _ADDERS:
            raise ValueError(f"expected {format_names(list(_ADDERS))}, found {name}.")
        _ADDERS[name](parser)


def _set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable of the file (${NAME}) has this value; JSON where it is JSON, else text; "
        "may be repeated",
    )


def _allow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        type=_allowed,
        metavar="WHAT",
        help="let the file do this: code, network, mcp, env, read, write, program; or less: "
        "env:NAME, read:PATH, write:PATH, net:HOST, program:NAME, import:MODULE, mcp:NAME; "
        "may be repeated",
    )
    parser.add_argument(
        "--allow-code",
        action="append_const",
        dest="allow",
        const="code",
        help="the same as --allow code: run code, with your rights",
    )


def _allowed(given: str) -> str:
    """Return a word that may be granted."""
    try:
        [word] = Grants.of([given]).words
    except ConfigError as error:
        first = error.problems[0]
        raise argparse.ArgumentTypeError(f"{first.message} {first.hint}") from None
    return word


def _functions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--functions",
        metavar="DIR",
        help="functions in this folder's files are tools, conditions, processors; "
        "needs --allow code",
    )
    parser.set_defaults(**{OPENS: True})


def _workflow(parser: argparse.ArgumentParser) -> None:
    for add in (_set, _allow, _functions):
        add(parser)


def _journal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--journal",
        metavar="PLACE",
        help="the folder that runs are kept in, or the address of a database, as "
        f"postgresql://host/name; without it $AXIL_JOURNAL, else {JOURNAL_FOLDER} (off: nowhere)",
    )


_ADDERS: Final = {
    "--workflow": _workflow,
    "--set": _set,
    "--allow": _allow,
    "--journal": _journal,
}


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors propose what may be meant."""

    def error(self, message: str) -> NoReturn:
        """Exit with a message. Raises: SystemExit."""
        hint = ""
        if found := re.match(r"unrecognized arguments: (--[^ =]+)", message):
            hint = did_you_mean(found[1], sorted(_options_of(self)))
        elif found := re.match(r"argument ([^:]+): invalid choice: '([^']*)'", message):
            choices = [
                each.choices
                for each in _actions_of(self)
                if found[1] in ("/".join(each.option_strings), each.metavar, each.dest)
                and each.choices is not None
            ]
            hint = did_you_mean(found[2], list(map(str, choices[0]))) if choices else ""
        super().error(f"{message.rstrip('.')}. {hint}" if hint else message)


def _actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its sub-commands."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]  # there is no other way
        yield action
        choices: Any = action.choices
        if isinstance(choices, Mapping):
            for part in cast("Mapping[str, Any]", choices).values():
                if isinstance(part, argparse.ArgumentParser):
                    yield from _actions_of(part)


def _options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {name for action in _actions_of(parser) for name in action.option_strings}


def opening(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield those of a parser and the parsers of its sub-commands that open workflows."""
    if parser.get_default(OPENS):
        yield parser
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]  # there is no other way
        choices: Any = action.choices
        if isinstance(choices, Mapping):
            for part in cast("Mapping[str, Any]", choices).values():
                if isinstance(part, argparse.ArgumentParser):
                    yield from opening(part)


__all__ = ["JOURNAL_FOLDER", "OPENS", "CommandParser", "add_shared_arguments", "opening"]
