"""The wants of workflow files: what a file names that its user decides about, shown by ``axil
check``, and asked for before ``axil run`` starts anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from axil import AxilError, ConfigError, Workflow
from axil.plugin import Want, noting_wants, refusals_of
from axil_cli.command import Session, problems_of, write


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
    from axil_journals import want_lines

    words = words_of(wants)
    session.tell(f"{file} needs leave:")
    for line in want_lines(each for each in wants if each.status == "missing"):
        if not line.endswith(":"):
            session.tell(line)
    write(session.stderr, f"Allow {len(words)} word{'s' * (len(words) > 1)}, for this run? [y/N] ")
    return session.stdin.readline().strip().lower() in ("y", "yes")
