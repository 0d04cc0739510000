"""Configs, decoded strictly from plain data into the pydantic models that components declare.

A component class may have a ``Config``, a pydantic model; then it is made with one. While the
grants of a workflow file are in force, paths and secrets in settings are confined to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from axil.errors import ConfigError, Problem
from axil.settings.excerpts import format_value
from axil.settings.grants import Grants, current_grants
from axil.settings.misfits import Keys, misfits, model_fields_of
from axil.settings.outside import OutsideMark, OutsideName
from axil.settings.secrets import Secret
from axil.spec.graph import Place

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model = TypeVar("Model", bound=BaseModel)
else:
    Model = TypeVar("Model")


def decode_config(
    model: type[Model], raw: object, where: str | Place = "", *, lenient: bool = False
) -> Model:
    """Return an instance of the pydantic class ``model`` from plain data; keys that the model does
    not have are errors.

    A model that sets ``extra="allow"`` keeps them; models inside it cannot (a field that takes
    anything is a ``dict``). A key that is null says nothing where the field has a default and does
    not take None: ``tooling: null`` is the default. ``lenient``: keys that the model does not have
    are logged as warnings and left out. Raises: ConfigError with everything that was found: AX130
    unknown key, AX131 a value that does not fit, AX132 a key that is missing, AX133 not a mapping.
    Values of secret fields are never shown. While a file's grants are in force (``Grants``), paths
    become whole, and AX137 is a path, AX138 a secret's variable or a program that the file may not
    have.
    """
    from pydantic import ValidationError

    if isinstance(raw, model):
        return raw
    _keep_text_clean(model)
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        raise ConfigError(
            Problem("AX133", str(where), f"expected a mapping, found {format_value(raw)}.")
        )
    given = cast("Mapping[str, object]", raw)
    stated = _said(model, given)
    is_open = model.model_config.get("extra") == "allow"
    try:
        return _confined(model.model_validate(stated, extra=None if is_open else "forbid"), where)
    except ValidationError as error:
        found = list(misfits(model, given, error))
    # outside the handler: the original error's text shows the input, secrets included
    problems = [
        Problem(
            _IDS[each.kind], _inside(where, each.keys), each.message, each.hint or each.description
        )
        for each in found
    ]
    ignored = [problem for problem in problems if lenient and problem.id == "AX130"]
    if len(ignored) < len(problems):
        raise ConfigError([problem for problem in problems if problem not in ignored])
    import logging

    for problem in ignored:
        logging.getLogger("axil.config").warning(
            "%s: %s is ignored. %s", problem.where, problem.message.rstrip("."), problem.hint
        )
    return _confined(model.model_validate(stated, extra=None if is_open else "ignore"), where)


def _keep_text_clean(model: type[BaseModel]) -> None:
    """Let settings be shown without the secrets of this process, whichever fields hold them.

    The class is changed, and not each class written so: a plugin's settings are a plain model.
    """
    from pydantic import BaseModel

    usual = BaseModel.__repr_str__
    if getattr(model, "__repr_str__", None) is usual:

        def shown(self: Any, join_str: str) -> str:
            from axil.secrecy import without_secrets

            return without_secrets(usual(self, join_str))

        model.__repr_str__ = shown


def _confined(made: Model, where: str | Place) -> Model:
    """Return settings as the grants in force allow them: paths without links.

    Raises: ConfigError (AX137, AX138) with everything that needs leave.
    """
    grants = current_grants()
    if grants is None:
        return made
    problems: list[Problem] = []
    confined = cast("Model", _within(made, grants, where, (), problems))
    if problems:
        raise ConfigError(problems)
    return confined


_PLAIN: Final = (bool, int, float, str)


def _within(
    value: object, grants: Grants, where: str | Place, keys: Keys, problems: list[Problem]
) -> Any:
    """Return a part of settings as it is granted; what is not is added to ``problems``."""
    if isinstance(value, OutsideName):
        try:
            return value.outside.permitted(str(value), grants, _inside(where, keys))
        except ConfigError as error:
            problems.extend(error.problems)
            return str(value)
    if value is None or isinstance(value, _PLAIN):
        if isinstance(value, str):
            grants.declared.note_text(value)
        return value
    if fields := model_fields_of(cast("Any", type(value))):
        return _within_fields(value, fields, grants, where, keys, problems)
    if isinstance(value, Secret):
        if value.name and not value.is_known:
            try:
                value.permit(_inside(where, keys), grants)
            except ConfigError as error:
                problems.extend(error.problems)
        return value
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        kept = [_within(v, grants, where, (*keys, i), problems) for i, v in enumerate(items)]
        is_same = all(new is old for new, old in zip(kept, items, strict=True))
        is_plain = type(items) in (list, tuple)
        return type(cast("Any", items))(kept) if is_plain and not is_same else items
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value)
        new = {k: _within(v, grants, where, (*keys, str(k)), problems) for k, v in pairs.items()}
        return pairs if all(new[key] is pairs[key] for key in pairs) else new
    return value


def _within_fields(
    value: Any,
    fields: Mapping[str, Any],
    grants: Grants,
    where: str | Place,
    keys: Keys,
    problems: list[Problem],
) -> object:
    changes: dict[str, object] = {}
    for name, info in fields.items():
        extra: object = info.json_schema_extra
        if isinstance(extra, dict) and "x-axil-usual" in extra:
            continue
        given = getattr(value, name)
        if type(given) is str:  # a default, which was not decoded
            for mark in info.metadata:
                given = mark.marked(given) if isinstance(mark, OutsideMark) else given
        new = _within(given, grants, where, (*keys, str(info.alias or name)), problems)
        if new is not getattr(value, name):
            changes[name] = new
    return value.model_copy(update=changes) if changes else value


_IDS: Final = {"unknown": "AX130", "missing": "AX132", "value": "AX131"}


def refers_to(
    kind: str, *, path: str = "", default: Sequence[str] = (), beside: str = ""
) -> dict[str, Any]:
    """Says of a field of a ``Config`` that its value names components: for
    ``Field(json_schema_extra=refers("models"))``.

    It goes into the schema and the manifest: with it, what a workflow needs is known without an
    import.

    Args:
        kind: a kind of component; ``graph``: the value is a graph, a node, or ``{path: FILE}``;
            ``file``: the path of a file that is read.
        path: where in the value, as a JSON pointer, ``*`` for every member; empty: the value is a
            name, ``{type: …}``, or several.
        default: what is meant where the field is left out.
        beside: the default is meant only where this other field is given.

    >>> refers_to("formatters", default=["paragraph", "json"])
    {'x-axil-ref': {'kind': 'formatters', 'default': ['paragraph', 'json']}}
    """
    data = {"kind": kind, "path": path, "default": list(default), "beside": beside}
    return {"x-axil-ref": {name: value for name, value in data.items() if value}}


def _said(model: type[BaseModel], raw: Mapping[str, object]) -> dict[str, object]:
    if all(value is not None for value in raw.values()):
        return dict(raw)
    silent = {
        key
        for name, info in model.model_fields.items()
        for key in (name, info.alias)
        if not info.is_required()
        and info.annotation is not Any
        and type(None) not in getattr(info.annotation, "__args__", ())
    }
    return {key: value for key, value in raw.items() if value is not None or key not in silent}


def _inside(where: str | Place, keys: Keys) -> str:
    if isinstance(where, Place):
        return str(where.at(*keys))
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return f"{where}{path}" if where else path.lstrip(".")
