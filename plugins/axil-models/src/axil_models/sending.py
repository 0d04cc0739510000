"""Parts of the requests that adapters send to services, and to the SDKs of these."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from axil.plugin import Message, signature_of
from axil_models.errors import PartError
from axil_models.parts import part_label
from axil_models.requests import Structure


def sdk_arguments(settings: Mapping[str, object], known: frozenset[str]) -> dict[str, Any]:
    """Return settings as arguments of the SDK: what it has no argument for goes into the body; None
    leaves one out.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    strange = {name: given.pop(name) for name in list(given) if name not in known}
    if strange:
        given["extra_body"] = {**strange, **cast("dict[str, Any]", given.get("extra_body") or {})}
    return given


def parameters_of_sdk(method: Callable[..., object]) -> frozenset[str]:
    """Return the arguments that a method of the SDK has."""
    return frozenset(signature_of(method).parameters) - {"self"}


def structure_prompt(structure: Structure) -> str:
    """Return the prompt for a model that can be held to a structure in no other way."""
    shown = json.dumps(structure.schema, ensure_ascii=False)
    return f"Answer with one JSON object and nothing else. It has to fit this JSON Schema:\n{shown}"


def with_instruction(messages: list[Message], meaning: str) -> list[Message]:
    """Return the messages, with ``meaning`` behind the system's."""
    if not meaning:
        return messages
    if messages and messages[0].get("role") == "system":
        content = f"{messages[0].get('content') or ''}\n\n{meaning}"
        return [{**messages[0], "content": content}, *messages[1:]]
    return [{"role": "system", "content": meaning}, *messages]


def valid_text(text: str) -> str:
    """Return a text that can be written as UTF-8: lone surrogates become question marks.

    >>> valid_text("a\\ud800b")
    'a?b'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def unsendable(part: Mapping[str, object], api: str) -> PartError:
    """Return the error of a part that cannot be sent in the way in which it is given."""
    source = next((key for key in ("url", "file_id", "data") if part.get(key)), "path")
    hint = "Give it in another way."
    if source == "path":
        hint = "Let an agent send it: it reads paths in the workspace of the run."
    return PartError("AX801", f"{api} cannot be sent {part_label(part)} by its {source}.", hint)
