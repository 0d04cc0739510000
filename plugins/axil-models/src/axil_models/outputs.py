"""Parts of replies beside text and thoughts: refusals, citations, images that a model made.

An image is a content part as a message may hold it. ``{"type": "refusal", "text": …}`` is what a
model says in place of an answer, ``{"type": "citation", "url": …, "title": …, "text": …}`` a source
of the text, with what the service says of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from axil_models.parts import Part, audio, image, text_part

OutputPart = dict[str, object]


def refusal_parts(texts: Iterable[str]) -> tuple[OutputPart, ...]:
    """Return a refusal, which came in pieces, as the parts of a reply."""
    text = "".join(texts)
    return ({"type": "refusal", "text": text},) if text else ()


def citation(*, url: object = "", title: object = "", text: object = "") -> OutputPart:
    """Return a source of a reply: a page, or the title of a document; and the text that is cited.

    >>> citation(url="https://example.org", title=None)
    {'type': 'citation', 'url': 'https://example.org'}
    """
    said = {"url": url, "title": title, "text": text}
    return {"type": "citation", **{name: str(each) for name, each in said.items() if each}}


def made_image(data: str, media_type: str = "") -> Part:
    """Return an image that a model made: base64, a data URL or a URL.

    Raises: PartError: it is none.
    """
    if not data.startswith(("data:", "http://", "https://")):
        data = f"data:{media_type};base64,{data}"
    return image(data)


def made_audio(data: str, media_type: str) -> Part:
    """Return a recording that a model made. Raises: PartError: it is none."""
    return audio(f"data:{media_type};base64,{data}")


def content_of(text: str, images: Sequence[Part]) -> Part | list[Part]:
    """Return a reply with images as the value of a field: an image alone, or a list of parts."""
    parts = [text_part(text.strip())] if text.strip() else []
    return images[0] if not parts and len(images) == 1 else [*parts, *images]


def distinct(parts: Iterable[Mapping[str, object]]) -> tuple[Mapping[str, object], ...]:
    """Return parts in their order, equal ones once."""
    found: list[Mapping[str, object]] = []
    for part in parts:
        if part not in found:
            found.append(part)
    return tuple(found)
