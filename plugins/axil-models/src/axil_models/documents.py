"""Documents: texts that can be searched, and where each is from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text, and where it is from."""

    text: str
    uri: str
    title: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    """Plain data; goes with each chunk, and is what filters look at."""
    part: Mapping[str, object] | None = None
    """An image, a file or a recording that goes with each chunk."""

    def digest(self, *settings: object) -> str:
        """Hash all that there is to index, and the ``settings`` that change what is made of it."""
        lines = [
            self.text,
            self.title,
            dict(self.metadata),
            *settings,
            *([] if self.part is None else [dict(self.part)]),
        ]
        data = json.dumps(lines, sort_keys=True, ensure_ascii=True, default=str)
        return hashlib.sha256(data.encode("ascii")).hexdigest()
