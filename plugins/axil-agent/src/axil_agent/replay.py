"""``replay``: a real run recorded once, and answered from the recording ever after.

A recording is a file of JSON lines, one exchange each: the request's digest, the request, the reply. It is written as it happens,
so a run that breaks off has what it had. What looks like a secret in settings is never written.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, Field

from axil.errors import ConfigError, Problem
from axil_agent.errors import ReplayMiss
from axil_agent.interfaces import Emit, Model, Reply, Request
from axil_agent.values import plain

_PRIVATE = re.compile(r"secret|password|passwd|token$|api_?key|credential|authorization|headers$", re.IGNORECASE)
_LONGEST_DIFF = 40


def shown(request: Request) -> dict[str, Any]:
    """A request as it is recorded: plain, and without secrets."""
    return cast("dict[str, Any]", _without_secrets(plain(request.plain())))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {name: _without_secrets(each) for name, each in items if not (_PRIVATE.search(name) and not isinstance(each, (int, float)))}
    return [_without_secrets(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def digest(request: Mapping[str, Any]) -> str:
    """The name of a request: the same for the same request, in any order of keys."""
    text = json.dumps(request, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Recorder:
    """A model whose exchanges are written to a file.

    ``with models_through(lambda meant, written: Recorder(meant(), "run.jsonl")): …`` records every agent of a run.
    """

    def __init__(self, model: Model, path: str | Path) -> None:
        """Exchanges are added to the file at ``path``."""
        self.model, self.path = model, Path(path)

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """The model's reply, recorded. What it raises is not recorded."""
        reply = await self.model.reply(request, emit)
        self._write(request, reply)
        return reply

    def _write(self, request: Request, reply: Reply) -> None:
        asked = shown(request)
        line = json.dumps({"digest": digest(asked), "request": asked, "reply": plain(reply.plain())}, ensure_ascii=False, default=str)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    async def close(self) -> None:
        """Close the model."""
        close = getattr(self.model, "close", None)
        if close is not None:
            await close()


class Replay:
    """``replay``: answers requests that were recorded, and no others.

    Where one request was recorded several times its replies come in that order, and then from the first again.
    """

    class Config(BaseModel, extra="forbid", frozen=True):
        """Which recording."""

        path: str = Field(description="The file that a Recorder wrote.")

    def __init__(self, config: Config | str | Path) -> None:
        """The file is read at the first request."""
        self.path = Path(config.path if isinstance(config, Replay.Config) else config)
        self._known: dict[str, list[dict[str, Any]]] | None = None
        self._next: dict[str, int] = {}

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """The recorded reply. Raises: ReplayMiss (AX662): there is none; the message shows the nearest request that there is."""
        known = self._read()
        asked = shown(request)
        key = digest(asked)
        if key not in known:
            raise self._miss(asked, known)
        at = self._next.get(key, 0)
        self._next[key] = at + 1
        reply = Reply.read(known[key][at % len(known[key])]["reply"])
        if reply.text:
            emit({"kind": "text", "text": reply.text})
        return reply

    def _read(self) -> dict[str, list[dict[str, Any]]]:
        if self._known is None:
            known: dict[str, list[dict[str, Any]]] = {}
            for number, line in enumerate(self._lines(), 1):
                try:
                    exchange = json.loads(line)
                    known.setdefault(digest(exchange["request"]), []).append(exchange)
                except (ValueError, KeyError, TypeError) as error:
                    where = f"{self.path}:{number}"
                    raise ConfigError(Problem("AX663", where, f"this line is no recorded exchange ({error}).", "Record again.")) from error
            self._known = known
        return self._known

    def _lines(self) -> list[str]:
        try:
            return [line for line in self.path.read_text("utf-8").splitlines() if line.strip()]
        except OSError as error:
            raise ConfigError(
                Problem("AX663", str(self.path), f"the recording cannot be read: {error.strerror}.", "Record a run.")
            ) from error

    def _miss(self, asked: dict[str, Any], known: Mapping[str, list[dict[str, Any]]]) -> ReplayMiss:
        mine = _pretty(asked)
        requests = [_pretty(exchanges[0]["request"]) for exchanges in known.values()]
        if not requests:
            return ReplayMiss("AX662", f"{self.path} holds no exchange.", "Record a run.")
        nearest = max(requests, key=lambda other: _likeness(mine, other))
        diff = list(difflib.unified_diff(nearest, mine, "recorded", "asked", lineterm="", n=1))
        more = f"\n… {len(diff) - _LONGEST_DIFF} more lines" if len(diff) > _LONGEST_DIFF else ""
        text = "\n".join(diff[:_LONGEST_DIFF]) + more
        return ReplayMiss(
            "AX662", f"{self.path} does not hold this request. The nearest differs so:\n{text}\n", "Record again, or undo the change."
        )


def _likeness(one: list[str], other: list[str]) -> tuple[float, float]:
    """How alike two texts are: by lines, and where that is the same by letters."""
    letters = difflib.SequenceMatcher(None, "\n".join(one), "\n".join(other)).quick_ratio()
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio(), letters


def _pretty(request: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for line in json.dumps(request, sort_keys=True, ensure_ascii=False, indent=1, default=str).split("\n"):
        lines.extend(line.split("\\n"))
    return lines
