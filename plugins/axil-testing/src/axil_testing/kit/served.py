"""The base of kits of models that ask a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from axil_testing.kit.base import Kit
from axil_testing.stub import Address


class ServedKit(Kit):
    """Laws of models that are made for a server; those of every kind make them without one."""

    kind = "models"

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        given = cls.__dict__.get("make")
        if given is not None:

            def make(
                self: Any, server: Any = None, /, *, _given: Callable[[Any, Any], Any] = given
            ) -> Any:
                return _given(self, server or Address())

            # the laws of every kind make one without a server
            cls.make = make  # type: ignore[method-assign]

    def make(self, server: Any = None) -> Any:
        """Return a new model that asks ``server`` (``url``, ``key``), or talks through it."""
        raise NotImplementedError("Give make(self, server).")
