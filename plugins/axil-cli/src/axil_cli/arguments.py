"""Arguments that commands have in common; of other distributions, too (``axil.plugin``)."""

from __future__ import annotations

import argparse
from typing import Final

from axil import ConfigError
from axil.plugin import Grants, format_names

JOURNAL_FOLDER: Final = ".axil"


def add_shared_arguments(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add arguments that mean the same for each command that has them.

    Args:
        names: ``--set``: variables of workflow files, for ``session.reading``; ``--allow``, with
            ``--allow-code``: what files may do, for the same; ``--journal``: the place of runs, for
            ``session.journal``.
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
        raise argparse.ArgumentTypeError(str(error.problems[0].message)) from None
    return word


def _journal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--journal",
        metavar="PLACE",
        help="the folder that runs are kept in, or the address of a database, as "
        f"postgresql://host/name; without it $AXIL_JOURNAL, else {JOURNAL_FOLDER} (off: nowhere)",
    )


_ADDERS: Final = {"--set": _set, "--allow": _allow, "--journal": _journal}

__all__ = ["JOURNAL_FOLDER", "add_shared_arguments"]
