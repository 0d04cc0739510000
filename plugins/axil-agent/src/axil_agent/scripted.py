"""``scripted``: a model that answers from a script. For tests, examples, and work without a key.

    {"rules": [{"match": {"system_contains": "editor"}, "replies": ["First draft.", "Second
    draft."]},
               {"match": {"user_contains": "sum"}, "replies": [{"tool_calls": [{"name": "add",
               "arguments": {"a": 1}}]}, "It is 3."]}],
     "default": "OK"}

The first rule that matches answers: its replies in order, the last one again and again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from axil import ConfigError, Problem
from axil.plugin import current_grants, decode_config, format_value, naming_unknown
from axil_agent.models import StandIn, models_through, name_of
from axil_files import like_file
from axil_models import (
    PROVIDER_TOOLS,
    Emit,
    ModelError,
    Reply,
    Request,
    ToolCall,
    Usage,
    content_text,
    read_arguments,
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Match(_Strict):
    """The conditions under which a rule answers: all that are set have to hold."""

    system_contains: str | None = Field(default=None, description="Text in a system message.")
    user_contains: str | None = Field(default=None, description="Text in a user message.")
    model: str | None = Field(default=None, description="The name of the model that was meant.")


class Call(_Strict):
    """A tool call."""

    name: str
    arguments: dict[str, Any] | str = Field(
        default_factory=dict[str, Any], description="Or a text, as a model might write it."
    )
    id: str | None = None

    def made(self, number: int) -> ToolCall:
        """Return the call; ``number`` is its id where the script gives none."""
        arguments, fault = read_arguments(self.arguments)
        return ToolCall(
            id=self.id or f"c{number}", name=self.name, arguments=arguments, fault=fault
        )


class Line(_Strict):
    """A reply that is more than a text."""

    text: str = Field("", description="What is said.")
    json_: object = Field(None, alias="json", description="Given as JSON instead of text.")
    tool_calls: tuple[Call, ...] = Field((), description="Tools that are asked for.")
    echo_user: bool = Field(False, description="Repeat the user's messages: `(one+two)`.")
    status: int | None = Field(None, description="Fail with this HTTP status instead.")
    retry_after: float | None = Field(None, description="Seconds that the failure says to wait.")
    delay: float = Field(0, ge=0, description="Seconds to wait first.")
    finish: str = Field("", description="Why the reply ends: length, filter, …")
    usage: dict[str, float] | None = Field(
        None, description="What is reported; without it, lengths are estimated."
    )


def _is_more(given: object) -> str:
    return "more" if isinstance(given, (Mapping, Line)) else "text"


ScriptReply = Annotated[
    Annotated[str, Tag("text")] | Annotated[Line, Tag("more")], Discriminator(_is_more)
]
"""Distinguished by form, so that a mistake in one is not reported as two."""


class Rule(_Strict):
    """Replies for requests that match."""

    match: Match = Field(Match(), description="When it answers.")
    replies: tuple[ScriptReply, ...] = Field(
        description="Texts or more, at least one; the last one repeats.",
        json_schema_extra={"minItems": 1},
    )

    @field_validator("replies", mode="before")
    @classmethod
    def _some(cls, given: object) -> object:
        if isinstance(given, (list, tuple)) and not given:
            raise ValueError("expected at least one reply, found an empty list")
        return cast("Any", given)


class Script(_Strict):
    """The script of a ``scripted`` model."""

    rules: tuple[Rule, ...] = Field(
        (), description="Tried in order; the first that matches answers."
    )
    default: ScriptReply = Field("OK", description="The reply where no rule matches.")


class Scripted:
    """``scripted``: answers from a script.

    >>> Scripted(["one", "two"])
    Scripted(1 rules)
    """

    examples = ({"rules": [{"replies": ["Hello."]}]},)
    capabilities = ("offline",)
    provider_tools = PROVIDER_TOOLS

    Config = Script

    @naming_unknown
    def __init__(
        self,
        script: Script | Mapping[str, object] | Sequence[object] = (),
        *,
        default: object = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``script``: rules and a default as above, or the replies of a single rule.

        ``sleep``: how a ``delay`` is waited for.

        Raises: ConfigError: with all that is wrong.
        """
        if isinstance(script, str):
            message = f"expected a list of replies, found {format_value(script)}."
            raise ConfigError(Problem("AX131", "script", message, "Write it as a list: [reply]."))
        if not isinstance(script, (Script, Mapping)):
            script = {"rules": [{"replies": list(script)}] if script else []}
        if default is not None and isinstance(script, Mapping):
            script = {**script, "default": default}
        self.script: Script = decode_config(Script, script, "script")
        self.requests: list[Request] = []
        """Every request, in order; of a model that a file names none, for its run may be long."""
        self._keeps = current_grants() is None
        self._sleep = sleep
        self._next: dict[int, int] = {}

    @staticmethod
    def from_file(path: str | Path) -> Scripted:
        """Return the script in a JSON file, or in any format that a plugin loads, as YAML.

        Raises: ConfigError: it cannot be read (AX710), or with all that is wrong with it, by line;
        SpecError: it is no plain data.
        """
        return Scripted.from_text(script_text(path), str(path))

    @staticmethod
    def from_text(text: str, file: str) -> Scripted:
        """Return the script in the text of a file. Raises: as ``from_file``."""
        kind = Path(file).suffix.lstrip(".").lower() or "json"
        if kind == "json":
            from axil_files import parse_json as load
        else:
            from axil.plugin import default_registry

            load = default_registry().resolve("loaders", kind, file)
        document = load(text, file)
        return Scripted(decode_config(Script, document.data, document.place()))

    def skip(self, given: Iterable[object]) -> None:
        """Skip the replies among ``given``, the results of recorded steps: each counts for the
        first rule whose next line is the same.
        """
        for reply in given:
            if not isinstance(reply, Mapping) or not {"text", "tool_calls"} <= reply.keys():
                continue
            for number, rule in enumerate(self.script.rules):
                at = self._next.get(number, 0)
                line = _as_line(rule.replies[min(at, len(rule.replies) - 1)])
                if _matches(line, cast("Mapping[str, object]", reply)):
                    self._next[number] = at + 1
                    break

    def everywhere(self) -> contextlib.AbstractContextManager[None]:
        """Within the ``with``, every agent asks this model, whichever it was given."""
        return models_through(lambda meant, written: StandIn(self, name_of(written)))

    async def reply(self, request: Request, emit: Emit, /, *, model: str = "") -> Reply:
        """Return the next line of the rule that matches. Raises: ModelError: the script says so."""
        if self._keeps:
            self.requests.append(request)
        line = self._line(request, model or str(request.settings.get("model") or ""))
        if line.delay:
            await self._sleep(line.delay)
        if line.status is not None:
            message = f"Error code: {line.status} - scripted failure"
            raise ModelError(message, status=line.status, retry_after_seconds=line.retry_after)
        text = f"({'+'.join(_texts(request, 'user'))})" if line.echo_user else _text(line)
        for part in _parts(text):
            emit({"kind": "text", "text": part})
        number = sum(len(m.get("tool_calls") or ()) for m in request.messages)
        calls = tuple(call.made(number + i) for i, call in enumerate(line.tool_calls))
        return Reply(
            text=text,
            tool_calls=calls,
            usage=_usage(line, request, text),
            finish=line.finish or ("tools" if calls else "stop"),
            model=model or "scripted",
        )

    def _line(self, request: Request, model: str) -> Line:
        system, user = "\n".join(_texts(request, "system")), "\n".join(_texts(request, "user"))
        for number, rule in enumerate(self.script.rules):
            match = rule.match
            fits = (
                (match.system_contains or "") in system
                and (match.user_contains or "") in user
                and match.model in (None, model)
            )
            if fits:
                at = self._next.get(number, 0)
                self._next[number] = at + 1
                return _as_line(rule.replies[min(at, len(rule.replies) - 1)])
        return _as_line(self.script.default)

    def __repr__(self) -> str:
        return f"Scripted({len(self.script.rules)} rules)"


def script_text(path: str | Path) -> str:
    """Return the text of a script. Raises: ConfigError (AX710): it cannot be read."""
    try:
        return Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "this is not text in UTF-8"
        message = f"the script cannot be read: {why}."
        raise ConfigError(Problem("AX710", str(path), message, like_file(path))) from error


def _text(line: Line) -> str:
    return line.text if line.json_ is None else json.dumps(line.json_, ensure_ascii=False)


def _matches(line: Line, reply: Mapping[str, object]) -> bool:
    """Return whether a recorded reply can be this line's."""
    calls = cast("Sequence[Mapping[str, Any]]", reply["tool_calls"] or ())
    asked = [call.made(0) for call in line.tool_calls]
    return (line.echo_user or reply["text"] == _text(line)) and [
        (call.get("name"), call.get("arguments")) for call in calls
    ] == [(call.name, call.arguments) for call in asked]


def _as_line(reply: str | Line) -> Line:
    return Line.model_validate({"text": reply}) if isinstance(reply, str) else reply


def _texts(request: Request, role: str) -> list[str]:
    return [content_text(m.get("content")) for m in request.messages if m.get("role") == role]


def _parts(text: str) -> list[str]:
    """Return a text as it would be streamed: a few pieces, at blanks."""
    words = re.findall(r"[^ ]* |[^ ]+", text)
    size = max(1, -(-len(words) // 8))
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)]


def _usage(line: Line, request: Request, text: str) -> Usage:
    if line.usage is not None:
        given = line.usage
        counts = {
            name: int(given.get(name, 0))
            for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
        }
        return Usage(**counts, cost=float(given.get("cost", 0.0)))
    return Usage(
        input_tokens=sum(len(content_text(m.get("content"))) for m in request.messages) // 4,
        output_tokens=-(-len(text) // 4),
    )
