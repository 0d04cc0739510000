"""The wants of workflow files: what a file names that its user decides about, shown by ``axil
check``, and asked for before ``axil run`` starts anything.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from axil import AxilError, ConfigError, Workflow
from axil.plugin import Want, noting_wants, one_line, refusals_of
from axil_cli.command import Session, problems_of, write

_HEADS: Final = {
    "own": "without leave:",
    "granted": "with leave:",
    "missing": "needs leave:",
}
_MOST_PLACES: Final = 3


def rows(wants: Iterable[Want]) -> list[dict[str, Any]]:
    """Return wants as plain data, one for each word, in the order of the file: those that need no
    leave, those that were granted, those that are missing.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in wants:
        row = found.setdefault(
            (each.status, each.word), {"word": each.word, "status": each.status, "places": []}
        )
        if each.where and each.where not in row["places"]:
            row["places"].append(each.where)
    # a word that needs no leave at one place may need it at another
    return [row for status in _HEADS for (own, _), row in found.items() if own == status]


def lines(wants: Iterable[Want]) -> Iterator[str]:
    """Yield wants as lines for people: those that need leave as they are typed."""
    last = ""
    for row in rows(wants):
        if row["status"] != last:
            last = row["status"]
            yield f"  {_HEADS[last]}"
        word = one_line(row["word"])
        shown = f"--allow {shlex.quote(word)}" if last == "missing" else word
        places = [one_line(each) for each in row["places"]]
        more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
        yield f"    {shown:<28} {', '.join(places[:_MOST_PLACES])}{more}".rstrip()


def words_of(wants: Iterable[Want]) -> frozenset[str]:
    """Return the words that are missing."""
    return frozenset(each.word for each in wants if each.status == "missing")


def opened(
    make: Callable[[frozenset[str]], Workflow],
    allow: frozenset[str],
    file: str,
    session: Session,
    *,
    asks: bool = False,
) -> tuple[Workflow, frozenset[str]]:
    """Return a workflow with its plan made, and the words that it was made with.

    Nothing has been started, read or written. ``asks``: once, at a terminal, for all that is
    missing. Raises: ConfigError with all that is missing, and what is wrong beside it; and what
    ``make`` raises.
    """
    workflow, wants, wrong = _made(make, allow)
    if asks and words_of(wants) and _consents(wants, file, session):
        allow |= words_of(wants)
        workflow, wants, wrong = _made(make, allow)
    missing = refusals_of(wants)
    if missing:
        also = () if wrong is None else problems_of(wrong)
        raise ConfigError([*missing, *(each for each in also if each not in missing)])
    if wrong is not None:
        raise wrong
    assert workflow is not None
    return workflow, allow


def _made(
    make: Callable[[frozenset[str]], Workflow], allow: frozenset[str]
) -> tuple[Workflow | None, list[Want], AxilError | None]:
    with noting_wants() as wants:
        try:
            workflow = make(allow)
            workflow.plan  # noqa: B018  # it is compiled here, where wants are gathered
        except AxilError as error:
            return None, wants, error
    return workflow, wants, None


def _consents(wants: list[Want], file: str, session: Session) -> bool:
    """Return whether the user allows all that is missing; no, unless it is said."""
    words = words_of(wants)
    session.tell(f"{file} needs leave:")
    for line in lines(each for each in wants if each.status == "missing"):
        if not line.endswith(":"):
            session.tell(line)
    write(session.stderr, f"Allow {len(words)} word{'s' * (len(words) > 1)}, for this run? [y/N] ")
    return session.stdin.readline().strip().lower() in ("y", "yes")
