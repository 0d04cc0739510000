"""The parameters of a workflow file, candidates for their values, and variants of the file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from axil.plugin import default_registry, did_you_mean, format_names
from axil_evals.trials import Case
from axil_evals.tuning.errors import TuneError
from axil_files import edit_text

Keys = tuple[str | int, ...]
"""The place of a value in a file: keys of mappings, and positions in lists."""
Kind = Literal["instructions", "examples", "model", "rounds", "other"]
_ROUNDS: Final = ("rounds", "max_rounds", "max_iterations")
_PLACE: Final = re.compile(r"\{(\w+)\}")
_LONGEST: Final = 2000
"""Characters of each text of an example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A setting of a workflow file that tuning may change."""

    name: str
    """``NODE.SETTING``, with the names of nodes around it: ``team/writer.instructions``."""
    kind: Kind
    keys: Keys
    """Its place in the file. Examples stand in the instructions, and have their place."""
    value: Any
    """Its value in the file; None: the file does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A value for a parameter that is tried."""

    parameter: Parameter
    value: Any
    """Of examples: the text behind the instructions."""
    shown: tuple[str, ...] = ()
    """The cases that are examples: the candidate is not tried on them."""

    def described(self) -> str:
        """Return the candidate on one line.

        >>> rounds = Parameter(name="loop.rounds", kind="rounds", keys=("rounds",), value=2)
        >>> Candidate(parameter=rounds, value=4).described()
        'loop.rounds = 4'
        """
        if self.parameter.kind == "examples":
            return f"{self.parameter.name} = {len(self.shown)} cases"
        value = self.value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        line = " ".join(text.split())
        return f"{self.parameter.name} = {line if len(line) <= 100 else line[:99] + '…'}"


Variant = tuple[Candidate, ...]
"""The file with some candidates, at most one for each parameter; empty: the file as it is."""


def data_of(text: str, name: str, registry: Any = None) -> Any:
    """Return the data of a workflow file. Raises: TuneError (AX985): it is neither YAML nor JSON;
    SpecError: it cannot be read.
    """
    suffix = name.rpartition(".")[2].lower()
    if suffix not in ("yaml", "yml", "json"):
        message = f"a file that is tuned ends with .yaml or .json, found {name}."
        raise TuneError("AX985", message, "Write the workflow as YAML.")
    load = (registry or default_registry()).resolve("loaders", suffix, name)
    return load(text, name).data


def text_of(variant: Variant, text: str) -> str:
    """Return the text of the file with the values of a variant.

    Raises: EditError: a value cannot be replaced by itself.
    """
    values: dict[Keys, Any] = {}
    for each in sorted(variant, key=lambda candidate: candidate.parameter.kind == "examples"):
        keys, value = each.parameter.keys, each.value
        if each.parameter.kind == "examples":
            value = f"{values.get(keys, each.parameter.value)}\n\n{value}"
        values[keys] = value
    for keys, value in values.items():
        text = edit_text(text, {"do": "set", "path": list(keys), "value": value})
    return text


def digest_of(text: str) -> str:
    """Return a short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# ------------------------------------------------------------------ what a file has


def parameters(data: object) -> list[Parameter]:
    """Return the parameters of a workflow file: instructions of agents, models, rounds.

    What is a variable (``${NAME}``) as a whole is set where the variable is, and is left out.

    >>> node = {"id": "a", "type": "agent", "config": {"instructions": "Hi.", "model": "m"}}
    >>> [each.name for each in parameters({"graph": {"nodes": [node]}})]
    ['a.instructions', 'a.model']
    """
    return [
        each
        for each in _within(data, (), ())
        if not (isinstance(each.value, str) and each.value.startswith("${"))
    ]


def _within(data: Any, keys: Keys, owner: tuple[str, ...]) -> Iterator[Parameter]:
    if isinstance(data, Mapping):
        found = cast("Mapping[str, Any]", data)
        inner = _owner(found, keys, owner)
        for key, value in found.items():
            kind = _kind(found, key, value)
            if kind is not None:
                name = f"{'/'.join(inner)}.{key}" if inner else str(key)
                yield Parameter(name=name, kind=kind, keys=(*keys, key), value=value)
            if kind is None or kind == "rounds":
                yield from _within(value, (*keys, key), inner)
    elif isinstance(data, list):
        for at, value in enumerate(cast("list[Any]", data)):
            yield from _within(value, (*keys, at), owner)


def _owner(found: Mapping[str, Any], keys: Keys, owner: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the nodes that a mapping belongs to."""
    if keys and keys[-1] == "graph":
        return owner
    if isinstance(found.get("id"), str):
        return (*owner, found["id"])
    if len(keys) == 2 and keys[0] == "templates":
        return (*owner, str(keys[1]))
    if len(keys) > 1 and keys[-2] == "cycle_limits":
        return (*owner, str(keys[-1]))
    return owner


def _kind(found: Mapping[str, Any], key: str, value: Any) -> Kind | None:
    if key == "instructions" or (key == "role" and "provider" in found):
        return "instructions" if isinstance(value, str) else None
    if key == "model" and isinstance(value, (str, Mapping)):
        return "model"
    if key in _ROUNDS and type(value) is int and value > 0:
        return "rounds"
    return None


def ends(data: Any, found: Sequence[Parameter]) -> list[Parameter]:
    """Return the instructions of the agents whose replies are the output: the only agent, or those
    at the end of the graph.
    """
    agents = [each for each in found if each.kind == "instructions"]
    if len(agents) < 2:
        return agents
    graph: Any = data.get("graph") or {}
    stated: Any = graph.get("end") or []
    named = {stated} if isinstance(stated, str) else {str(each) for each in stated}
    edges: list[Any] = graph.get("edges") or []
    named |= {str(edge.get("from")) for edge in edges if _at(edge, ("to",)) == "@exit"}
    return [each for each in agents if each.name.rpartition(".")[0] in named]


# ------------------------------------------------------------------ what is tried


def given(tries: Any, data: Any, where: str) -> list[Candidate]:
    """Return the candidates that a person wrote: a list of ``{node, key, values}``.

    Raises: TuneError (AX986): it is no such list, or names what the file does not have.
    """
    listed: Any = cast("Any", tries).get("tries") if isinstance(tries, Mapping) else tries
    if not isinstance(listed, list):
        raise TuneError("AX986", "expected a list of tries.", "Write tries: [{node, key, values}].")
    nodes = dict(_nodes(data, ()))
    found: list[Candidate] = []
    for at, each in enumerate(cast("list[Any]", listed)):
        place = f"{where}: tries[{at}]"
        entry = cast("Mapping[str, Any]", each if isinstance(each, Mapping) else {})
        node, key, values = entry.get("node"), entry.get("key"), entry.get("values")
        is_whole = isinstance(node, str) and isinstance(key, str) and isinstance(values, list)
        if not is_whole or set(entry) != {"node", "key", "values"}:
            raise TuneError("AX986", "expected node, key and values.", where=place)
        if node not in nodes:
            known = list(nodes)
            hint = did_you_mean(str(node), known) or f"There are {format_names(known)}."
            raise TuneError("AX986", f'the file has no node "{node}".', hint, place)
        parts = tuple(str(key).split("."))
        keys = (*nodes[str(node)], *parts)
        before = _at(data, keys)
        kind: Kind = "instructions" if key in ("instructions", "role") else "other"
        parameter = Parameter(name=f"{node}.{key}", kind=kind, keys=keys, value=before)
        found += [
            Candidate(parameter=parameter, value=value)
            for value in cast("list[Any]", values)
            if value != before
        ]
    return found


def _at(data: Any, keys: Keys) -> Any:
    """Return the value at a place of a file; None: there is none."""
    found: Any = data
    for key in keys:
        try:
            found = found[key]
        except (LookupError, TypeError):
            return None
    return found


def _nodes(data: Any, keys: Keys, owner: tuple[str, ...] = ()) -> Iterator[tuple[str, Keys]]:
    """Yield nodes and templates with the places of their settings."""
    if isinstance(data, Mapping):
        found = cast("Mapping[str, Any]", data)
        inner = _owner(found, keys, owner)
        if inner != owner and ("type" in found or "use" in found):
            yield "/".join(inner), (*keys, "config")
        for key, value in found.items():
            yield from _nodes(value, (*keys, key), inner)
    elif isinstance(data, list):
        for at, value in enumerate(cast("list[Any]", data)):
            yield from _nodes(value, (*keys, at), owner)


def usual(
    data: Any, *, models: Sequence[Any], examples: Sequence[Sequence[Case]]
) -> list[Candidate]:
    """Return the candidates that need no model: examples, other models, fewer and more rounds."""
    found = parameters(data)
    made: list[Candidate] = []
    for each in ends(data, found):
        owner = each.name.rpartition(".")[0]
        shown = Parameter(
            name=f"{owner}.examples", kind="examples", keys=each.keys, value=each.value
        )
        made += [
            Candidate(
                parameter=shown, value=_examples(cases), shown=tuple(case.name for case in cases)
            )
            for cases in examples
        ]
    for each in found:
        if each.kind == "model":
            made += [Candidate(parameter=each, value=m) for m in models if m != each.value]
        elif each.kind == "rounds":
            tried = dict.fromkeys([max(1, each.value // 2), each.value * 2])
            made += [Candidate(parameter=each, value=n) for n in tried if n != each.value]
    return made


def _examples(cases: Iterable[Case]) -> str:
    """Return cases as examples in a prompt."""
    parts = [f"Input: {_brief(case.inputs)}\nOutput: {_brief(case.expected)}" for case in cases]
    return "\n\n".join(["Examples:", *parts])


def _brief(value: Any) -> str:
    if isinstance(value, Mapping) and len(cast("Mapping[str, Any]", value)) == 1:
        value = next(iter(cast("Mapping[str, Any]", value).values()))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = _PLACE.sub(r"{{\1}}", text.replace("${", "$ {"))  # no variable, and no place of a field
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
