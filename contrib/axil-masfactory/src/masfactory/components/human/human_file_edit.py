"""``HumanFileEdit``: a person edits files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axil_agent import HumanFileEdit as AxilFileEdit
from masfactory.core.node import Keys, Node


class HumanFileEdit(Node):
    """Writes fields into files, waits for a person to edit them, and reads them back.

    The files are in the folder where the process is at work, or below it.
    """

    keeps_attributes = False

    def __init__(
        self,
        name: str,
        file_fields: Mapping[str, str] | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """``file_fields``: the file of each field."""
        super().__init__(name, pull_keys, push_keys, attributes)
        self.file_fields = dict(file_fields or {})

    def component(self) -> Any:
        return AxilFileEdit(self.file_fields)
