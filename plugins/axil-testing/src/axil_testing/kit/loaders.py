"""The kit of file formats: text becomes plain data with line numbers, or a refusal with a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from axil import SpecError
from axil.plugin import with_article
from axil_files import Document, check_document
from axil_testing.kit.base import Kit, claimed, require
from axil_testing.kit.hostile import TEXTS, is_clumsy, shown
from axil_testing.kit.watch import watched

_TRIALS: Final[Sequence[str]] = (
    '{"graph": {"id": "g", "nodes": [{"id": "a", "n": 1}]}}',
    "graph:\n  id: g\n  nodes:\n    - id: a\n      n: 1\n",
    '[graph]\nid = "g"\n[[graph.nodes]]\nid = "a"\nn = 1\n',
)
"""The same data in common formats."""
_DATA: Final = {"graph": {"id": "g", "nodes": [{"id": "a", "n": 1}]}}
_ODD: Final[Sequence[str]] = (
    '{"a": 1, "a": 2}',
    "a: 1\na: 2\n",
    "a = 1\na = 2\n",
    "a: !!python/object/apply:os.system ['true']\n",
    "a: &x [1]\nb: *x\n",
    "a: 2020-01-01\n",
    '{"a": NaN}',
    "a: .inf\n",
    "? [1, 2]\n: 3\n",
    "[" * 100_000,
    "{" * 100_000,
    "- " * 20_000,
    "\ufeffa",
    "a: \ud800\n",
)


class LoaderKit(Kit):
    """The laws of every loader: ``loader(text, name)`` gives an ``axil_files.Document``."""

    kind = "loaders"
    text: ClassVar[str] = ""
    """A document; empty: the one of the common formats that it reads."""
    data: ClassVar[Any] = None
    """The data in it; None: not compared."""
    has_lines: ClassVar[bool] = False
    """Claim: it says on which line each key is."""

    def load(self, text: str) -> Document:
        """Return the document in a text. Raises: what the loader raises."""
        made = self.make()
        return made(text, "kit.file")

    def example(self) -> tuple[str, Any]:
        """Return a text that it reads and the data in it."""
        if type(self).text:
            return type(self).text, type(self).data
        for text in _TRIALS:
            try:
                if self.load(text).data == _DATA:
                    return text, _DATA
            except SpecError:
                continue
        raise AssertionError("it reads none of the common formats. Give text, and data.")

    # -- laws

    def test_a_document_is_plain_data_within_bounds(self) -> None:
        """And it is the data that was written."""
        text, data = self.example()
        document: Any = self.load(text)
        require(
            isinstance(document, Document),
            f"it gives {with_article(type(document).__name__)} instead of a Document",
        )
        check_document(document)
        require(
            data is None or document.data == data,
            f"it reads {shown(document.data)}; expected {shown(data)}",
        )
        require(
            document.name == "kit.file",
            "the document does not know the file's name: messages could not say it",
        )

    @claimed("has_lines")
    def test_every_key_has_its_line(self) -> None:
        """Counted from 1, within the file."""
        text, _ = self.example()
        document = self.load(text)
        last = text.count("\n") + 1
        require(document.lines, "it knows no lines")
        require(
            all(1 <= line <= last for line in document.lines.values()),
            f"lines outside of 1 to {last}: {document.lines}",
        )

    def test_a_hostile_text_is_read_or_refused_with_its_place(self) -> None:
        """Expect plain data, or a SpecError that names the file; no accident, no foreign object."""
        for text in (*TEXTS, *_ODD):
            try:
                document = self.load(text)
                check_document(document)
            except SpecError as error:
                require(
                    "kit.file" in str(error),
                    f"{shown(text)} is refused without naming the file: {error}",
                )
            except Exception as error:
                require(
                    not is_clumsy(error),
                    f"{shown(text)} makes it fail by accident: {type(error).__name__}: {error}",
                )
                raise AssertionError(
                    f"{shown(text)} raises {type(error).__name__}; expected a SpecError"
                ) from error

    def test_a_key_that_comes_twice_is_refused(self) -> None:
        """One of the two values would be lost."""
        for text in _ODD[:3]:
            try:
                document = self.load(text)
            except SpecError:
                continue
            require(
                document.data not in ({"a": 1}, {"a": 2}),
                f"of {shown(text)} it keeps {document.data}",
            )

    def test_the_same_text_is_the_same_document(self) -> None:
        """Again, and by another loader of the kind."""
        text, _ = self.example()
        one, two = self.load(text), self.load(text)
        require(
            one.data == two.data and dict(one.lines) == dict(two.lines),
            "it reads the same text in two ways",
        )
        require(
            one.data is not two.data or not isinstance(one.data, (dict, list)),
            "two documents share their data",
        )

    def test_it_has_no_effects(self) -> None:
        """It is given the text: it opens nothing."""
        text, _ = self.example()
        self.load(text)
        with watched() as seen:
            self.load(text)
        require(
            not seen.effects and not seen.blocked, f"it {', '.join([*seen.effects, *seen.blocked])}"
        )
