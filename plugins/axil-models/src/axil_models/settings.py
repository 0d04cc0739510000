"""Settings of models: those whose range everybody agrees on are checked, all others are the
adapter's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from axil import ConfigError, Problem

_RANGES: Mapping[str, tuple[type, float, float]] = {
    "temperature": (float, 0, 2),
    "top_p": (float, 0, 1),
    "frequency_penalty": (float, -2, 2),
    "presence_penalty": (float, -2, 2),
    "max_tokens": (int, 1, float("inf")),
    "top_k": (int, 1, float("inf")),
    "timeout_seconds": (float, 0, float("inf")),
}
COMMON = (*_RANGES, "stop", "seed")
"""Settings that most services have."""


def checked_settings(
    settings: Mapping[str, object] | None, where: str = "model_settings"
) -> dict[str, object]:
    """Return the settings, without those that are None.

    >>> checked_settings({"temperature": 0.2, "seed": None, "reasoning_effort": "low"})
    {'temperature': 0.2, 'reasoning_effort': 'low'}

    Raises: ConfigError (AX655): with all that is out of range.
    """
    if not isinstance(cast("Any", settings or {}), Mapping):
        message = f"expected a mapping, found {settings!r:.80}."
        raise ConfigError(Problem("AX655", where, message, 'Write {"temperature": 0.2}.'))
    given = {name: value for name, value in (settings or {}).items() if value is not None}
    found = [_misfit(name, value, where) for name, value in given.items()]
    if problems := [each for each in found if each is not None]:
        raise ConfigError(problems)
    return given


def _misfit(name: str, value: Any, where: str) -> Problem | None:
    if name == "stop":
        texts = cast("list[Any]", value if isinstance(value, (list, tuple)) else [value])
        fits = all(isinstance(each, str) for each in texts)
        expected = "text or a list of texts"
    elif name == "tool_choice":
        fits, expected = isinstance(value, (str, Mapping)), "auto, none, required or a tool"
    elif name in _RANGES:
        kind, least, most = _RANGES[name]
        is_number = isinstance(value, (int, kind)) and not isinstance(value, bool)
        fits = is_number and least <= value <= most
        word = "a number" if kind is float else "a whole number"
        bounds = f"from {least:g} to {most:g}" if most != float("inf") else f"of at least {least:g}"
        expected = f"{word} {bounds}"
    else:
        return None
    if fits:
        return None
    return Problem("AX655", f"{where}.{name}", f"expected {expected}, found {value!r:.60}.")
