"""``axil migrate``: the format of a journal, and the way back by one version."""

from __future__ import annotations

import argparse
from typing import Any

from axil_cli import record
from axil_cli.arguments import add_shared_arguments
from axil_cli.command import Exit, Session


class Migrate:
    """Bring a journal to the format of this version, which any use of it does, and print it.

    With --back it gets the format of one version before, for an older axil: end all processes that
    use it first, and use it with the older one only.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument("--back", action="store_true", help="to the format before this one")
        add_shared_arguments(parser, "--journal")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Print the format."""
        journal: Any = record.opened(options, session, needed="axil migrate", kept=True)
        try:
            number = journal.go_back() if options.back else journal.format
            session.say(f"format {number}")
        finally:
            journal.close()
        return Exit.DONE
