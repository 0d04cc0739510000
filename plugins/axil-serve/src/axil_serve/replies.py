"""The form in which a client of OpenAI's APIs wants the output: a text, or JSON of a schema."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from axil import AxilError
from axil.plugin import BoundedSchema
from axil_serve.conversation import output_text
from axil_serve.errors import BadRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFormat:
    """The form of a reply."""

    is_json: bool = False
    schema: BoundedSchema | None = None

    async def reply(self, run: Mapping[str, Any]) -> tuple[str, str]:
        """Return the output of a run as a text, and what is wrong with it; empty: nothing is.

        A run that asks is answered with its question, whatever the form is.
        """
        if not self.is_json or run["questions"] or run["status"] != "done":
            return output_text(run), ""
        return await asyncio.to_thread(self._json, run)

    def _json(self, run: Mapping[str, Any]) -> tuple[str, str]:
        fault = "it is not a JSON object."
        for value in _objects(run):
            if self.schema is None:
                return json.dumps(value, ensure_ascii=False), ""
            try:
                found = self.schema.first_fault(value)
            except AxilError as error:  # it refers to somewhere, or takes too long
                return "", f"the output cannot be held against the schema: {error}"
            if found is None:
                return json.dumps(value, ensure_ascii=False), ""
            fault = f"at {found.path}: {found.message:.300}"
        return "", f"the output does not fit the format: {fault}"


def reply_format(given: Any, where: str) -> ReplyFormat:
    """Return the format that a request names.

    Args:
        given: of Chat Completions or of Responses; None: a text.
        where: the parameter that has it.
    Raises: BadRequest (AX966): it is no format, or its schema is none.
    """
    if given is None:
        return ReplyFormat()
    form = cast("dict[str, Any]", given) if isinstance(given, dict) else dict[str, Any]()
    kind: Any = form.get("type")
    if kind == "text":
        return ReplyFormat()
    if kind == "json_object":
        return ReplyFormat(is_json=True)
    if kind != "json_schema":
        hint = 'Send {"type": "text"}, "json_object" or "json_schema".'
        raise BadRequest("AX966", "it is not a format that is served.", hint, where)
    inner: Any = form.get("json_schema", form)
    schema: Any = cast("dict[str, Any]", inner).get("schema") if isinstance(inner, dict) else None
    if not isinstance(schema, dict):
        message = "the format has no schema, an object."
        raise BadRequest("AX966", message, 'Send "schema": {…}.', where)
    try:
        return ReplyFormat(is_json=True, schema=BoundedSchema(cast("dict[str, Any]", schema)))
    except AxilError as error:
        raise BadRequest("AX966", f"the schema cannot be used: {error}", "", where) from error


def _objects(run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what may be meant by the output as JSON: its fields, and its text if that is JSON."""
    output: Any = run["output"]
    if isinstance(output, dict) and "messages" not in output:
        yield cast("dict[str, Any]", output)
    try:
        found: Any = json.loads(output_text(run))
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict):
        yield cast("dict[str, Any]", found)


__all__ = ["ReplyFormat", "reply_format"]
