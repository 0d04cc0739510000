"""Content parts: what a message may hold beside text, as plain data.

A message's ``content`` is a text or a list of parts: ``{"type": "text", "text": …}``, or a part of
type ``image``, ``file`` or ``audio`` with exactly one source: ``data`` (base64), ``url``, ``path``
(in the run's workspace) or ``file_id`` (known to the provider), and perhaps ``media_type``,
``name`` and ``detail``. A path is read when the message is sent, so models see ``data``, ``url`` or
``file_id``.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from axil.plugin import Message
from axil_models.errors import PartError

Part = dict[str, Any]
"""A part, as plain data.

No ``TypedDict``: which source a part has is known from ``checked_part``, and not from its type, so
that whatever reads one would have to cast it.
"""

PART_KINDS: Final = ("image", "file", "audio")
PART_SOURCES: Final = ("data", "url", "path", "file_id")
LARGEST_PART_BYTES: Final = 20 * 2**20
"""The largest size of the data in a part; for more there are ``url`` and ``file_id``."""

_KEYS: Final = frozenset({"type", "media_type", "name", "detail", *PART_SOURCES})
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_NAMED: Final = {
    ".md": "text/markdown",
    ".webp": "image/webp",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".yaml": "text/yaml",
}
_SPELT: Final = {
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "image/jpg": "image/jpeg",
}


def text_part(said: str) -> Part:
    """Return a text as a part."""
    return {"type": "text", "text": said}


def image(
    source: str | bytes | Path, *, media_type: str = "", name: str = "", detail: str = ""
) -> Part:
    """Return an image: its bytes, its URL, or its path in the workspace of the run.

    >>> image("https://example.org/leaf")
    {'type': 'image', 'url': 'https://example.org/leaf'}
    >>> image("shots/leaf.png")
    {'type': 'image', 'path': 'shots/leaf.png', 'media_type': 'image/png'}

    ``detail``: how closely a model looks, where this can be set (``low``, ``high``). Raises:
    PartError (AX802, AX803).
    """
    return _made("image", source, media_type, name, detail)


def file(source: str | bytes | Path, *, media_type: str = "", name: str = "") -> Part:
    """Return a document, as a PDF: its bytes, its URL, or its path in the workspace.

    Raises: PartError (AX802, AX803).
    """
    return _made("file", source, media_type, name, "")


def audio(source: str | bytes | Path, *, media_type: str = "", name: str = "") -> Part:
    """Return a recording: its bytes, its URL, or its path in the workspace.

    Raises: PartError (AX802, AX803).
    """
    return _made("audio", source, media_type, name, "")


def _made(kind: str, source: str | bytes | Path, media_type: str, name: str, detail: str) -> Part:
    given = source if isinstance(source, bytes) else str(source)
    if isinstance(given, bytes):
        key, given = "data", base64.b64encode(given).decode()
    elif given.startswith("data:"):
        head, _, given = given.partition(",")
        key, declared = "data", head.removeprefix("data:").removesuffix(";base64")
        media_type = media_type or declared
    else:
        key = "url" if given.startswith(("http://", "https://")) else "path"
    about = {"media_type": media_type, "name": name, "detail": detail}
    return checked_part({"type": kind, **{k: v for k, v in about.items() if v}, key: given})


def is_part(value: object) -> bool:
    """Return whether a value is an image, a file or a recording.

    >>> is_part({"type": "image", "url": "https://…"}), is_part({"type": "image", "size": 3})
    (True, False)
    """
    if not isinstance(value, Mapping):
        return False
    part = cast("Mapping[str, Any]", value)
    return (
        part.get("type") in PART_KINDS
        and any(isinstance(part.get(key), str) for key in PART_SOURCES)
        and part.keys() <= _KEYS
    )


def is_text_part(value: object) -> bool:
    """Return whether a value is a text as a part."""
    return (
        isinstance(value, Mapping)
        and cast("Mapping[str, Any]", value).get("type") == "text"
        and "text" in value
    )


def is_content(value: object) -> bool:
    """Return whether a value is a message's content that is more than a text: a list of parts."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(is_part(each) or is_text_part(each) for each in cast("Sequence[Any]", value))


def parts_of(content: object, where: str = "") -> list[Part]:
    """Return a message's content as parts.

    Raises: PartError (AX802): a part is malformed; (AX803): it is too large.
    """
    if isinstance(content, str):
        return [text_part(content)] if content else []
    if isinstance(content, (list, tuple)):
        return [checked_part(each, where) for each in cast("Sequence[Any]", content)]
    return [text_part(content_text(content))] if content is not None else []


def part_label(part: Mapping[str, object], number: int = 0) -> str:
    """Return the label that stands for a part in a text.

    >>> part_label({"type": "image", "path": "shots/leaf.png"}, 1)
    '[image 1: leaf.png]'
    >>> part_label({"type": "file", "data": "…"})
    '[file]'
    """
    given = str(part.get("name") or part.get("path") or part.get("url") or "").split("?")[0]
    name = given.rstrip("/").rsplit("/", 1)[-1]
    return f"[{part.get('type')}{f' {number}' if number else ''}{f': {name}' if name else ''}]"


def content_text(content: Any) -> str:
    """Return a message's content as text, with what stands for its other parts.

    >>> content_text([text_part("Look:"), image("leaf.png")])
    'Look:\\n[image: leaf.png]'
    """
    if is_content(content):
        return "\n".join(
            str(part["text"]) if part["type"] == "text" else part_label(part) for part in content
        )
    from axil.plugin import text_of

    return text_of(content)


def checked_part(part: Any, where: str = "") -> Part:
    """Return the part, with its media type where that can be known.

    Raises: PartError (AX802): it is malformed; (AX803): it is too large.
    """
    if is_text_part(part):
        return {"type": "text", "text": str(part["text"])}
    if not is_part(part):
        hint = (
            "A part is {type: text, text} "
            "or {type: image | file | audio, and one of data, url, path, file_id}."
        )
        raise PartError("AX802", f"{part!r:.80} is no content part.", hint, where)
    given = dict(cast("Mapping[str, Any]", part))
    sources = [key for key in PART_SOURCES if given.get(key)]
    if len(sources) != 1:
        expected = f"expected exactly one of {', '.join(PART_SOURCES)}."
        found = ", ".join(sources) or "no source"
        raise PartError("AX802", f"a part has {found}; {expected}", "", where)
    content = part_bytes(given, where) if sources == ["data"] else None
    return _with_type(given, content, where)


def part_bytes(part: Mapping[str, object], where: str = "") -> bytes:
    """Return the bytes of a part with ``data``.

    Raises: PartError (AX802): they are no base64; (AX803): they are too many.
    """
    data = str(part["data"])
    size = len(data) * 3 // 4
    try:
        content = base64.b64decode(data, validate=True) if size <= LARGEST_PART_BYTES + 2 else b""
    except (binascii.Error, ValueError) as error:
        message = f"the data of {part_label(part)} is not base64: {error}."
        hint = "Encode the bytes, or give them to image()."
        raise PartError("AX802", message, hint, where) from None
    if max(size - 2, len(content)) > LARGEST_PART_BYTES:
        raise part_too_large(part, size, where)
    return content


def _with_type(part: Part, content: bytes | None, where: str) -> Part:
    """Return the part with a media type: its content's, the declared one, or its name's."""
    name = str(part.get("name") or part.get("path") or "")
    found = (content and _sniffed(content)) or part.get("media_type") or _by_name(name)
    if found is None and content is not None and part["type"] == "file":
        found = "text/plain" if _is_text(content) else "application/octet-stream"
    if found is None:
        if content is None:
            return part
        message = f"the kind of this {part['type']} is unknown."
        raise PartError("AX802", message, "Set media_type.", where)
    kind = _SPELT.get(found, found)
    if part["type"] != "file" and not kind.startswith(f"{part['type']}/"):
        message = f"{part_label(part)} holds {kind}, which is no {part['type']}."
        raise PartError("AX802", message, "Use the part type of its content.", where)
    return {**part, "media_type": kind}


def _sniffed(content: bytes) -> str | None:
    if content[:4] == b"RIFF":
        return _RIFF.get(content[8:12])
    return next((kind for beginning, kind in _BEGINNINGS if content.startswith(beginning)), None)


def _by_name(name: str) -> str | None:
    suffix = Path(name).suffix.lower()
    return _NAMED.get(suffix) or mimetypes.guess_type(f"name{suffix}")[0]


def name_ending(media_type: str) -> str:
    """Return the ending of the names of files of a media type.

    >>> name_ending("audio/wav"), name_ending("image/png"), name_ending("image/strange")
    ('.wav', '.png', '.bin')
    """
    known = next((ending for ending, kind in _NAMED.items() if kind == media_type), None)
    return known or mimetypes.guess_extension(media_type) or ".bin"


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def part_too_large(part: Mapping[str, object], size: int, where: str = "") -> PartError:
    """Return the error of a part of so many bytes."""
    most = f"at most {LARGEST_PART_BYTES // 2**20} MiB can be sent."
    message = f"{part_label(part)} has {size / 2**20:.0f} MiB; {most}"
    return PartError("AX803", message, "Make it smaller, or give its url or file_id.", where)


def check_modalities(messages: Iterable[Message], modalities: Iterable[str], model: str) -> None:
    """Check that a model that takes ``modalities`` can be sent the messages.

    Raises: PartError (AX801): which part it cannot take.
    """
    known = {"text", *modalities}
    for each in messages:
        content = each.get("content")
        for given in cast("Sequence[Any]", content) if isinstance(content, (list, tuple)) else ():
            part = cast("dict[str, Any]", given if isinstance(given, Mapping) else {})
            if part.get("type") in PART_KINDS and part["type"] not in known:
                takes = ", ".join(sorted(known))
                message = f"{model} takes {takes}; a message holds {part_label(part)}."
                hint = "Use a model that can, or set its modalities if it can."
                raise PartError("AX801", message, hint)


def spread_results(
    messages: Sequence[Message],
    modalities: Iterable[str] | None = None,
    whole: Collection[str] = (),
) -> Sequence[Message]:
    """Return the messages, with the images, files and recordings of tools' results, and of what a
    model said, in a user's message behind them, as models' interfaces take only text there; the
    sequence itself, if there are none.

    What a model does not take is named in the result, which says so. ``modalities``: what it takes
    beside text; None: all there is. ``whole``: tools whose results the model takes as they are.
    """
    may_have_parts = [
        each.get("role") in ("tool", "assistant")
        and type(content := each.get("content")) is not str
        and is_content(content)
        and each.get("name") not in whole
        for each in messages
    ]
    if not any(may_have_parts):
        return messages
    takes = None if modalities is None else {"text", *modalities}
    made: list[Message] = []
    shown: list[Part] = []
    for each, has_parts in zip(messages, may_have_parts, strict=True):
        if shown and each.get("role") != "tool":
            made.append({"role": "user", "content": shown})
            shown = []
        made.append(_named(each, shown, takes) if has_parts else each)
    return [*made, {"role": "user", "content": shown}] if shown else made


def _named(result: Message, shown: list[Part], takes: set[str] | None) -> Message:
    """Return a message with labels for its parts, which are put into ``shown``."""
    if not any(is_part(part) for part in result["content"]):
        return result
    texts: list[str] = []
    for part in result["content"]:
        if not is_part(part):
            texts.append(str(part["text"]))
        elif takes is not None and part["type"] not in takes:
            known_kinds = ", ".join(sorted(takes))
            texts.append(f"{part_label(part)} (it cannot be shown: this model takes {known_kinds})")
        else:
            name = part_label(part, 1 + sum(is_part(known) for known in shown))
            texts.append(name)
            tool = f"from the tool {result.get('name') or ''}".rstrip()
            origin = f"{name}, {tool if result.get('role') == 'tool' else 'of your reply'}"
            shown += [text_part(f"{origin}:"), dict(part)]
    return {**result, "content": "\n".join(texts)}


Value = TypeVar("Value")


def with_labels(value: Value) -> Value:
    """Return a value with a label for every part in it: for texts that are searched or kept."""
    return cast("Value", _mapped(value, part_label))


class PartNumbers:
    """Labels with numbers for parts, and the parts in that order; equal parts have one number."""

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def __call__(self, part: Part) -> str:
        """Return the part's label."""
        if part not in self.parts:
            self.parts.append(part)
        return part_label(part, self.parts.index(part) + 1)

    def named(self, value: object) -> object:
        """Return a value with labels for its parts."""
        return _mapped(value, self)


def _mapped(value: Any, name: Callable[[Part], str]) -> Any:
    """Return ``value`` with ``name(part)`` for each part in it; itself, where there is none."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if is_part(value):
        return name(dict(value))
    if is_content(value) and any(is_part(each) for each in value):
        return "\n".join(name(dict(each)) if is_part(each) else str(each["text"]) for each in value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        new = {key: _mapped(each, name) for key, each in items.items()}
        return new if any(new[key] is not items[key] for key in new) else cast("Any", value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        old = list(cast("Sequence[Any]", value))
        made = [_mapped(each, name) for each in old]
        if any(a is not b for a, b in zip(made, old, strict=True)):
            return made
    return cast("Any", value)
