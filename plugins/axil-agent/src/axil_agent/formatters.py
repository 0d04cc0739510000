"""From what a user gives as formatters to two: one that writes prompts, one that reads replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from axil.plugin import with_article
from axil_agent.errors import WiringError
from axil_models import Formatter, component_of

DEFAULT = ("paragraph", "json")


def pair_of(given: Any, where: str = "", setting: Any = None) -> tuple[Formatter, Formatter]:
    """``None``: the usual two; one: for both; ``[in, out]``.

    Raises: WiringError (AX664); and as ``resolve``.
    """
    if given is None:
        given = list(DEFAULT)
    several = list(cast("Sequence[Any]", given)) if isinstance(given, (list, tuple)) else [given]
    if len(several) not in (1, 2):
        message = f"formatters has {len(several)} entries; expected one, or [in, out]."
        raise WiringError("AX664", message, where=where)
    return formatter_of(several[0], where, setting), formatter_of(several[-1], where, setting)


def formatter_of(given: Any, where: str = "", setting: Any = None) -> Formatter:
    """Make a formatter of an object, a name, ``{type: …}``, or one of MASFactory's kind."""
    if isinstance(given, (str, Mapping)):
        made = component_of("formatters", given, where, getattr(setting, "registry", None))
        return formatter_of(made, where)
    if isinstance(given, type):
        given = given()
    if hasattr(given, "dump") and hasattr(given, "parse"):
        return given
    if hasattr(given, "dump") or hasattr(given, "format"):
        return _Foreign(given)
    hint = "A formatter has introduction, dump(fields) and parse(text, fields)."
    message = f"{with_article(type(given).__name__)} is not a formatter."
    raise WiringError("AX664", message, hint, where)


class _Foreign:
    """A formatter with ``dump(dict) -> str``, ``format(str) -> dict``, ``agent_introducer`` and
    perhaps ``set_field_keys``.
    """

    def __init__(self, formatter: Any) -> None:
        self.formatter = formatter

    @property
    def introduction(self) -> str:
        return str(getattr(self.formatter, "agent_introducer", "") or "")

    def dump(self, fields: Mapping[str, Any], /) -> str:
        return str(self.formatter.dump(dict(fields)))

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, Any]:
        if hasattr(self.formatter, "set_field_keys") and fields:
            self.formatter.set_field_keys(list(fields))
        return dict(self.formatter.format(text))
