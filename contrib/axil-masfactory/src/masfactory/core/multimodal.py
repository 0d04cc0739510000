"""Fields and their modalities; images and documents as fields."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, cast

from axil_models import file, image
from masfactory.errors import Unsupported, missing

__all__ = [
    "FieldModality",
    "FieldSpec",
    "ImageAsset",
    "MediaAsset",
    "MediaMessageBlock",
    "PdfAsset",
    "TextMessageBlock",
    "coerce_media_assets",
    "contains_media",
    "field_specs",
    "is_media_asset",
    "iter_media_message_blocks",
    "iter_message_texts",
    "media_value_to_prompt_text",
    "normalize_field_specs",
    "parse_field_spec",
    "validate_field_value",
]


class FieldModality(StrEnum):
    """The kind of a field's content."""

    TEXT = "TEXT"
    IMAGE = "IMAGE"
    PDF = "PDF"
    ANY = "ANY"

    @classmethod
    def from_value(cls, value: Any) -> FieldModality:
        """Give the modality of that name; ``ANY`` for None. Raises: ValueError: there is none."""
        return cls.ANY if value is None else cls(str(getattr(value, "value", value)).upper())


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """The description of a field by an edge, ``pull_keys`` or ``push_keys``."""

    name: str
    description: str = ""
    modality: FieldModality = FieldModality.ANY
    many: bool = False
    required: bool = False


def field_specs(keys: Mapping[str, Any] | None) -> dict[str, FieldSpec]:
    """Read keys: ``{"photo": "IMAGE:the receipt"}`` or ``{"photo": {"description": …}}``."""
    return {name: _spec(name, reported) for name, reported in (keys or {}).items()}


def descriptions(keys: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Give the descriptions of the fields of keys, which is what axil's keys are."""
    return None if keys is None else {n: s.description for n, s in field_specs(keys).items()}


def _spec(name: str, reported: Any) -> FieldSpec:
    if isinstance(reported, FieldSpec):
        return reported
    if isinstance(reported, Mapping):
        given = cast("Mapping[str, Any]", reported)
        return FieldSpec(
            name,
            str(given.get("description") or ""),
            FieldModality.from_value(given.get("modality")),
            bool(given.get("many", False)),
            bool(given.get("required", False)),
        )
    text = "" if reported is None else str(reported)
    head, colon, rest = text.partition(":")
    if colon and head in FieldModality.__members__:
        return FieldSpec(name, rest.strip(), FieldModality(head))
    return FieldSpec(name, text)


def modality_of(value: Any) -> FieldModality:
    """Say what a value is."""
    kind = cast("Mapping[str, Any]", value).get("type") if isinstance(value, Mapping) else None
    return {"image": FieldModality.IMAGE, "file": FieldModality.PDF}.get(
        str(kind), FieldModality.TEXT
    )


class MediaAsset(dict[str, Any]):
    """An image or a document: the part that axil's agents show to a model."""

    usual_type: ClassVar[str] = ""
    kind: ClassVar[str] = "file"

    def __init__(
        self,
        part: Mapping[str, Any] | None = None,
        *,
        source_kind: str = "",
        value: str | bytes = b"",
        mime_type: str | None = None,
        filename: str | None = None,
    ) -> None:
        """Take a part of axil's, or what MASFactory's assets are made of: ``source_kind`` is
        ``path``, ``bytes``, ``base64`` or ``url``.

        Raises: Unsupported: a file that was uploaded to a provider.
        """
        if part is not None:
            super().__init__(part)
            return
        if source_kind == "file_id":
            raise Unsupported("an asset of a file_id", "Give its URL, its path or its bytes.")
        kinds: dict[str, Any] = {
            "path": lambda: _content(str(value)),
            "base64": lambda: f"data:{mime_type or self.usual_type};base64,{value}",
        }
        content = kinds.get(source_kind, lambda: value)()
        make = image if self.kind == "image" else file
        name = filename or (Path(str(value)).name if source_kind == "path" else "")
        super().__init__(make(content, media_type=mime_type or self.usual_type, name=name))

    @property
    def modality(self) -> FieldModality:
        """The kind of its content."""
        return modality_of(self)

    @property
    def mime_type(self) -> str:
        """Its media type; empty: not known."""
        return str(self.get("media_type") or "")

    @property
    def filename(self) -> str | None:
        """The name that it was given."""
        return self.get("name")

    @property
    def default_filename(self) -> str:
        """Its name; without one, a usual name."""
        usual = "document.pdf" if self.modality is FieldModality.PDF else "image.png"
        return self.filename or usual

    @property
    def source_kind(self) -> str:
        """The place of its content: ``bytes``, ``url`` or ``path``."""
        return "bytes" if "data" in self else "url" if "url" in self else "path"

    @property
    def value(self) -> Any:
        """Its content, its address, or its path."""
        return self.load_bytes() if "data" in self else self.get("url") or self.get("path")

    def load_bytes(self) -> bytes:
        """Give its content. Raises: ValueError: it is elsewhere."""
        data = self.get("data")
        if data is None:
            raise ValueError(f"the content of {self.default_filename} is at {self.value}. Load it.")
        return data if isinstance(data, bytes) else base64.b64decode(str(data))

    def fingerprint(self) -> str:
        """Give a digest of it."""
        return hashlib.sha256(repr(sorted(self.items())).encode()).hexdigest()

    def prompt_summary(self) -> str:
        """Give it as a text."""
        return f"[{self.modality.value}: {self.default_filename}]"


class ImageAsset(MediaAsset):
    """An image."""

    usual_type: ClassVar[str] = "image/png"
    kind: ClassVar[str] = "image"

    @classmethod
    def from_file_id(cls, file_id: str, **more: Any) -> ImageAsset:
        """Raise ``Unsupported``."""
        return cls(source_kind="file_id", value=file_id, **more)

    @classmethod
    def from_path(cls, path: str | Path, *, mime_type: str | None = None) -> ImageAsset:
        """Take an image from a file, which is read now; one that is absent, by the first use."""
        return cls(image(_content(path), media_type=mime_type or "", name=Path(path).name))

    @classmethod
    def from_bytes(
        cls, data: bytes, *, mime_type: str = "image/png", filename: str | None = None
    ) -> ImageAsset:
        """Take an image from its bytes."""
        return cls(image(data, media_type=mime_type, name=filename or ""))

    @classmethod
    def from_base64(
        cls, data: str, *, mime_type: str = "image/png", filename: str | None = None
    ) -> ImageAsset:
        """Take an image from its bytes in base64."""
        return cls(image(f"data:{mime_type};base64,{data}", name=filename or ""))

    @classmethod
    def from_url(
        cls, url: str, *, mime_type: str = "image/png", filename: str | None = None
    ) -> ImageAsset:
        """Take an image that a model fetches."""
        return cls(image(url, media_type=mime_type, name=filename or ""))


class PdfAsset(MediaAsset):
    """A PDF."""

    usual_type: ClassVar[str] = "application/pdf"

    @classmethod
    def from_file_id(cls, file_id: str, **more: Any) -> PdfAsset:
        """Raise ``Unsupported``."""
        return cls(source_kind="file_id", value=file_id, **more)

    @classmethod
    def from_path(cls, path: str | Path) -> PdfAsset:
        """Take a PDF from a file, which is read now; one that is absent, by the first use."""
        return cls(file(_content(path), media_type="application/pdf", name=Path(path).name))

    @classmethod
    def from_bytes(cls, data: bytes, *, filename: str | None = None) -> PdfAsset:
        """Take a PDF from its bytes."""
        return cls(file(data, media_type="application/pdf", name=filename or ""))

    @classmethod
    def from_base64(cls, data: str, *, filename: str | None = None) -> PdfAsset:
        """Take a PDF from its bytes in base64."""
        return cls(file(f"data:application/pdf;base64,{data}", name=filename or ""))

    @classmethod
    def from_url(cls, url: str, *, filename: str | None = None) -> PdfAsset:
        """Take a PDF that a model fetches."""
        return cls(file(url, media_type="application/pdf", name=filename or ""))


def _content(path: str | Path) -> bytes | Path:
    return Path(path).read_bytes() if Path(path).is_file() else Path(path)


# -- by MASFactory's names

__getattr__: Callable[[str], Any] = missing(
    __name__, {"AttachmentTagRegistry": "An agent of axil numbers the images of a prompt itself."}
)


@dataclass(frozen=True, slots=True)
class TextMessageBlock:
    """A text among the parts of a message."""

    text: str
    type: str = "text"


@dataclass(frozen=True, slots=True)
class MediaMessageBlock:
    """An image or a document among the parts of a message."""

    asset: MediaAsset
    field_name: str
    tag: str
    description: str = ""
    type: str = "media"

    @property
    def modality(self) -> FieldModality:
        """The kind of its content."""
        return self.asset.modality

    @property
    def fingerprint(self) -> str:
        """A digest of its content."""
        return self.asset.fingerprint()


def parse_field_spec(name: str, raw: Any) -> FieldSpec:
    """Read one key; without a description it is described by its name."""
    found = _spec(name, raw)
    return found if found.description else replace(found, description=name)


def normalize_field_specs(fields: Mapping[str, Any] | None) -> dict[str, FieldSpec]:
    """Read keys, each as ``parse_field_spec``."""
    return {name: parse_field_spec(name, raw) for name, raw in (fields or {}).items()}


def is_media_asset(value: Any) -> bool:
    """Say whether a value is an image or a document."""
    return isinstance(value, MediaAsset)


def coerce_media_assets(value: Any) -> list[MediaAsset]:
    """Give the images and documents of a value: itself, or those in a list."""
    several = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]
    return [each for each in several if isinstance(each, MediaAsset)]


def contains_media(value: Any) -> bool:
    """Say whether there are images or documents in a value."""
    return bool(coerce_media_assets(value))


def media_value_to_prompt_text(value: Any) -> str:
    """Give images and documents as a text. Raises: ValueError: there are none."""
    assets = coerce_media_assets(value)
    if not assets:
        raise ValueError(f"found a {type(value).__name__}, expected images or documents.")
    return "\n".join(asset.prompt_summary() for asset in assets)


def validate_field_value(spec: FieldSpec, value: Any) -> None:
    """Check a value. Raises: ValueError: it is of another modality."""
    if spec.modality is FieldModality.ANY:
        return
    for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
        if modality_of(each) is not spec.modality:
            raise ValueError(
                f'the field "{spec.name}" holds {modality_of(each).value}, expected '
                f"{spec.modality.value}. Send an ImageAsset or a PdfAsset."
            )


def iter_message_texts(content: Any) -> Iterator[str]:
    """Give the texts of a message's content."""
    if isinstance(content, str):
        yield content
        return
    for each in cast("Sequence[Any]", content or ()):
        if isinstance(each, TextMessageBlock):
            yield each.text
        elif isinstance(each, dict):
            text = cast("dict[str, Any]", each).get("text")
            yield from [text] if isinstance(text, str) else []


def iter_media_message_blocks(content: Any) -> Iterator[MediaMessageBlock]:
    """Give the images and documents of a message's content."""
    several = cast("Sequence[Any]", content) if isinstance(content, (list, tuple)) else ()
    yield from (each for each in several if isinstance(each, MediaMessageBlock))
