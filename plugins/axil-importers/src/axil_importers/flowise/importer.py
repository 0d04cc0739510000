"""Flowise's flows: agentflows with edges that say what comes next, and flows made of parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from axil_importers.draft import Draft
from axil_importers.errors import ImportProblem, damaged
from axil_importers.flowise.agentflow import Agentflow
from axil_importers.flowise.chatflow import Chatflow
from axil_importers.flowise.nodes import Data
from axil_importers.imported import Imported


class Flowise:
    """``flowise``: a chatflow or an agentflow as Flowise exports it."""

    def recognises(self, document: Any) -> bool:
        """Return whether it has nodes whose data have names and inputs, and edges."""
        if not isinstance(document, Mapping):
            return False
        given = cast("Data", document)
        if not isinstance(given.get("nodes"), list) or not isinstance(given.get("edges"), list):
            return False
        nodes = cast("list[Any]", given["nodes"])
        return bool(nodes) and all(map(_is_node, nodes))

    def read(self, document: Any, name: str) -> Imported:
        """Return the workflow. Raises: ImportProblem (AX988)."""
        if not self.recognises(document):
            fault = "the file has no nodes with names and inputs, and edges."
            raise ImportProblem("AX988", fault, "Export the flow again.")
        given = cast("Data", document)
        draft = Draft.of(given, name)
        with damaged(draft):
            is_new = any(str(each["data"]["name"]).endswith("Agentflow") for each in given["nodes"])
            return (Agentflow if is_new else Chatflow)(given, draft).imported()


def _is_node(given: Any) -> bool:
    data: Any = cast("Data", given).get("data") if isinstance(given, Mapping) else None
    return isinstance(data, Mapping) and {"name", "inputs"} <= cast("Data", data).keys()
