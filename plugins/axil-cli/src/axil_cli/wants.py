"""The grants that a workflow file wants, asked for before ``axil run`` starts anything."""

from __future__ import annotations

from collections.abc import Callable

from axil import AxilError, ConfigError, Problem, Workflow
from axil.plugin import Want, noting_wants, refusals_of
from axil_cli.command import Session, problems_of


def opened(
    make: Callable[[frozenset[str]], Workflow],
    allow: frozenset[str],
    file: str,
    session: Session,
    *,
    asks: bool = False,
) -> tuple[Workflow, frozenset[str]]:
    """Return a workflow with its plan made, and the grants that it was made with; nothing has been
    started.

    Args:
        asks: whether the person at the terminal is asked, once, for all that is missing.
    Raises: ConfigError: all that is missing, and what else is wrong; and what ``make`` raises.
    """
    made, wants = _made(make, allow)
    missing = frozenset(each.word for each in wants if each.status == "missing")
    if asks and missing and _consents(wants, len(missing), file, session):
        allow |= missing
        made, wants = _made(make, allow)
    return _usable(made, refusals_of(wants)), allow


def opened_for_many(session: Session, target: str, **reading: object) -> Workflow:
    """Return the workflow that a target names, for runs to come, each of which may bring leave of
    its own: what is asked for when it is used, and missing here, is reported as a warning.

    Raises: ConfigError: what is missing to make it; and what ``session.workflow`` raises.
    """
    made, wants = _made(lambda _: session.workflow(target, **reading), frozenset())
    workflow = _usable(made, refusals_of(wants, late=False))
    for problem in refusals_of(wants):
        session.tell(f"warning: {problem}")
    return workflow


def _usable(made: Workflow | AxilError, refused: list[Problem]) -> Workflow:
    if refused:
        also = problems_of(made) if isinstance(made, AxilError) else ()
        raise ConfigError([*refused, *(each for each in also if each not in refused)])
    if isinstance(made, AxilError):
        raise made
    return made


def _made(
    make: Callable[[frozenset[str]], Workflow], allow: frozenset[str]
) -> tuple[Workflow | AxilError, list[Want]]:
    with noting_wants() as wants:
        try:
            workflow = make(allow)
            workflow.plan  # noqa: B018  # it is compiled here, where wants are gathered
        except AxilError as error:
            return error, wants
    return workflow, wants


def _consents(wants: list[Want], number: int, file: str, session: Session) -> bool:
    """Return whether the user allows all that is missing."""
    from axil_journals import want_lines

    session.tell(f"{file} needs leave:")
    for line in want_lines(each for each in wants if each.status == "missing"):
        if not line.endswith(":"):
            session.tell(line)
    return session.confirms(f"Allow {number} word{'s' * (number > 1)}, for this run?")
