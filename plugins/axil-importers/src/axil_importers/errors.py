"""Errors of importers, and of the nodes that imported workflows are made of."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from axil import AxilError
from axil.plugin import ProblemError

if TYPE_CHECKING:
    from axil_importers.draft import Draft


class ImportProblem(ProblemError, ValueError):
    """A file cannot be imported; ``hint`` says what to do next."""


class ScriptError(ProblemError, ValueError):
    """The program of a ``script`` failed, or printed no JSON object."""


@contextmanager
def damaged(draft: Draft) -> Generator[None]:
    """Say of a document that lacks what it has to have, or has something else there, that it is
    damaged.

    Raises: ImportProblem (AX988).
    """
    try:
        yield
    except AxilError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        fault = f"{draft.place()}: the file is damaged ({type(error).__name__}: {error})."
        raise ImportProblem("AX988", fault, "Export it again.") from error
