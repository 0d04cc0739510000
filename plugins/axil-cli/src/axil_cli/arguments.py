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
"""The default of parsers whose command opens workflows: they have the options ``workflow.…`` of
plugins, and their session the functions of ``--functions``.
"""


def add_shared_arguments(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add arguments that mean the same for each command that has them.

    Args:
        names: ``--workflow``: how workflows are opened, for every command that opens some:
            ``--set``, their variables; ``--allow`` and ``--allow-code``, what files may do;
            ``--functions``, a folder of functions. ``session.reading`` reads the first two, the
            session has the third. ``--allow`` alone, for commands that open none of the user's.
            ``--journal``: the place of runs, for ``session.journal``. ``--format``: text or json.
    Raises: ValueError: no argument is called so.

    >>> parser = argparse.ArgumentParser()
    >>> add_shared_arguments(parser, "--allow", "--format")
    >>> parser.parse_args(["--allow", "network", "--allow-code"])
    Namespace(allow=['network', 'code'], format='text')
    """
    for name in names:
        if name not in _ADDERS:
            raise ValueError(f"expected {format_names(list(_ADDERS))}, found {name}.")
        _ADDERS[name](parser)


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


def _workflow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable of the file (${NAME}) has this value; JSON where it is JSON, else text; "
        "may be repeated",
    )
    _allow(parser)
    parser.add_argument(
        "--functions",
        metavar="DIR",
        help="functions in this folder's files are tools, conditions, processors; "
        "needs --allow code",
    )
    parser.set_defaults(**{OPENS: True})


def _journal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--journal",
        metavar="PLACE",
        help="the folder that runs are kept in, or the address of a database, as "
        f"postgresql://host/name; without it $AXIL_JOURNAL, else {JOURNAL_FOLDER} (off: nowhere)",
    )


def _format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")


_ADDERS: Final = {
    "--workflow": _workflow,
    "--allow": _allow,
    "--journal": _journal,
    "--format": _format,
}


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors propose what may be meant."""

    def error(self, message: str) -> NoReturn:
        """Exit with a message. Raises: SystemExit."""
        hint = ""
        actions = [action for part in _parsers(self) for action in _actions(part)]
        if found := re.match(r"unrecognized arguments: (--[^ =]+)", message):
            known = {name for action in actions for name in action.option_strings}
            hint = did_you_mean(found[1], sorted(known))
        elif found := re.match(r"argument ([^:]+): invalid choice: '([^']*)'", message):
            choices = [
                each.choices
                for each in actions
                if found[1] in ("/".join(each.option_strings), each.metavar, each.dest)
                and each.choices is not None
            ]
            hint = did_you_mean(found[2], list(map(str, choices[0]))) if choices else ""
        super().error(f"{message.rstrip('.')}. {hint}" if hint else message)


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and the parsers of its sub-commands."""
    yield parser
    for action in _actions(parser):
        choices: Any = action.choices
        if isinstance(choices, Mapping):
            for part in cast("Mapping[str, Any]", choices).values():
                if isinstance(part, argparse.ArgumentParser):
                    yield from _parsers(part)


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions  # pyright: ignore[reportPrivateUsage]  # there is no other way


def opening(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return those of a parser and the parsers of its sub-commands that open workflows."""
    return [each for each in _parsers(parser) if each.get_default(OPENS)]


__all__ = ["JOURNAL_FOLDER", "OPENS", "CommandParser", "add_shared_arguments", "opening"]
