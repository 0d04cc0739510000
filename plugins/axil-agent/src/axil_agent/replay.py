"""``replay``: a real run recorded once, and answered from the recording ever after.

A recording is a file of JSON lines, one exchange each: which recording it belongs to, the model
that was meant, the activation and the step that asked, the request, the reply, and a checksum of
all that. It is written as it happens, so a run that breaks off has what it had; a last line that
was cut off is passed over, and one that was changed is an error. A line without a checksum is
taken as it is: who edits one takes it out. Where several activations ask the same at the same
time, each gets the reply that it got when it was recorded, in whatever order they end. Recording
into the same file again loses nothing: of exchanges with the same request, the latest recording's
answer.

What looks like a secret is never written: settings by their names, and wherever they occur the
values of environment variables whose names say so; these are shown as ``${NAME}``.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import logging
import os
import re
import secrets
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, Field, TypeAdapter

from axil import ConfigError, Problem
from axil.plugin import ReadPath, granted, without_secrets
from axil_agent.errors import ReplayMiss
from axil_agent.models import StandIn, models_through, name_of
from axil_files import like_file
from axil_models import (
    PROVIDER_TOOLS,
    Asker,
    Emit,
    Model,
    Reply,
    Request,
    asker,
    plain_data,
)

_PRIVATE = re.compile(
    r"secret|passw(or)?d|passphrase|token$|(api|access|private|auth)_?key|credential|"
    r"authorization|headers$",
    re.IGNORECASE,
)
_SHORTEST = 8
"""Characters of a value that is looked for everywhere; shorter ones are found in ordinary words."""
_LONGEST_DIFF = 40

_REPLY = TypeAdapter(Reply)
_KEYS = frozenset({"session", "activation", "step", "request", "reply"})
_BEGINNING = b'{"session": '
_NO_EXCHANGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

log = logging.getLogger("axil_agent")


def shown(request: Request, model: str = "") -> dict[str, object]:
    """Return a request to ``model`` as it is recorded: plain data without secrets."""
    asked = cast("dict[str, object]", _without_secrets(plain_data(request.plain())))
    return {"model": model, **asked} if model else asked


def _without_secrets(value: object) -> object:
    variables = [
        (value, f"${{{name}}}")
        for name, value in os.environ.items()
        if _PRIVATE.search(name) and len(value) >= _SHORTEST
    ]
    return without_secrets(_without_private(value), variables)


def _without_private(value: object) -> object:
    """Return ``value`` without what is named like a secret; numbers stay."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {
            name: _without_private(each)
            for name, each in items
            if isinstance(each, (int, float)) or not _PRIVATE.search(name)
        }
    if isinstance(value, list):
        return [_without_private(each) for each in cast("list[object]", value)]
    return value


def digest(request: Mapping[str, object]) -> str:
    """Return the name of a request: the same for the same request, in any order of keys."""
    text = json.dumps(
        request, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str
    )
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Recorder:
    """A model whose exchanges are written to a file.

    ``with Recorder.everywhere("run.jsonl"): …`` records every agent of a run.
    """

    def __init__(
        self, model: Model, path: str | Path, *, name: str = "", session: str = ""
    ) -> None:
        """Set the file at ``path``, to which exchanges are added.

        Args:
            name: what the model is called; a replay tells models by it.
            session: which recording this is; recorders with the same one write the same recording.
        """
        self.model, self.path, self.name = model, Path(path), name
        self.session = session
        self.provider_tools = getattr(model, "provider_tools", ())
        self.modalities = getattr(model, "modalities", None)
        self._is_mended = False

    @staticmethod
    def everywhere(path: str | Path) -> contextlib.AbstractContextManager[None]:
        """Within the ``with``, what every agent asks and is answered is written to the file. One
        that it made, and wrote nothing to, is removed where an error ends it.

        Raises: ConfigError (AX711), at once: it cannot be written.
        """
        session, is_new = secrets.token_hex(8), not os.path.exists(path)
        try:
            _mend(Path(path))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "no file can have this name"
            message = f"the recording cannot be written: {why}."
            raise ConfigError(Problem("AX711", _text(path), message)) from error
        through = models_through(
            lambda meant, written: Recorder(meant(), path, name=name_of(written), session=session)
        )
        return _unless_refused(through, Path(path)) if is_new else through

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the model's reply, recorded. What it raises is not recorded."""
        asked_by = asker()
        reply = await self.model.reply(request, emit)
        exchange = {
            "session": self.session,
            "activation": asked_by.activation,
            "step": asked_by.step,
            "request": shown(request, self.name),
            "reply": _without_secrets(plain_data(reply.plain())),
        }
        self._write(exchange)
        return reply

    def _write(self, exchange: dict[str, object]) -> None:
        exchange["checksum"] = digest(exchange)
        with granted(None):  # the recording is its user's
            self._append(exchange)

    def _append(self, exchange: Mapping[str, object]) -> None:
        if not self._is_mended:
            _mend(self.path)
            self._is_mended = True
        # half a character, as JSON has it
        with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(exchange, ensure_ascii=False, default=str) + "\n")

    async def __aenter__(self) -> Recorder:
        if hasattr(self.model, "__aenter__"):
            await cast("Any", self.model).__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        if hasattr(self.model, "__aexit__"):
            await cast("Any", self.model).__aexit__(*error)

    async def close(self) -> None:
        """Close the model."""
        close = getattr(self.model, "close", None)
        if close is not None:
            await close()


def _text(path: str | Path) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode()


@contextlib.contextmanager
def _unless_refused(
    through: contextlib.AbstractContextManager[None], path: Path
) -> Generator[None]:
    """Remove a recording that was made, and is empty, if an error ends the ``with``."""
    try:
        with through:
            yield
    except BaseException:
        with contextlib.suppress(OSError):
            if not path.stat().st_size:
                path.unlink()
        raise


def _mend(path: Path) -> None:
    """End the last line of a recording, or remove an exchange that was cut off; make the file if
    there is none. Raises: OSError.
    """
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(0)
        last = b""
        for line in file:
            last = line
        if not last or last.endswith(b"\n"):
            return
        try:
            json.loads(last)
        except (ValueError, RecursionError):
            if last[: len(_BEGINNING)] == _BEGINNING[: len(last)]:
                file.truncate(end - len(last))
            else:  # a file of something else
                file.write(b"\n")
        else:
            file.write(b"\n")


class Replay:
    """``replay``: answers requests that were recorded, and no others.

    Where one request was recorded several times, the activation that asks gets its own replies, in
    their order. Each reply is given once: a request that is made more often than it was recorded is
    an error, unless ``repeat`` is set.
    """

    examples = ({"path": "recording.jsonl"},)

    provider_tools = PROVIDER_TOOLS

    class Config(BaseModel, extra="forbid", frozen=True):
        """The recording to replay."""

        path: ReadPath = Field(description="The file that a Recorder wrote.")
        repeat: bool = Field(
            default=False,
            description="Where a request is made more often than it was recorded, begin with its "
            "first reply again; false: that is an error.",
        )

    def __init__(self, config: Config | str | Path, *, repeat: bool = False) -> None:
        """Set the file, which is read at the first request, or by ``everywhere``."""
        if isinstance(config, Replay.Config):
            config, repeat = config.path, config.repeat
        self.path, self.repeat = Path(config), repeat
        self._known: dict[str, list[dict[str, object]]] | None = None
        self._left: dict[str, list[dict[str, Any]]] = {}

    @staticmethod
    def recording(path: str | Path) -> contextlib.AbstractContextManager[None]:
        """``Recorder.everywhere``, for those who know a replay only by its name."""
        return Recorder.everywhere(path)

    def everywhere(self) -> contextlib.AbstractContextManager[None]:
        """Within the ``with``, every agent is answered from this recording.

        Raises: ConfigError (AX663), at once: it cannot be read.
        """
        self._read()
        return models_through(lambda meant, written: StandIn(self, name_of(written)))

    async def reply(self, request: Request, emit: Emit, /, *, model: str = "") -> Reply:
        """Return the recorded reply.

        Raises: ReplayMiss (AX662): there is none; the message shows the nearest request that there
        is.
        """
        known = self._read()
        asked = shown(request, model)
        key = digest(asked)
        if key not in known:
            key = digest(shown(request))  # recorded without a name
        if key not in known:
            raise self._miss(asked, known)
        reply = Reply.read(self._taken(key, known)["reply"])
        if reply.text:
            emit({"kind": "text", "text": reply.text})
        return reply

    def _taken(self, key: str, known: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
        """Take the exchange that is next for who asks: its own, else the first that is left."""
        left = self._left.setdefault(key, list(known[key]))
        if not left and self.repeat:
            left.extend(known[key])
        if not left:
            times = f"{len(known[key])} time{'s' if len(known[key]) != 1 else ''}"
            message = f"{self.path} holds this request {times}, and all replies have been given."
            hint = "Record again, or set repeat (Replay(path, repeat=True))."
            raise ReplayMiss("AX662", message, hint)
        asks = asker()
        by = [Asker(each.get("activation", ""), each.get("step", "")) for each in left]
        if asks in by:
            return left.pop(by.index(asks))
        same = [at for at, each in enumerate(by) if each.activation == asks.activation]
        return left.pop(same[0] if same else 0)

    def _read(self) -> dict[str, list[dict[str, Any]]]:
        if self._known is None:
            known: dict[str, list[dict[str, object]]] = {}
            lines, is_cut = self._lines()
            for number, line in enumerate(lines, 1):
                try:
                    exchange = json.loads(line)
                    checksum = exchange.pop("checksum", None)
                    key, session = digest(exchange["request"]), exchange.get("session")
                    _REPLY.validate_python(exchange["reply"])
                except _NO_EXCHANGE as error:
                    if is_cut and number == len(lines):
                        log.warning("%s: its last line is cut off and is passed over.", self.path)
                        break
                    why = f"{type(error).__name__}: {error}"
                    message = f"this line is no recorded exchange ({why:.200})."
                    raise self._damaged(number, message, "Record again.") from error
                if checksum is None and not exchange.keys() <= _KEYS:
                    found = ", ".join(sorted(exchange.keys() - _KEYS))
                    message = f"this exchange has parts that no recording has: {found:.60}."
                    raise self._damaged(number, message, "Record again.")
                if checksum is not None and checksum != digest(exchange):
                    message = "this exchange was changed since it was recorded: its checksum shows."
                    hint = 'Record again; if the change is meant, take "checksum" out of the line.'
                    raise self._damaged(number, message, hint)
                same = known.setdefault(key, [])
                if same and same[-1].get("session") != session:
                    same.clear()
                same.append(exchange)
            self._known = known
        return self._known

    def _damaged(self, number: int, message: str, hint: str) -> ConfigError:
        return ConfigError(Problem("AX663", f"{_text(self.path)}:{number}", message, hint))

    def _lines(self) -> tuple[list[str], bool]:
        """Return the lines, and whether the last one has no end."""
        try:
            data = self.path.read_bytes()
            is_cut = not data.endswith(b"\n")
            # a cut may be in the middle of a character
            text = data.decode("utf-8", "strict" if not is_cut else "replace")
            return [line for line in text.split("\n") if line.strip()], is_cut
        except (OSError, ValueError) as error:
            if isinstance(error, OSError):
                why = error.strerror or type(error).__name__
            elif isinstance(error, UnicodeDecodeError):
                why = "this is not text in UTF-8"
            else:
                why = "no file can have this name"
            message = f"the recording cannot be read: {why}."
            problem = Problem(
                "AX663",
                _text(self.path),
                message,
                f"{like_file(self.path)} --record FILE makes one.",
            )
            raise ConfigError(problem) from error

    def _miss(
        self, asked: dict[str, object], known: Mapping[str, list[dict[str, Any]]]
    ) -> ReplayMiss:
        mine = _pretty(asked)
        requests = [_pretty(exchanges[0]["request"]) for exchanges in known.values()]
        if not requests:
            return ReplayMiss("AX662", f"{self.path} holds no exchange.", "Record a run.")
        nearest = max(requests, key=lambda other: _similarity(mine, other))
        diff = list(difflib.unified_diff(nearest, mine, "recorded", "asked", lineterm="", n=1))
        more = f"\n… {len(diff) - _LONGEST_DIFF} more lines" if len(diff) > _LONGEST_DIFF else ""
        text = "\n".join(diff[:_LONGEST_DIFF]) + more
        message = f"{self.path} does not hold this request. The nearest differs so:\n{text}\n"
        return ReplayMiss("AX662", message, "Record again, or undo the change.")


def _similarity(one: list[str], other: list[str]) -> tuple[float, float]:
    """Return how similar two texts are: by lines, and on a tie by characters."""
    characters = difflib.SequenceMatcher(None, "\n".join(one), "\n".join(other)).quick_ratio()
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio(), characters


def _pretty(request: Mapping[str, object]) -> list[str]:
    text = json.dumps(request, sort_keys=True, ensure_ascii=False, indent=1, default=str)
    return text.replace("\\n", "\n").split("\n")
