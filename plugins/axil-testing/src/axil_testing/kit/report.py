"""Kits without pytest: run the laws of one, and say what came of them."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from axil_testing.kit.base import Kit

Verdict = Literal["passed", "failed", "skipped", "excused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one law."""

    law: str
    """The test's name without ``test_``, as a sentence."""
    verdict: Verdict
    """``excused``: it fails, and the kit says why it may."""
    reason: str = ""
    """The reason why it failed, was skipped, or is excused."""
    detail: str = ""
    """Of a failure, the traceback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of all laws of a kit."""

    kit: str
    outcomes: tuple[Outcome, ...]

    @property
    def is_fine(self) -> bool:
        """True if nothing failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """The laws that do not hold."""
        return tuple(each for each in self.outcomes if each.verdict == "failed")

    def count(self, verdict: Verdict) -> int:
        """Return how many laws had this verdict."""
        return sum(1 for each in self.outcomes if each.verdict == verdict)

    def plain(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "kit": self.kit,
            "fine": self.is_fine,
            "outcomes": [asdict(each) for each in self.outcomes],
        }


def check(kit: type[Kit], *only: str) -> Report:
    """Run every law of a kit on what it makes, or ``only`` some; nothing is raised for what does
    not hold.
    """
    return Report(kit=kit.__name__, outcomes=tuple(_outcomes(kit, only)))


def laws(kit: type[Kit]) -> list[str]:
    """Return the names of a kit's tests, those of its base first."""
    names: dict[str, None] = {}
    for base in reversed(kit.__mro__):
        names.update(dict.fromkeys(name for name in vars(base) if name.startswith("test_")))
    return [name for name in names if callable(getattr(kit, name, None))]


def _outcomes(kit: type[Kit], only: Collection[str]) -> Iterator[Outcome]:
    for name in laws(kit):
        law = name.removeprefix("test_").replace("_", " ")
        if not only or law in only:
            yield _tried(kit, name, law)


def _tried(kit: type[Kit], name: str, law: str) -> Outcome:
    import pytest

    test = getattr(kit, name)
    excuse = next(
        (str(m.kwargs.get("reason")) for m in getattr(test, "pytestmark", ()) if m.name == "xfail"),
        "",
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(kit(), name)()
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except pytest.skip.Exception as skipped:
        return Outcome(law=law, verdict="skipped", reason=str(skipped))
    except BaseException as error:  # noqa: BLE001
        # a component may raise anything at all, SystemExit included
        message = (
            str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        )
        verdict: Verdict = "excused" if excuse else "failed"
        return Outcome(
            law=law,
            verdict=verdict,
            reason=excuse or message,
            detail="".join(traceback.format_exception(error)),
        )
    return Outcome(law=law, verdict="passed")
