"""Datasets: cases in YAML, JSON, JSON Lines or CSV; those of pydantic-evals as well."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, cast

import yaml
from pydantic import TypeAdapter, ValidationError

from axil import MISSING
from axil.plugin import Grants, did_you_mean, format_names
from axil_evals.errors import EvalError
from axil_evals.trials import Case
from axil_files import like_file

_OF_CASE: Final = (
    "name", "inputs", "expected", "expected_output", "metadata", "scorers", "evaluators",
)  # fmt: skip
_OF_DATASET: Final = ("name", "cases", "scorers", "evaluators", "$schema", "report_evaluators")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Cases, and the scorers for all of them."""

    name: str
    cases: tuple[Case, ...]
    scorers: tuple[Any, ...] = ()
    """Names, or ``{type: …, …}``."""
    left_out: tuple[str, ...] = ()
    """Evaluators of another framework that mean nothing here."""
    grants: Grants | None = None
    """The grants of its scorers; None: all that Python code may do."""

    def plain(self) -> dict[str, Any]:
        """Return the dataset as plain data."""
        return {
            "name": self.name,
            "scorers": list(self.scorers),
            "cases": [case.plain() for case in self.cases],
        }


def read_dataset(path: str | Path, *, allow: Iterable[str] = ()) -> Dataset:
    """Return the dataset in a file: ``.yaml``, ``.yml``, ``.json``, ``.jsonl`` or ``.csv``.

    Its scorers may do what a workflow file may; ``allow``: and what is granted, as for
    ``axil_files.load``.

    Raises: EvalError: AX970 it cannot be read; AX971 it holds no dataset. ConfigError (AX136): a
    word is unknown.
    """
    folder = os.path.dirname(os.path.realpath(path))
    return replace(_read(Path(path)), grants=Grants.of(allow, folder))


def _read(file: Path) -> Dataset:
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        message = f"the dataset cannot be read: {why}."
        raise EvalError("AX970", message, like_file(file), str(file)) from None
    suffix = file.suffix.lower()
    if suffix == ".csv":
        return _made(file, [_row(row, f"{file}:{at}") for at, row in _rows(text, file)], [], [])
    if suffix == ".jsonl":
        # not splitlines(): a text in JSON may hold other characters that end lines
        lines = [(at, line) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
        found = [(_parsed(json.loads, line, f"{file}:{at}"), f"{file}:{at}") for at, line in lines]
        left: list[str] = []
        return _made(file, [_case(data, where, left) for data, where in found], [], left)
    if suffix not in (".yaml", ".yml", ".json"):
        message = f'a dataset ends with .yaml, .json, .jsonl or .csv, found "{suffix}".'
        raise EvalError("AX970", message, where=str(file))
    data = _parsed(json.loads if suffix == ".json" else yaml.safe_load, text, str(file))
    given = cast("Mapping[str, Any]", data if isinstance(data, Mapping) else {"cases": data})
    if not isinstance(given.get("cases"), list):
        message = "expected a list of cases, or a mapping with cases."
        raise EvalError("AX971", message, where=str(file))
    _known(given, _OF_DATASET, str(file))
    reports: Any = given.get("report_evaluators") or []
    left = [
        f"report evaluator {each!r}" for each in _listed(reports, "report_evaluators", str(file))
    ]
    general = _scorers(given, str(file), left)
    cases = [
        _case(case, f"{file}: cases[{at}]", left, general)
        for at, case in enumerate(cast("Sequence[Any]", given["cases"]))
    ]
    return _made(file, cases, general, left, str(given.get("name") or ""))


def _made(
    file: Path, cases: Sequence[Case], scorers: Iterable[Any], left: Iterable[str], name: str = ""
) -> Dataset:
    named: dict[str, Case] = {}
    for at, case in enumerate(cases, 1):
        title = case.name or f"case {at}"
        if title in named:
            raise EvalError("AX971", f'two cases are called "{title}".', where=str(file))
        named[title] = replace(case, name=title)
    if not named:
        raise EvalError("AX971", "the dataset has no cases.", where=str(file))
    return Dataset(
        name=name or file.stem,
        cases=tuple(named.values()),
        scorers=tuple(scorers),
        left_out=tuple(dict.fromkeys(left)),
    )


def _parsed(parse: Callable[[str], Any], text: str, where: str) -> Any:
    try:
        return parse(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise EvalError("AX971", f"it cannot be parsed: {reason}.", where=where) from None


def _known(data: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    for name in data:
        if name not in names:
            hint = did_you_mean(str(name), names) or f"There are {format_names(list(names))}."
            raise EvalError("AX971", f'unknown key "{name}".', hint, where)


def _case(given: Any, where: str, left: list[str], general: Sequence[Any] = ()) -> Case:
    if not isinstance(given, Mapping):
        raise EvalError("AX971", f"expected a case, found {type(given).__name__}.", where=where)
    data = cast("Mapping[str, Any]", given)
    _known(data, _OF_CASE, where)
    if "inputs" not in data:
        raise EvalError("AX971", "the case has no inputs.", where=where)
    meta: Any = data.get("metadata") or {}
    metadata = cast("Mapping[str, Any]", meta if isinstance(meta, Mapping) else {"metadata": meta})
    expected = data.get("expected", data.get("expected_output", MISSING))
    return Case(
        name=str(data.get("name") or ""),
        inputs=data["inputs"],
        expected=MISSING if "expected_output" in data and expected is None else expected,
        metadata=metadata,
        scorers=tuple(_scorers(data, where, left, general)),
    )


def _listed(given: Any, name: str, where: str) -> list[Any]:
    if not isinstance(given, list):
        raise EvalError("AX971", f"expected a list of {name}.", where=where)
    return [*cast("list[Any]", given)]


def _scorers(
    data: Mapping[str, Any], where: str, left: list[str], general: Sequence[Any] = ()
) -> list[Any]:
    own: Any = data.get("scorers") or []
    found = _listed([own] if isinstance(own, (str, Mapping)) else own, "scorers", where)
    for each in _listed(data.get("evaluators") or [], "evaluators", where):
        translated = evaluator(each)
        if translated is None:
            left.append(_name_of(each))
        else:  # there, several may have one name
            names = [_scorer_name(other) for other in (*general, *found)]
            name, number = _scorer_name(translated), 1
            while (title := f"{name} {number}" if number > 1 else name) in names:
                number += 1
            found.append(translated if title == name else {**translated, "name": title})
    for scorer in found:
        if not isinstance(scorer, str) and not (isinstance(scorer, Mapping) and "type" in scorer):
            message = f"{scorer!r:.80} names no scorer."
            raise EvalError("AX971", message, "Write {type: name, …}.", where)
    return found


# ------------------------------------------------------------------ pydantic-evals


def _name_of(given: Any) -> str:
    if isinstance(given, Mapping):
        return str(next(iter(cast("Mapping[str, Any]", given)), ""))
    return str(given)


def _scorer_name(scorer: Any) -> str:
    """Return the name of a scorer, as reports have it."""
    return str(scorer if isinstance(scorer, str) else scorer.get("name") or scorer.get("type"))


def evaluator(given: Any) -> dict[str, Any] | None:
    """Return an evaluator of pydantic-evals as a scorer; None: nothing here does what it does.

    >>> evaluator("EqualsExpected")
    {'type': 'exact', 'if_expected': True}
    >>> evaluator({"MaxDuration": {"seconds": "PT2M", "evaluation_name": "quick"}})
    {'type': 'time', 'most_seconds': 120.0, 'name': 'quick'}
    """
    name, value = _name_of(given), None
    if isinstance(given, Mapping):
        value = next(iter(cast("Mapping[str, Any]", given).values()), None)
    settings = cast("Mapping[str, Any]", value if isinstance(value, Mapping) else {})
    found = _translated(name, value, settings)
    shown: Any = settings.get("assertion") or settings.get("score") if name == "LLMJudge" else None
    naming = cast("Mapping[str, Any]", shown if isinstance(shown, Mapping) else settings)
    called = naming.get("evaluation_name")
    if name == "EqualsExpected" and isinstance(value, str):
        called = value
    return {**found, "name": called} if found is not None and isinstance(called, str) else found


def _translated(name: str, value: Any, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    if name == "EqualsExpected":
        return {"type": "exact", "if_expected": True}
    if name == "Equals":
        return {"type": "exact", "value": settings.get("value", value)}
    if name == "Contains":
        wanted = settings.get("value", value)
        if not isinstance(wanted, str):
            return None
        is_sensitive = settings.get("case_sensitive", True)
        return {"type": "contains", "text": wanted, "ignore_case": not is_sensitive}
    if name == "MaxDuration":
        try:  # a number, or as ISO 8601 writes it
            lasting = _SECONDS.validate_python(settings.get("seconds", value))
        except ValidationError:
            return None
        return {"type": "time", "most_seconds": lasting.total_seconds()}
    if name == "IsInstance":
        kind = _JSON.get(str(settings.get("type_name", value)))
        return None if kind is None else {"type": "schema", "schema": {"type": kind}}
    if name == "ToolCorrectness" and settings.get("allow_extra"):
        tools = [str(each) for each in settings.get("expected_tools") or ()]
        return {"type": "trajectory", "tools": tools, "order": "any_order"}
    if name == "TrajectoryMatch" and settings.get("order") == "exact":
        tools = [str(each) for each in settings.get("expected_trajectory") or ()]
        return {"type": "trajectory", "tools": tools, "order": "exact"}
    if name == "LLMJudge":
        rubric = settings.get("rubric", value)
        if not isinstance(rubric, str):
            return None
        shown = {
            "show_input": bool(settings.get("include_input", False)),
            "show_expected": bool(settings.get("include_expected_output", False)),
        }
        return {"type": "judge", "rubric": rubric, **shown}
    return None


_SECONDS: Final = TypeAdapter(timedelta)
_JSON: Final = {
    "str": "string", "int": "integer", "float": "number", "bool": "boolean", "dict": "object",
    "list": "array", "NoneType": "null",
}  # fmt: skip


# ------------------------------------------------------------------ CSV


def _rows(text: str, file: Path) -> list[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    found: list[tuple[int, dict[str, str]]] = []
    try:
        for row in reader:
            if None in row or None in row.values():
                message = "a row has another number of columns than the first."
                raise EvalError("AX971", message, where=f"{file}:{reader.line_num}")
            found.append((reader.line_num, row))
    except csv.Error as error:
        raise EvalError("AX971", f"{error}.", where=f"{file}:{reader.line_num}") from None
    return found


def _row(row: Mapping[str, str], where: str) -> Case:
    """Return a row as a case: ``name``, ``expected``, ``expected.FIELD`` and ``metadata.NAME`` are
    what they are called; every other column is an input, as text.
    """
    inputs: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for column, value in row.items():
        head, _, rest = column.partition(".")
        if column in ("name", "expected"):
            continue
        if head == "metadata" and rest:
            metadata[rest] = value
        elif head == "expected" and rest:
            fields[rest] = value
        else:
            inputs[rest if head == "inputs" and rest else column] = value
    if not inputs:
        raise EvalError("AX971", "the row has no inputs.", where=where)
    expected = fields or row.get("expected", MISSING)
    return Case(name=row.get("name", ""), inputs=inputs, expected=expected, metadata=metadata)


# ------------------------------------------------------------------ a further case


def add_case(path: str | Path, case: Case) -> None:
    """Add a case at the end of a dataset; a file that is not there is made. What is there stays as
    it is written.

    Raises: EvalError: AX971 a case has this name already, or the end of the file is not its list
    of cases.
    """
    file = Path(path)
    if file.suffix.lower() not in (".yaml", ".yml", ".jsonl"):
        raise EvalError("AX971", "a case is added to .yaml or .jsonl files.", where=str(file))
    is_lines = file.suffix.lower() == ".jsonl"
    text = file.read_text("utf-8") if file.exists() else ("" if is_lines else "cases:\n")
    known = read_dataset(file) if file.exists() else None
    if known is not None and any(case.name == other.name for other in known.cases):
        message = f'there is a case "{case.name}" already.'
        raise EvalError("AX971", message, "Give another --name.", str(file))
    if text and not text.endswith("\n"):
        text += "\n"
    if is_lines:
        text += json.dumps(case.plain(), ensure_ascii=False) + "\n"
    else:
        block = yaml.safe_dump([case.plain()], sort_keys=False, allow_unicode=True)
        last = next(
            (line for line in reversed(text.splitlines()) if line.lstrip().startswith("- ")), ""
        )
        indent = _indent_of_cases(text) if last else "  "
        text += "".join(f"{indent}{line}\n" for line in block.splitlines())
        data: Any = _parsed(yaml.safe_load, text, str(file))
        cases: Any = cast("Any", data).get("cases") if isinstance(data, Mapping) else data
        before = 0 if known is None else len(known.cases)
        if [*(cases or ())][before:] != [case.plain()]:
            message = "the file does not end with its list of cases."
            hint = "Move cases to the end, or use a .jsonl file."
            raise EvalError("AX971", message, hint, str(file))
    # half of a surrogate pair, as JSON has it: what cannot be encoded would leave an empty file
    file.write_text(text, "utf-8", errors="backslashreplace")


def _indent_of_cases(text: str) -> str:
    """Return the white space before the items of the list of cases."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith("cases:")), -1)
    first = next((line for line in lines[start + 1 :] if line.lstrip().startswith("- ")), "")
    return first[: len(first) - len(first.lstrip())]
