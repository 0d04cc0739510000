"""``axil schema``: the JSON Schema of workflow files, composed from what is installed; editors
complete and check with it.
"""

from __future__ import annotations

import argparse

from axil_cli.command import Exit, Session
from axil_files import workflow_schema


class Schema:
    """Print the JSON Schema of workflow files, with the config of every installed component.

    Write it to a file and name it on the first line of a YAML file, and an editor knows the format:

        axil schema > axil.schema.json
        # yaml-language-server: $schema=axil.schema.json
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--format", choices=("json",), default="json")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Print it."""
        session.say_json(workflow_schema(session.registry))
        return Exit.DONE
