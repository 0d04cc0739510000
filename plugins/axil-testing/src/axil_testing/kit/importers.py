"""The kit of importers: what they make is a workflow file, and nothing of the source goes missing
without a word.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from axil import AxilError
from axil_files import Document, spec_from_document
from axil_testing.kit.base import Kit, require
from axil_testing.kit.hostile import is_clumsy, shown
from axil_testing.kit.watch import watched

_OTHERS: Final[Sequence[Any]] = (
    None, "", "text", 7, [], {}, [{}], {"nodes": 3}, {"graph": {"nodes": [], "edges": []}},
    {"nodes": [], "edges": []}, {"app": None}, {"agents": [], "tasks": None},
)  # fmt: skip
"""Documents that no system exports."""
_STATUSES: Final = ("taken", "approximated", "left")
_MOST_DAMAGES: Final = 150


class ImporterKit(Kit):
    """The laws of importers."""

    kind = "importers"
    documents: ClassVar[Sequence[Any]] = ()
    """The documents that the system exports, as data."""

    def examples(self) -> Sequence[Any]:
        """Return documents; skip where there is none."""
        if not self.documents:
            self.skip("give documents that the system exports")
        return self.documents

    # -- laws

    def test_it_recognises_its_own_documents_and_no_others(self) -> None:
        """Expect no error, whatever it is shown."""
        made = self.make()
        for other in _OTHERS:
            require(not made.recognises(other), f"it takes {shown(other)} for its own")
        for document in self.documents:
            require(made.recognises(document), f"it does not recognise {shown(document)}")

    def test_what_it_makes_is_a_workflow_file(self) -> None:
        """Expect it to be readable as one."""
        for document in self.examples():
            made = self.make().read(document, "kit")
            spec_from_document(Document(data=made.document, name="kit.yaml"))

    def test_every_loss_has_its_place_its_reason_and_advice(self) -> None:
        """And every part of the source is spoken of."""
        for document in self.examples():
            findings = self.make().read(document, "kit").findings
            require(findings, "it says nothing of what it read")
            for each in findings:
                require(each.status in _STATUSES, f"{each.status!r} is none of {_STATUSES}")
                require(each.place and each.kind, f"{each} has no place or no kind")
                require(each.status == "taken" or each.reason, f"{each} has no reason")
                require(each.status == "taken" or each.advice, f"{each} has no advice")
                require(each.status != "taken" or each.became, f"{each} became nothing")

    def test_the_same_document_gives_the_same_workflow(self) -> None:
        """Again, and by another importer; and the document stays what it was."""
        for document in self.examples():
            before = copy.deepcopy(document)
            one, two = (self.make().read(document, "kit") for _ in range(2))
            require(one.document == two.document, "it makes two workflows of one document")
            require(list(one.findings) == list(two.findings), "it says two things of one document")
            require(document == before, "it changes the document")

    def test_a_damaged_document_is_imported_or_refused(self) -> None:
        """Never an accident: a value is missing, or another one."""
        made = self.make()
        for document in self.examples():
            for damaged in _damages(document):
                try:
                    made.read(damaged, "kit")
                except AxilError:
                    continue
                except Exception as error:
                    fault = f"{type(error).__name__}: {error}"
                    require(not is_clumsy(error), f"a damaged document fails it: {fault}")
                    raise

    def test_it_has_no_effects(self) -> None:
        """Expect it to take what it is given as data: nothing of it is run, opened or fetched."""
        for document in self.examples():
            self.make().read(document, "kit")
            with watched() as seen:
                self.make().read(document, "kit")
            require(
                not seen.effects and not seen.blocked,
                f"it {', '.join([*seen.effects, *seen.blocked])}",
            )


def _damages(document: Any) -> Iterator[Any]:
    """Yield copies of a document, each with one value taken out or changed."""
    paths = list(_paths(document))
    for path in paths[:: max(1, len(paths) * 2 // _MOST_DAMAGES)]:
        for value in (None, 7):
            damaged = copy.deepcopy(document)
            inner = damaged
            for key in path[:-1]:
                inner = inner[key]
            if value is None and isinstance(inner, dict):
                del inner[path[-1]]
            else:
                inner[path[-1]] = value
            yield damaged


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, Mapping):
        items = iter(cast("Mapping[Any, Any]", value).items())
    elif isinstance(value, list):
        items = iter(enumerate(cast("list[Any]", value)))
    for key, inner in items:
        yield (*before, key)
        yield from _paths(inner, (*before, key))
