"""Other values in the text of a workflow file. What is not changed stays as it is written: the
order of keys, comments, quotes.

A value is replaced by its position in the text, which the nodes of PyYAML know. A new text is read
again, and is refused where it says anything else than was meant: behind an alias, for example, one
value stands at several places.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

import yaml

from axil.plugin import default_registry
from axil_evals.tuning.errors import TuneError
from axil_files import YamlWriter

Keys = tuple[str | int, ...]
"""The place of a value in a file: keys of mappings, and positions in lists."""
_WIDTH: Final = 1_000_000


def parsed(text: str, name: str, registry: Any = None) -> Any:
    """Return the data of a workflow file. Raises: TuneError (AX985): it is neither YAML nor JSON;
    SpecError: it cannot be read.
    """
    suffix = name.rpartition(".")[2].lower()
    if suffix not in ("yaml", "yml", "json"):
        message = f"a file that is tuned ends with .yaml or .json, found {name}."
        raise TuneError("AX985", message, "Write the workflow as YAML.")
    load = (registry or default_registry()).resolve("loaders", suffix, name)
    return load(text, name).data


def edited(text: str, name: str, values: Mapping[Keys, Any], registry: Any = None) -> str:
    """Return the text of a workflow file with other values; keys that are missing are added.

    Raises: TuneError (AX985): a value cannot be replaced by itself.
    """
    wanted = _apart(parsed(text, name, registry))
    for keys, value in values.items():
        _put(wanted, keys, value)
    if name.endswith(".json"):
        made = json.dumps(wanted, ensure_ascii=False, indent=2) + "\n"
    else:
        made = text
        for keys, value in values.items():
            made = _replaced(made, keys, value, name)
    if parsed(made, name, registry) != wanted:
        shown = ", ".join(".".join(map(str, keys)) for keys in values)
        message = f"{name}: {shown} cannot be changed without changing something else."
        raise TuneError("AX985", message, "Write it out where an alias or a merge key has it.")
    return made


def _apart(data: Any) -> Any:
    """Return a copy of plain data, in which an alias has a value of its own."""
    if isinstance(data, dict):
        return {key: _apart(value) for key, value in cast("dict[Any, Any]", data).items()}
    return [_apart(each) for each in cast("list[Any]", data)] if isinstance(data, list) else data


def _put(data: Any, keys: Keys, value: Any) -> None:
    """Set a value in plain data. Raises: TuneError (AX985): there is no such place."""
    inner: Any = data
    for at, key in enumerate(keys[:-1]):
        if isinstance(inner, dict):
            cast("dict[Any, Any]", inner).setdefault(key, {})
        try:
            inner = cast("Any", inner)[key]
        except (LookupError, TypeError):
            raise _nowhere(keys[: at + 1]) from None
    if not isinstance(inner, (dict, list)):
        raise _nowhere(keys)
    cast("Any", inner)[keys[-1]] = value


def _nowhere(keys: Keys) -> TuneError:
    return TuneError("AX985", f"the file has no {'.'.join(map(str, keys))}.")


def _replaced(text: str, keys: Keys, value: Any, name: str) -> str:
    """Return YAML text with one other value."""
    # an Any from here on: PyYAML's nodes have no types
    node: Any = cast("Any", yaml).compose(text, Loader=yaml.SafeLoader)
    parent: Any = None
    before: Any = None
    for at, key in enumerate(keys):
        parent = node
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            before, node = None, cast("Any", node).value[key]
            continue
        pairs: list[Any] = cast("Any", node).value if isinstance(node, yaml.MappingNode) else []
        found: Any = next((pair for pair in pairs if pair[0].value == key), None)
        if found is None:
            for inner in reversed(keys[at + 1 :]):
                value = {inner: value}
            return _added(text, node, str(key), value, name)
        before, node = found
    start, end = node.start_mark.index, _end(node)
    column = None
    if before is not None:
        start = text.index(":", before.end_mark.index) + 1
        end = start + len(text[start:end].rstrip("\n"))  # a block ends behind its last line
        if not getattr(parent, "flow_style", True) and not text[end:].partition("\n")[0].strip():
            column = before.start_mark.column
    lead = "" if before is None else " "
    return text[:start] + lead + _written(value, column) + text[end:]


def _added(text: str, node: Any, key: str, value: Any, name: str) -> str:
    """Return YAML text with a further key at the beginning of a mapping."""
    if not isinstance(node, yaml.MappingNode):
        raise TuneError("AX985", f'{name}: there is no mapping that could have "{key}".')
    start = node.start_mark.index
    if node.flow_style:
        comma = ", " if node.value else ""
        return f"{text[: start + 1]}{key}: {_written(value)}{comma}{text[start + 1 :]}"
    column = node.start_mark.column
    return f"{text[:start]}{key}: {_written(value, column)}\n{' ' * column}{text[start:]}"


def _end(node: Any) -> int:
    """Return where a value ends, without comments behind it."""
    inner = node
    while isinstance(inner, yaml.CollectionNode) and not inner.flow_style and inner.value:
        last: Any = cast("Any", inner).value[-1]
        inner = cast("Any", last[1] if isinstance(last, tuple) else last)
    return int(inner.end_mark.index)


class _Dumper(YamlWriter):
    """The form of values on one line."""

    def text_style(self, text: str) -> str | None:
        return '"' if "\n" in text else None


def _written(value: Any, column: int | None = None) -> str:
    """Return a value as YAML; a text of several lines as a block where there is a ``column``: that
    of its key.
    """
    if isinstance(value, str) and "\n" in value and column is not None:
        lines = [f"{' ' * (column + 2)}{line}" if line else "" for line in value.split("\n")]
        block = "\n".join(["|-", *lines])
        try:
            read: Any = yaml.safe_load(f"{' ' * column}k: {block}")
        except yaml.YAMLError:
            read = None
        if read == {"k": value}:
            return block
    line = yaml.dump(
        [value],
        Dumper=_Dumper,
        default_flow_style=True,
        allow_unicode=True,
        sort_keys=False,
        width=_WIDTH,
    )
    return line.strip()[1:-1]
