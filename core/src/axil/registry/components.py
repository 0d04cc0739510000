"""Components made from settings.

A component class with a ``Config``, a pydantic model decoded strictly, is made with one, else with
the settings as arguments. Making one has no effects: it connects to nothing and reads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar, cast

from axil.errors import ConfigError, Problem, did_you_mean, format_names, refused_setting
from axil.settings.excerpts import format_value
from axil.settings.grants import current_grants
from axil.signatures import signature_of
from axil.spec.graph import Place

T = TypeVar("T")


def make_component(
    component: Callable[..., T],
    config: object = None,
    where: str | Place = "",
    *,
    lenient: bool = False,
) -> T:
    """Return an instance of a component class, with its config decoded; a plain function is its own
    instance.

    Raises: ConfigError, and what the constructor raises.
    """
    name = getattr(component, "__name__", type(component).__name__)
    model = getattr(component, "Config", None)
    if model is not None:
        from axil.settings.decoding import decode_config

        return _noted(component(decode_config(model, config, where, lenient=lenient)), where)
    if config is not None and not isinstance(config, Mapping):
        message = f"expected a mapping, found {format_value(config)}."
        raise ConfigError(Problem("AX133", str(where), message))
    arguments = dict(cast("Mapping[str, Any]", config or {}))
    if not isinstance(component, type):
        if arguments:
            message = f"{name} takes no config, found {format_names(sorted(map(str, arguments)))}."
            raise ConfigError(Problem("AX130", str(where), message, "Remove it."))
        return _noted(cast("T", component), where)
    problems = list(_misfits(component, arguments, where))
    if problems:
        raise ConfigError(problems)
    if (grants := current_grants()) is not None:
        for value in arguments.values():
            if isinstance(value, str):
                grants.declared.note_text(value)
    try:
        return _noted(component(**arguments), where)
    except TypeError as error:
        if (stranger := refused_setting(component, arguments, error)) is None:
            raise
        key, known = stranger
        raise ConfigError(_unknown(key, known, where)) from error


def _noted(made: T, where: str | Place) -> T:
    if (grants := current_grants()) is not None:
        grants.note_later(made, where)
    return made


def _misfits(
    component: type, arguments: Mapping[str, object], where: str | Place
) -> Iterator[Problem]:
    """Yield arguments that the constructor does not take, or lacks."""
    try:
        parameters = signature_of(component).parameters.values()
    except (ValueError, TypeError):
        # a class written in C says nothing; it will refuse what it does not take
        return
    named = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for key in [key for key in arguments if key not in named]:
            yield _unknown(key, named, where)
    for name, parameter in named.items():
        if parameter.default is parameter.empty and name not in arguments:
            hint = "Its class has no Config: settings are parameters." * (name == "config")
            yield Problem("AX132", str(where), f'the key "{name}" is missing.', hint)


def _unknown(key: str, known: Collection[str], where: str | Place) -> Problem:
    hint = did_you_mean(key, known) or (
        f"Known here: {format_names(sorted(known))}." if known else "It takes none."
    )
    at = where.at(key) if isinstance(where, Place) else f"{where}.{key}".lstrip(".")
    return Problem("AX130", str(at), f'unknown key "{key}".', hint)
