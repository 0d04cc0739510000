"""``tagged``: each field behind its tag, which need not be closed.

<plan>first this, then that
<score>3
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from axil_models.formatters.json import Json
from axil_models.formatters.text import FormatError, excerpt
from axil_models.thoughts import without_thoughts
from axil_models.values import as_text

_ESCAPED = re.compile(r"^\\(\\*<[^<>\n/\\]+>)", re.MULTILINE)
_TAG = re.compile(r"^(\\*)<([^<>\n/\\]+)>", re.MULTILINE)


class Tagged:
    """``tagged``: a tag at the beginning of a line starts its field.

    Only fields that were asked for are tags; without any, all are.
    """

    introduction = (
        "Answer with one tag for each field, at the beginning of a line, with the value behind it: "
        "<field>value. Closing tags are not needed. Write nothing before the first tag."
    )

    def dump(self, fields: Any) -> str:
        """Return every field behind its tag; a line of a value that could be a tag has a backslash
        before it. ``""`` has no tag.
        """
        parts: list[str] = []
        for name, value in fields.items():
            text = as_text(value)
            parts.append(f"<{name}>" + _TAG.sub(r"\\\g<0>", text) if name else text)
        return "\n".join(parts)

    def parse(self, text: str, fields: Sequence[str] = ()) -> dict[str, object]:
        """Read the fields in ``text``: behind tags, or one JSON object; one field may be all of it.

        Raises: FormatError (AX693): neither was found.
        """
        text = without_thoughts(text)
        known = {name.casefold(): name for name in fields}
        tags = [m for m in _TAG.finditer(text) if not m[1]]
        starts = [m for m in tags if not fields or m[2].strip().casefold() in known]
        found: dict[str, object] = {}
        for start, end in zip(starts, [*(m.start() for m in starts[1:]), len(text)], strict=False):
            name = known.get(start[2].strip().casefold(), start[2])
            value = text[start.end() : end].strip().removesuffix(f"</{start[2]}>").rstrip()
            found[name] = _ESCAPED.sub(r"\1", value)
        if found:
            return found
        try:
            return Json().parse(text)
        except FormatError:
            if len(fields) == 1 and text:
                return {fields[0]: text}
        hint = f"Begin with <{fields[0]}>." if fields else ""
        raise FormatError(
            "AX693", f'expected <field>value for each field, found "{excerpt(text)}".', hint
        )
