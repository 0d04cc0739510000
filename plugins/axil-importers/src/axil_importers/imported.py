"""The result of an import: a workflow file as data, and what became of each part of its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Protocol

from axil_files import dump_yaml

Status = Literal["taken", "approximated", "left"]
"""``taken``: it does what it did; ``approximated``: something else stands for it, or some of it is
missing; ``left``: nothing does it yet.
"""


_ORDER: Final[tuple[Status, ...]] = ("taken", "approximated", "left")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of one part of the source, or one thing that it lost."""

    place: str
    """The place in the source: ``workflow.graph.nodes[3] "Summary"``."""
    kind: str
    """The name for its kind there: ``llm``."""
    status: Status
    became: str = ""
    """The thing that stands for it: ``agent Summary``; empty: nothing."""
    reason: str = ""
    """The loss; empty: nothing."""
    advice: str = ""
    """The advice about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A workflow file, and the list of losses."""

    document: Mapping[str, Any]
    """The workflow file as plain data."""
    findings: Sequence[Finding]
    """In the order of the source; a part that lost several things has several."""

    @property
    def losses(self) -> Sequence[Finding]:
        """The parts that were approximated or left."""
        return [each for each in self.findings if each.status != "taken"]

    def counts(self) -> dict[Status, int]:
        """Return how many parts of the source were taken, approximated and left: by the worst that
        is said of each.
        """
        worst: dict[str, Status] = {}
        for each in self.findings:
            known = worst.get(each.place, "taken")
            is_worse = _ORDER.index(each.status) > _ORDER.index(known)
            worst[each.place] = each.status if is_worse else known
        counted = Counter(worst.values())
        return {status: counted[status] for status in _ORDER}

    def text(self) -> str:
        """Return the workflow file, in YAML."""
        return dump_yaml(self.document)

    def as_data(self) -> dict[str, Any]:
        """Return the list of losses as plain data."""
        return {"counts": self.counts(), "findings": [asdict(each) for each in self.findings]}


class Importer(Protocol):
    """A reader of another system's workflows. ``axil.importers``, named like the system.

    It is made without arguments. What it is given is data: nothing of it is run, nothing is
    fetched.
    """

    def recognises(self, document: Any) -> bool:
        """Return whether this is what the system exports: by its keys, and without reading it."""
        ...

    def read(self, document: Any, name: str) -> Imported:
        """Return the workflow; ``name`` is what it is called if it does not say.

        Raises: ImportProblem (AX988): it is not what the system exports, or is damaged.
        """
        ...
