"""What MASFactory has and axil does in another way."""

from __future__ import annotations


class Unsupported(NotImplementedError):
    """A use of MASFactory that has no counterpart under this name; it says what axil has."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what}: axil does not do this under MASFactory's name. {instead}")
