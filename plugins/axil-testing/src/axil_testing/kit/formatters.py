"""The kit of formatters: fields become text, and the same text becomes the same fields."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, cast

from axil.plugin import with_article
from axil_testing.kit.base import Kit, claimed, require
from axil_testing.kit.hostile import TEXTS, is_clumsy, shown
from axil_testing.kit.watch import watched

_WORDS: Sequence[Mapping[str, str]] = (
    {"plan": "first this, then that"},
    {"plan": "a", "score": "3"},
    {"plan": "two\nlines", "next step": "see http://example.com:80/x"},
    {"plan": "ünïcödé 中文 🧑‍🚀", "score": "score: 3"},
    {"plan": "def f():\n    return {}", "score": "<b>bold</b> & more"},
    {"plan": "a {brace} and 100 %", "score": '"quoted" \\ back'},
)
_KINDS: Sequence[Mapping[str, Any]] = (
    {"n": 3, "yes": True, "none": None, "x": 0.5},
    {"list": [1, "two", None], "map": {"a": {"b": [1]}}},
    {"empty": {}, "no items": [], "inside": {"empty": {}, "list": [[], {}]}},
    {"deep": {"a": [{"b": [{"c": {}}]}]}},
)


class FormatterKit(Kit):
    """The laws of every formatter.

    ``dump`` writes fields, ``parse`` reads them; ``introduction`` tells a model how to answer.
    """

    kind = "formatters"
    keeps_types: ClassVar[bool] = False
    """Claim: numbers, lists, mappings, empty ones and None come back as what they were; else all
    values are texts.
    """
    one_way: ClassVar[bool] = False
    """Claim: what it reads is not what it writes: nothing is asked of the form of a reply."""

    def fields(self) -> list[dict[str, Any]]:
        """Return fields that come back."""
        return [
            *(dict(each) for each in _WORDS),
            *([copy.deepcopy(dict(each)) for each in _KINDS] if self.keeps_types else []),
        ]

    # -- laws

    def test_it_has_the_three_parts(self) -> None:
        """``introduction`` is a text, ``dump`` and ``parse`` can be called."""
        made = self.make()
        require(
            isinstance(made.introduction, str),
            f"introduction is {with_article(type(made.introduction).__name__)}",
        )
        require(callable(made.dump) and callable(made.parse), "it lacks dump or parse")

    def test_what_it_writes_it_reads(self) -> None:
        """Names, values, and their order."""
        if self.one_way:
            self.skip("it reads what it did not write")
        made = self.make()
        for fields in self.fields():
            text = made.dump(fields)
            require(isinstance(text, str), f"dump gives {with_article(type(text).__name__)}")
            found = made.parse(text, list(fields))
            require(
                list(found.items()) == list(fields.items()),
                f"{shown(fields)} comes back as {shown(found)}",
            )

    def test_dumping_changes_nothing(self) -> None:
        """The fields are somebody else's."""
        made = self.make()
        for fields in (*self.fields(), *(copy.deepcopy(dict(each)) for each in _KINDS)):
            before = copy.deepcopy(fields)
            made.dump(fields)
            require(fields == before, f"dump changes {shown(before)} into {shown(fields)}")

    def test_every_value_can_be_written(self) -> None:
        """Write numbers, lists, mappings, None: a prompt takes anything; nothing is left out."""
        made = self.make()
        for fields in (copy.deepcopy(dict(each)) for each in _KINDS):
            text = made.dump(fields)
            missing = [name for name in fields if name not in text]
            require(not missing, f"dump loses {', '.join(missing)} of {shown(fields)}")

    @claimed("keeps_types")
    def test_what_is_empty_is_not_lost(self) -> None:
        """An empty mapping is a value, and so is an empty list, at any depth."""
        made = self.make()
        empty: tuple[Any, ...] = ({}, [], {"b": {}, "c": []}, [{}], None, "", 0, False)
        for fields in ({"a": value} for value in empty):
            found = made.parse(made.dump(fields), ["a"])
            require(
                found == fields and type(found["a"]) is type(fields["a"]),
                f"{fields} comes back as {found}",
            )

    def test_a_hostile_reply_is_read_or_refused_in_words(self) -> None:
        """Read a hostile reply, or refuse it: fields with text names, or a ValueError in plain
        words.
        """
        made = self.make()
        for text in TEXTS:
            for names in ((), ("message",), ("plan", "score")):
                try:
                    found = made.parse(text, names)
                except ValueError as error:
                    require(str(error).strip(), f"{shown(text)} is refused without a word")
                    continue
                except Exception as error:
                    accident = f"{type(error).__name__}: {error}"
                    require(
                        not is_clumsy(error), f"{shown(text)} makes it fail by accident: {accident}"
                    )
                    raise AssertionError(
                        f"{shown(text)} raises {accident}; "
                        "expected a ValueError, for the text's author"
                    ) from error
                require(
                    isinstance(found, dict)
                    and all(isinstance(name, str) for name in cast("dict[Any, Any]", found)),
                    f"{shown(text)} becomes {shown(found)}",
                )

    def test_it_remembers_nothing(self) -> None:
        """One formatter serves any number of runs at the same time."""
        made = self.make()
        alone = [self._formatted(self.make(), fields) for fields in self.fields()]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(partial(self._formatted, made), self.fields() * 4))
        require(together == alone * 4, "used in several threads it gives something else than alone")

    def _formatted(self, made: Any, fields: Mapping[str, Any]) -> str:
        text = made.dump(fields)
        return f"{text!r} {made.parse(text, list(fields))!r}"

    def test_it_has_no_effects(self) -> None:
        """No file, no network, no process."""
        made = self.make()
        fields = self.fields()
        made.parse(made.dump(fields[0]), list(fields[0]))
        with watched() as seen:
            for each in fields:
                made.parse(made.dump(each), list(each))
        require(
            not seen.effects and not seen.blocked, f"it {', '.join([*seen.effects, *seen.blocked])}"
        )
