"""Drafts: what a model wrote as a workflow file, and the findings of its check.

The model's text is parsed within the bounds of workflow files and written anew, with the version
and the model of its agents; nothing of it is executed. What it lacks a grant for is a finding.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from axil import AxilError, Problem, SpecError, Workflow
from axil.plugin import Registry
from axil_files import Document, check_document, dump_yaml, load
from axil_journals import CheckResult, check_workflow, text_picture, want_lines

_FENCE: Final = re.compile(r"^```([\w-]*)[ \t]*$", re.MULTILINE)
_MOST: Final = 20
"""Findings that are shown to a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A drafted workflow file with the findings of its check."""

    text: str
    """The file as it would be written; where the reply could not be read, the reply."""
    result: CheckResult
    name: str = ""
    """The path of the file."""

    @property
    def is_fine(self) -> bool:
        """True if it passes the check."""
        return self.result.is_fine

    @property
    def findings(self) -> list[str]:
        """The problems as lines, errors first; places are in the file, without its folder."""
        found = sorted(self.result.problems, key=lambda problem: problem.severity != "error")
        lines = [f"{problem.severity}: {problem}" for problem in found]
        return [line.replace(self.name, _file(self.name)) for line in lines] if self.name else lines

    def report(self) -> str:
        """Return the draft for a person, and for the model that changes it."""
        return "\n".join([self.summary(), "", *self._shown()])

    def summary(self) -> str:
        """Return the drawing, what the file wants, and warnings; without a plan the findings."""
        if self.result.plan is None:
            return "\n".join(self.findings)
        wants = [
            line.replace(self.name, _file(self.name)) for line in want_lines(self.result.wants)
        ]
        return "\n".join([text_picture(self.result.plan), *wants, *self.findings])

    def repair(self) -> str:
        """Return the prompt that has a model mend the draft."""
        findings = self.findings
        more = [f"… and {len(findings) - _MOST} more"] if len(findings) > _MOST else []
        return "\n".join(
            [
                "The file does not pass its check:",
                *(f"- {line}" for line in findings[:_MOST]),
                *more,
                "Mend all of this and send the whole file again. Where something needs leave "
                "(--allow), do without it.",
                "",
                *self._shown(),
            ]
        )

    def _shown(self) -> Iterator[str]:
        yield "The file, with the numbers of its lines:"
        for number, line in enumerate(self.text.splitlines(), 1):
            yield f"{number:>4}  {line}"


def draft_of(
    reply: str, *, name: str, model: object, registry: Registry, allow: frozenset[str] = frozenset()
) -> Draft:
    """Return the draft in a model's reply, checked.

    Args:
        reply: the file, in a fenced block or alone.
        name: the path of the file that is drafted; it need not exist.
        model: the value of the variable MODEL.
        allow: grants of the user, as for ``axil run``.
    """
    source = _source(reply)
    try:
        data = _parsed(source, name, registry)
    except AxilError as error:
        problems: tuple[Problem, ...] = tuple(getattr(error, "problems", ())) or (
            Problem(error.id, name, str(error)),
        )
        return Draft(text=source, result=CheckResult(problems=problems), name=name)
    text = _written({**data, "version": 1, "vars": {**_vars(data), "MODEL": model}})

    def read() -> Workflow:
        return load(name, registry=registry, allow=allow, texts={_file(name): text})

    return Draft(text=text, result=check_workflow(read, registry), name=name)


def _file(name: str) -> str:
    return os.path.basename(name)


def _source(reply: str) -> str:
    """Return the longest fenced block of a reply, else the whole of it.

    >>> _source("Here it is:\\n```yaml\\ngraph: {}\\n```\\nDone.")
    'graph: {}\\n'
    """
    return max(_blocks(reply), key=len, default=reply)


def _blocks(reply: str) -> Iterator[str]:
    begins: int | None = None
    for fence in _FENCE.finditer(reply):
        if begins is None:
            begins = fence.end() + 1
        elif not fence[1]:
            yield reply[begins : fence.start()]
            begins = None


def _parsed(source: str, name: str, registry: Registry) -> dict[str, Any]:
    """Return the document as data, within the bounds of workflow files.

    Raises: SpecError (AX140, AX103 …): it is no such document.
    """
    loader: Any = registry.resolve("loaders", "yaml", name)
    document: Document = (loader() if isinstance(loader, type) else loader)(source, name)
    check_document(document)
    data = document.data
    if not isinstance(data, Mapping):
        message = "expected a workflow file: a mapping with the key graph."
        raise SpecError(Problem("AX103", name, message, "Send YAML in a ```yaml block."))
    given = cast("Mapping[str, Any]", data)
    return dict(given) if "graph" in given else {"graph": dict(given)}


def _vars(data: Mapping[str, Any]) -> dict[str, Any]:
    found = data.get("vars")
    return dict(cast("Mapping[str, Any]", found)) if isinstance(found, Mapping) else {}


_ORDER: Final = ("version", "requires", "vars", "templates", "defaults", "overrides", "graph")


def _written(data: Mapping[str, Any]) -> str:
    """Return a workflow file as YAML, with the keys at the top in their usual order."""
    names = [*(key for key in _ORDER if key in data), *(key for key in data if key not in _ORDER)]
    ordered = {name: data[name] for name in names}
    return dump_yaml(ordered)


__all__ = ["Draft", "draft_of"]
