"""Fields and their modalities; images and documents as fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from axil_models import file, image

__all__ = ["FieldModality", "FieldSpec", "ImageAsset", "MediaAsset", "PdfAsset", "field_specs"]


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


class ImageAsset(MediaAsset):
    """An image."""

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
