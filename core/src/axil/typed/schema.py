"""Schemas from types: a pydantic model or a TypedDict becomes a closed ``Schema``, its annotations
become reducers.

    class Brief(BaseModel):
        topic: str = ""
        notes: Annotated[list[str], "append"]
        cost: Annotated[float, "sum", Field(ge=0)] = 0.0

Validated is every value of a field's type, in pydantic's lax mode (``"5"`` is 5), with the field's
constraints and ``field_validator``s. Not run are validators of the whole model, and there is no
``info.data``: a write is checked alone. A delta is checked against the field's type; where the
field has constraints, its result is checked too, in O(value) a write.

A new state starts with the declared default (a factory is asked for each state), else with the
type's empty value, if it accepts it (``[]``, ``0``, ``None`` for optional ones, …), else with
nothing, as a ``NotRequired`` field does; ``total=False`` alone changes nothing, as in EvoFabric.
``append`` and ``append_messages`` fields hold a ``Log``.

pydantic is imported when the first schema is made.
"""

from __future__ import annotations

import dataclasses
import functools
import keyword
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from weakref import WeakKeyDictionary

from axil.contract.views import StateView
from axil.errors import Problem, SpecError, UnknownComponent, did_you_mean
from axil.kernel.state import APPEND, OVERWRITE, Field, Reducer, Schema
from axil.kernel.values import MISSING, Log, isolate
from axil.typed.checks import Checks, adapter, is_plain
from axil.typed.reducers import (
    APPEND_MESSAGES,
    BUILT_IN,
    as_messages,
    as_reducer,
    takes_two,
    unfit_strategy,
    unknown_strategy,
)
from axil.typed.views import model_view

Resolve = Callable[[str], Any]
"""From a strategy's name to a ``Reducer`` or a function; raises KeyError or UnknownComponent."""

# one schema a class: states join only where the schema is the same
_made: WeakKeyDictionary[type, Schema] = WeakKeyDictionary()


def schema_of(model: Any, *, resolve: Resolve | None = None) -> Schema:
    """Return the closed schema of a pydantic model or a TypedDict, one object for each class.

    A field's reducer is what its ``Annotated[…]`` names: a strategy's name, a ``Reducer``, or a
    function ``(old, new)``; without one the field is overwritten. A model with ``extra="allow"``
    gives an open schema.

    Args:
        model: the class; a ``Schema`` is returned as it is.
        resolve: where names that are not built in come from; None: the registry of this process.
            With one, nothing is cached.

    Raises: SpecError, with all problems at once: AX150 unknown strategy, AX151 no strategy, or
    several, AX152 annotation that cannot be resolved, AX153 not a schema, AX154 type that cannot be
    validated, AX156 default that cannot be made.

    Cost: one pydantic validator for each field, once per class. Source: EvoFabric, schemas; see
    docs/explanation/divergences.md.
    """
    if isinstance(model, Schema):
        return model
    if resolve is None and isinstance(model, type) and model in _made:
        return _made[model]
    if _is_model(model):
        declared, view, config = _of_model(model), model_view(model), _config(model)
    elif _is_typed_dict(model):
        declared, view, config = _of_typed_dict(model), StateView, _config(model)
    else:
        message = f"a state's schema is a pydantic model or a TypedDict; found {model!r}."
        raise SpecError(Problem("AX153", "", message, "Give a class derived from one of them."))
    schema = _schema(model.__name__, declared, view, config, resolve or _resolved)
    if resolve is None:
        _made[model] = schema
    return schema


def generate_state_schema(
    fields: Iterable[object] = (), name: str = "State", *, resolve: Resolve | None = None
) -> Schema:
    """Return a closed schema from ``(name, type, strategy)`` triples; bodies see it as a dict.

    Args:
        fields: the type is a type, an annotation, or text: ``str int float bool list dict set tuple
            bytes any none``, nested (``dict[str, list[int]]``) and optional (``str | none``). The
            strategy is a name, a ``Reducer`` or a function. A field ``messages`` (a list,
            ``append_messages``) is added unless it is declared.
        resolve: as for ``schema_of``.

    Raises: SpecError, as ``schema_of``, and AX155 a name that is not an identifier or comes twice.
    Source: EvoFabric ``generate_state_schema``, which refuses a ``messages`` of your own, and
    evaluates the text of types.
    """
    problems: list[Problem] = []
    declared: dict[str, _Declared] = {}
    for position, given in enumerate(fields):
        where = f'schema "{name}", field {position}'
        if not isinstance(given, (tuple, list)) or len(cast("Sequence[Any]", given)) != 3:
            problems.append(
                Problem("AX155", where, f"expected (name, type, strategy); found {given!r}.")
            )
            continue
        field, kind, strategy = cast("Sequence[Any]", given)
        if not isinstance(field, str) or not field.isidentifier() or keyword.iskeyword(field):
            problems.append(
                Problem("AX155", where, f"a field's name is an identifier; found {field!r}.")
            )
        elif field in declared:
            problems.append(
                Problem(
                    "AX155", where, f'"{field}" is declared twice.', "Remove one, or rename it."
                )
            )
        else:
            try:
                kind = _TypeText(kind).read() if isinstance(kind, str) else _portable(_kind(kind))
            except ValueError as error:
                problems.append(Problem("AX154", f'schema "{name}", field "{field}"', str(error)))
                kind = Any
            declared[field] = _Declared(field, kind, kind, (strategy,))
    messages = list[Any]
    declared.setdefault("messages", _Declared("messages", messages, messages, ("append_messages",)))
    return _schema(name, [*declared.values()], StateView, {}, resolve or _resolved, problems)


def _kind(given: object) -> Any:
    # a type alias, a NewType
    named = any(hasattr(given, name) for name in ("__value__", "__supertype__"))
    if (
        isinstance(given, type)
        or typing.get_origin(given) is not None
        or given in (Any, None)
        or named
    ):
        return given
    raise ValueError(f"expected a type; found {given!r}.")


def _config(model: object) -> dict[str, object]:
    return dict(getattr(model, "model_config", None) or getattr(model, "__pydantic_config__", {}))


def _is_model(model: object) -> bool:
    from pydantic import BaseModel

    return isinstance(model, type) and issubclass(model, BaseModel)


def _is_typed_dict(kind: object) -> bool:
    return (
        isinstance(kind, type)
        and hasattr(kind, "__required_keys__")
        and hasattr(kind, "__optional_keys__")
    )


@dataclass(frozen=True, slots=True)
class _Declared:
    name: str
    kind: Any
    """The type, without constraints of the field."""
    full: Any
    """The type with the field's constraints; the same object where there are none."""
    strategies: tuple[object, ...] = ()
    default: Callable[[], object] | None = None
    optional: bool = False
    """True if it starts with nothing."""
    problem: Problem | None = None


def _of_model(model: Any) -> list[_Declared]:
    from pydantic import AfterValidator, BeforeValidator, PlainValidator, WrapValidator
    from pydantic.errors import PydanticUndefinedAnnotation

    try:
        model.model_rebuild()
    except PydanticUndefinedAnnotation as error:
        raise SpecError(_unresolved(model, error)) from error
    kinds: dict[str, Any] = {
        "after": AfterValidator,
        "before": BeforeValidator,
        "plain": PlainValidator,
        "wrap": WrapValidator,
    }
    validators: list[Any] = list(model.__pydantic_decorators__.field_validators.values())
    declared: list[_Declared] = []
    for name, info in model.model_fields.items():
        strategies, rest = _separated(info.metadata)
        # Decorated validators come last, as in the model; the public names are made into what the
        # decorators mean.
        own = [
            kinds[v.info.mode](v.func)
            for v in validators
            if name in v.info.fields or "*" in v.info.fields
        ]
        constrained = bool(rest or own or info.discriminator is not None)
        full = _annotated(info.annotation, [info, *own]) if constrained else info.annotation
        default, problem = _default_of(info, f'schema "{model.__name__}", field "{name}"')
        declared.append(
            _Declared(name, info.annotation, full, strategies, default, problem=problem)
        )
    return declared


def _of_typed_dict(model: Any) -> list[_Declared]:
    from pydantic.fields import FieldInfo

    try:
        hints = typing.get_type_hints(model, include_extras=True)
    except NameError as error:
        raise SpecError(_unresolved(model, error)) from error
    declared: list[_Declared] = []
    for name, hint in hints.items():
        metadata: list[object] = []
        optional = False
        while (origin := typing.get_origin(hint)) is typing.Annotated or _is_marker(origin):
            if origin is typing.Annotated:
                metadata = [*hint.__metadata__, *metadata]
                hint = hint.__origin__
            else:
                optional = optional or _marks(origin, "NotRequired")
                hint = hint.__args__[0]
        strategies, rest = _separated(metadata)
        default = problem = None
        for info in rest:
            if isinstance(info, FieldInfo):
                default, problem = _default_of(info, f'schema "{model.__name__}", field "{name}"')
        kind = _portable(hint)
        declared.append(
            _Declared(
                name,
                kind,
                _annotated(kind, rest) if rest else kind,
                strategies,
                default,
                optional,
                problem,
            )
        )
    return declared


def _is_marker(origin: object) -> bool:
    return any(_marks(origin, marker) for marker in ("Required", "NotRequired", "ReadOnly"))


def _marks(origin: object, marker: str) -> bool:
    return getattr(origin, "_name", None) == marker and getattr(origin, "__module__", "") in (
        "typing",
        "typing_extensions",
    )


def _unresolved(model: Any, error: NameError) -> Problem:
    found = f'the name "{error.name}"' if error.name else "a name"
    hint = (
        "Import it at run time, not only for type checking, and define it in the module, not "
        "in "
        "a function."
    )
    return Problem(
        "AX152",
        f'schema "{model.__name__}"',
        f"{found} in an annotation cannot be resolved in {model.__module__}.",
        hint,
    )


def _separated(metadata: Iterable[object]) -> tuple[tuple[object, ...], list[object]]:
    """Return the strategies among an annotation's metadata, and the rest."""
    strategies: list[object] = []
    rest: list[object] = []
    for each in metadata:
        function = (
            callable(each)
            and not isinstance(each, type)
            and not hasattr(each, "__get_pydantic_core_schema__")
        )
        (strategies if isinstance(each, (str, Reducer)) or function else rest).append(each)
    return tuple(strategies), rest


def _annotated(kind: object, metadata: Sequence[object]) -> Any:
    return typing.Annotated[(kind, *metadata)]  # type: ignore[return-value]  # built at run time


def _default_of(info: Any, where: str) -> tuple[Callable[[], object] | None, Problem | None]:
    if info.is_required():
        return None, None
    if info.default_factory is None:
        default = info.default
        return lambda: isolate(default), None
    if getattr(info, "default_factory_takes_validated_data", False):
        hint = "Let a node write it, or use a factory without arguments."
        return None, Problem(
            "AX156", where, "the default is made from other fields, which have no value yet.", hint
        )
    return info.default_factory, None


def _portable(kind: Any, inside: tuple[Any, ...] = ()) -> Any:
    """Return ``kind`` with ``typing.TypedDict``s inside it as ``typing_extensions``'s, which
    pydantic takes before 3.12.
    """
    if sys.version_info >= (3, 12):
        return kind
    if _is_typed_dict(kind):
        # one that contains itself: pydantic says what to do
        if type(kind).__module__ != "typing" or kind in inside:
            return kind
        import typing_extensions  # pydantic brings it

        hints = typing.get_type_hints(kind, include_extras=True)
        keys: dict[str, Any] = {}
        for name, hint in hints.items():
            own = _portable(hint, (*inside, kind))
            required: bool = name in kind.__required_keys__
            keys[name] = (
                own
                if _is_marker(typing.get_origin(hint))
                else typing.Required[own]
                if required
                else typing.NotRequired[own]
            )
        # built at run time
        return typing_extensions.TypedDict(kind.__name__, keys)  # type: ignore[operator]
    args = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if not args or origin is Literal:
        return kind
    if origin is typing.Annotated:
        return _annotated(_portable(kind.__origin__, inside), kind.__metadata__)
    parts = tuple(_portable(arg, inside) for arg in args)
    if all(a is b for a, b in zip(parts, args, strict=True)):
        return kind
    if origin is types.UnionType:
        return functools.reduce(lambda a, b: a | b, parts)
    return kind.copy_with(parts) if hasattr(kind, "copy_with") else origin[parts]


def _schema(
    name: str,
    declared: Sequence[_Declared],
    view: Callable[..., object],
    config: dict[str, object],
    resolve: Resolve,
    problems: Sequence[Problem] = (),
) -> Schema:
    found = [*problems, *(each.problem for each in declared if each.problem is not None)]
    made = [
        _field(each, f'schema "{name}", field "{each.name}"', config, resolve, found)
        for each in declared
    ]
    if found:
        raise SpecError(found)
    return Schema(
        name,
        {field.name: field for field in made if field is not None},
        config.get("extra") != "allow",
        view,
    )


def _field(
    declared: _Declared,
    where: str,
    config: Mapping[str, object],
    resolve: Resolve,
    problems: list[Problem],
) -> Field | None:
    reducer = _reducer(declared.strategies, where, resolve, problems)
    try:
        full = adapter(declared.full, config)
        loose = full if declared.full is declared.kind else adapter(declared.kind, config)
    except (TypeError, NameError, RuntimeError) as error:
        # pydantic's own are RuntimeErrors, TypeErrors and NameErrors
        report = str(error).splitlines()[0]
        hint = (
            "typing_extensions.TypedDict works on every Python."
            if "typing_extensions" in report
            else ""
        )
        problems.append(
            Problem("AX154", where, f"values of this type cannot be validated: {report}", hint)
        )
        return None
    if reducer is None:
        return None
    checks = Checks(
        declared.name,
        full,
        loose,
        log=reducer in (APPEND, APPEND_MESSAGES),
        stays=reducer is not OVERWRITE,
        read=as_messages if reducer is APPEND_MESSAGES else None,
    )
    if reducer.whole and reducer is not OVERWRITE and loose is not full:
        reducer = _constrained(reducer, checks)
    plain = is_plain(declared.kind)
    encode, decode = (
        (checks.as_list, checks.as_log)
        if plain and checks.log
        else (None, None)
        if plain
        else (checks.encode, checks.decode)
    )
    if reducer.whole is False and not plain:
        encode, decode = checks.encode_delta, checks.decode_delta
    try:
        default = _start(declared, checks)
    except TypeError as error:
        problems.append(
            Problem("AX154", where, f"{error}.", "Remove the constraint, or correct the type.")
        )
        return None
    return Field(declared.name, reducer, default, checks, encode, decode)


def _reducer(
    strategies: Sequence[object], where: str, resolve: Resolve, problems: list[Problem]
) -> Reducer | None:
    if not strategies:
        return OVERWRITE
    if len(strategies) > 1:
        names = ", ".join(
            repr(each) if isinstance(each, str) else getattr(each, "name", "a function")
            for each in strategies
        )
        hint = "Put descriptions into Field(description=…)."
        problems.append(
            Problem("AX151", where, f"one update strategy is expected; found {names}.", hint)
        )
        return None
    given, name = strategies[0], "custom"
    if isinstance(given, str):
        name = given
        try:
            given = BUILT_IN[name] if name in BUILT_IN else resolve(name)
        except (KeyError, UnknownComponent) as error:
            problems.append(unknown_strategy(name, where, getattr(error, "hint", "")))
            return None
    if not isinstance(given, Reducer) and not takes_two(given):
        problems.append(unfit_strategy(getattr(given, "__name__", name), where))
        return None
    return as_reducer(given, "" if hasattr(given, "__name__") else name)


def _resolved(name: str) -> object:
    # only schemas that name a strategy of a plugin need it
    from axil.registry.registry import default_registry

    return default_registry().resolve("reducers", name)


def _constrained(reducer: Reducer, checks: Checks) -> Reducer:
    """Return ``reducer`` for a field with constraints, which hold for the result, not for each
    delta.
    """
    reduce = reducer.reduce

    def taken(old: object, new: object) -> object:
        return reduce(old, checks.delta(new))

    return dataclasses.replace(reducer, reduce=taken, many=None, whole=False)


def _start(declared: _Declared, checks: Checks) -> Callable[[], object] | None:
    default = declared.default
    if default is not None:
        return (lambda: checks.as_log(default())) if checks.log else default
    if declared.optional:
        return None
    empty = Log() if checks.log else _empty(declared.kind)
    if empty is MISSING:
        return None
    try:
        checks(empty)
    except Exception as error:
        # a validator may raise anything; what refuses the empty value starts with nothing
        # as pydantic says it, late
        if isinstance(error, TypeError) and str(error).startswith("Unable to apply constraint"):
            raise
        return None
    return lambda: isolate(empty)


_EMPTY: dict[object, object] = {
    list: [], dict: {}, set: set(), frozenset: frozenset(), tuple: (), int: 0, float: 0.0, str: "",
    bool: False, bytes: b"",
    Any: None, None: None, type(None): None,
}  # fmt: skip


def _empty(kind: Any) -> object:
    while (
        hasattr(kind, "__value__")
        or hasattr(kind, "__supertype__")
        or typing.get_origin(kind) is typing.Annotated
    ):
        kind = (
            getattr(kind, "__value__", None)
            or getattr(kind, "__supertype__", None)
            or kind.__origin__
        )
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return None if type(None) in typing.get_args(kind) else MISSING
    try:
        return _EMPTY.get(origin or kind, MISSING)
    except TypeError:  # an unhashable annotation
        return MISSING


_NAMED: dict[str, object] = {
    "str": str, "int": int, "float": float, "bool": bool, "bytes": bytes, "list": list,
    "dict": dict, "set": set, "tuple": tuple,
    "any": Any, "Any": Any, "none": None, "None": None,
}  # fmt: skip
_ARGUMENTS: dict[object, int] = {list: 1, set: 1, dict: 2, tuple: 0}
_TOKEN = re.compile(r"\s*(\w+|\.\.\.|[\[\],|])")
_LONGEST = 200


class _TypeText:
    """A type written as text, read without running it: ``dict[str, list[int] | none]``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = _TOKEN.findall(text)
        self.at = 0

    def read(self) -> Any:
        """Return the type. Raises: ValueError."""
        if len(self.text) > _LONGEST or "".join(self.tokens) != "".join(self.text.split()):
            raise self._wrong()
        kind = self._union()
        if self.at != len(self.tokens):
            raise self._wrong()
        return kind

    def _union(self) -> object:
        kind = self._single()
        while self._skip("|"):
            # made at run time; None and Any have no | of their own
            kind = typing.Union[kind, self._single()]  # noqa: UP007
        return kind

    def _single(self) -> object:
        name = self._next()
        if name not in _NAMED:
            known = [each for each in _NAMED if each.islower()]
            hint = did_you_mean(name.lower(), known)
            raise ValueError(
                f'no type is called "{name}" here; there are {", ".join(known)}.'
                + (f" {hint}" if hint else "")
            )
        kind = _NAMED[name]
        if not self._skip("["):
            return kind
        args = [self._union()]
        while self._skip(","):
            args.append(
                ... if kind is tuple and len(args) == 1 and self._skip("...") else self._union()
            )
        if (
            self._next() != "]"
            or kind not in _ARGUMENTS
            or (_ARGUMENTS[kind] and len(args) != _ARGUMENTS[kind])
        ):
            raise self._wrong()
        return cast("Any", kind)[tuple(args)]

    def _next(self) -> str:
        if self.at == len(self.tokens):
            raise self._wrong()
        self.at += 1
        return self.tokens[self.at - 1]

    def _skip(self, token: str) -> bool:
        found = self.at < len(self.tokens) and self.tokens[self.at] == token
        self.at += found
        return found

    def _wrong(self) -> ValueError:
        return ValueError(
            'expected a type such as "str", "list[str]" or "dict[str, int]"; found '
            f'"{self.text[:_LONGEST]}".'
        )
