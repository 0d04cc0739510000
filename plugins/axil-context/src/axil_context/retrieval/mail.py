"""E-mails as documents: the text of the message, and each attachment that can be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

_HEADERS = ("From", "To", "Cc", "Date", "Subject")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A message: its headers, its text, the files that came with it."""

    headers: dict[str, str]
    text: str
    html: bytes
    """The message as a page, where it has no text."""
    attachments: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    """Names and bytes; an attached message is named ``message.eml``."""

    @property
    def head(self) -> str:
        """The headers, a line for each."""
        return "\n".join(f"{name}: {value}" for name, value in self.headers.items())


def mail_of(data: bytes) -> Mail:
    """Return the message that the bytes of a file are.

    Raises: ValueError: it has no header of a message; LookupError: an unknown encoding.
    """
    made: object = message_from_bytes(data, policy=policy.default)
    message: EmailMessage = made
    headers = {
        name: " ".join(str(value).split())
        for name in _HEADERS
        if (value := message.get(name)) is not None
    }
    if not headers:
        raise ValueError("it has no header of a message")
    body: object = message.get_body(("plain", "html"))
    content = "" if body is None else str(body.get_content())
    is_page = body is not None and body.get_content_subtype() == "html"
    return Mail(
        headers=headers,
        text="" if is_page else content,
        html=content.encode("utf-8", "replace") if is_page else b"",
        attachments=list(_attachments(message)),
    )


def _attachments(message: EmailMessage) -> Iterator[tuple[str, bytes]]:
    for part in message.iter_attachments():
        given: Any = part
        if part.get_content_type() == "message/rfc822":
            yield "message.eml", given.get_content().as_bytes()
        elif not part.is_multipart():
            data: Any = part.get_payload(decode=True)
            yield part.get_filename() or "", data or b""
