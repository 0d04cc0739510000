"""Guards that find data of persons, and keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from axil.plugin import secret_spans
from axil_wrappers.guards.finding import Finding, Span
from axil_wrappers.inside import Settings

Kind = Literal["email", "phone", "card", "iban", "ip", "ssn"]


def _is_card(text: str) -> bool:
    """Return whether the digits have the check digit of a card number (Luhn)."""
    digits = [int(each) for each in text if each.isdigit()]
    total = sum(
        digit if at % 2 == 0 else sum(divmod(2 * digit, 10))
        for at, digit in enumerate(reversed(digits))
    )
    return 13 <= len(digits) <= 19 and total % 10 == 0 and len(set(digits)) > 1


def _is_iban(text: str) -> bool:
    """Return whether the check digits of an account number are right (ISO 13616)."""
    plain = text.replace(" ", "").upper()
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1


def _is_ip(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_phone(text: str) -> bool:
    return 8 <= sum(each.isdigit() for each in text) <= 15


def _any(text: str) -> bool:
    return True


_KINDS: Final[dict[Kind, tuple[re.Pattern[str], Callable[[str], bool]]]] = {
    "email": (
        re.compile(r"[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"),
        _any,
    ),
    "iban": (re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"), _is_iban),
    "card": (re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])"), _is_card),
    "ssn": (
        re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])"),
        _any,
    ),
    "ip": (
        re.compile(
            r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}"
            r"|(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{1,4})(?![\w.:])"
        ),
        _is_ip,
    ),
    "phone": (
        re.compile(
            r"(?<![\w.])(?:\+|00(?=[1-9]))\d{1,3}[ .()/-]{0,2}\d(?:[ .()/-]{0,2}\d){5,12}(?!\w)"
            r"|(?<![\w.])\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?!\w)"
        ),
        _is_phone,
    ),
}  # fmt: skip
"""The form of each kind, and its proof."""


class PersonalConfig(Settings):
    """Kinds of data that must not pass."""

    kinds: tuple[Kind, ...] = Field(
        tuple(_KINDS), min_length=1, description="The kinds that are looked for."
    )


class PersonalData:
    """``pii``: addresses, telephone numbers, numbers of cards and accounts.

    Found by their forms, with check digits where there are any. Names and postal addresses of
    persons have no form, and are not found.
    """

    Config = PersonalConfig
    examples: ClassVar[Any] = ({}, {"kinds": ["email", "card"]})

    def __init__(self, config: PersonalConfig | None = None) -> None:
        self.config = config or PersonalConfig.model_validate({})

    def check(self, value: str, ctx: Any, /) -> Finding | None:
        """Return what is found."""
        spans, taken = list[Span](), bytearray(len(value))
        for kind in self.config.kinds:
            pattern, is_one = _KINDS[kind]
            for match in pattern.finditer(value):
                start, end = match.span()
                if 1 not in taken[start:end] and is_one(match.group()):
                    spans.append(Span(start, end, kind))
                    taken[start:end] = b"\1" * (end - start)
        if not spans:
            return None
        kinds = dict.fromkeys(span.label for span in spans)
        return Finding(reason=f"it has {', '.join(kinds)}", spans=tuple(spans))


class Secrets:
    """``secrets``: known forms of keys and tokens, and mail addresses."""

    examples: ClassVar[Any] = ({},)

    def check(self, value: str, ctx: Any, /) -> Finding | None:
        """Return where they are."""
        spans = tuple(Span(start, end, "secret") for start, end in secret_spans(value))
        return Finding(reason="it has keys or tokens", spans=spans) if spans else None
