"""Functions as tools, described by their signature and docstring.

Everything that pydantic can validate can be a parameter: literals, enums, nested models, typed
dicts, unions, annotations written as strings, ``Annotated[int, "how many"]``. A parameter called
``ctx`` is given the context of the firing and is not shown to the model. Arguments are validated
before the call, so a tool is never called with what it cannot take.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakKeyDictionary

import typing_extensions
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from axil.plugin import Effects, signature_of, with_article
from axil_models.docstrings import Described, docstring_of
from axil_models.errors import ToolError
from axil_models.faults import validation_text, without_titles
from axil_models.shapes import NAME, tool_by_shape
from axil_models.tools import CONTEXT, EFFECTS, Approval, Refused, Tool, is_toolset


def tool_of(given: Any) -> Tool:
    """Return a function, a method, a partial or a callable object as a tool, or what another
    library has as one; a tool as it is.

    Raises: ToolError (AX657, AX984): it cannot be one, and why.
    """
    if isinstance(given, Tool):
        return given
    if not _is_function(given) and (tool := tool_by_shape(given)) is not None:
        return tool
    if not callable(given):
        message = f"{with_article(type(given).__name__)} cannot be a tool."
        raise ToolError("AX657", message, "Give a function, a Tool, or a toolset.")
    target, bound = _unwrapped(given)
    name = _named(given)
    if not NAME.fullmatch(name):
        hint = "Name the function: letters, digits, _ and -, at most 64."
        raise ToolError("AX657", f'"{name}" cannot be the name of a tool.', hint)
    interface = _interface(target, bound, name, _docstring(given, target) or "")
    return Tool(
        name=name,
        description=interface.description,
        parameters=interface.schema,
        call=given,
        validate=interface.validate,
        wants_ctx=interface.wants_ctx,
        needs_approval=_approval(given, name),
        approval=getattr(given, "approval", Approval()),
        effects=_effects(given, name),
    )


def _is_function(given: object) -> bool:
    return inspect.isroutine(given) or isinstance(given, functools.partial)


@dataclass(frozen=True, slots=True)
class _Interface:
    """The interface of a tool, as a signature and a docstring say it."""

    description: str
    schema: Mapping[str, Any]
    validate: _Validator
    wants_ctx: bool


_interfaces: WeakKeyDictionary[Callable[..., object], dict[tuple[object, ...], _Interface]] = (
    WeakKeyDictionary()
)
"""By function: an agent whose toolset makes its tools anew for every turn reads them once."""


def _interface(target: Any, bound: tuple[int, set[str]], name: str, text: str) -> _Interface:
    """Return the interface of a function, read once.

    Raises: ToolError (AX657): it cannot be described.
    """
    key = (inspect.ismethod(target), bound[0], frozenset(bound[1]), name, text)
    try:
        known = _interfaces.setdefault(getattr(target, "__func__", target), {})
    except TypeError:  # it cannot be remembered
        known = {}
    found = known.get(key)
    if found is None:
        found = known[key] = _read(target, bound, name, text)
    return found


def _read(target: Any, bound: tuple[int, set[str]], name: str, text: str) -> _Interface:
    parameters = _shown(target, bound, name)
    stated = docstring_of(text)
    hints = _hints(target, name, parameters.keys() - {CONTEXT})
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(parameters.values()):
        if parameter.name != CONTEXT:
            fields[f"p{number}"] = _field(
                parameter, hints.get(parameter.name, Any), stated.parameters.get(parameter.name, "")
            )
    try:
        model = create_model(
            name, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields
        )
        schema = without_titles(model.model_json_schema(by_alias=True, schema_generator=_Quiet))
    except PydanticUserError as error:
        message = f'the tool "{name}" cannot be described: {error.message.splitlines()[0]}'
        raise ToolError("AX657", message, "Annotate with plain types.") from error
    schema.pop("additionalProperties", None)
    schema.pop("description", None)
    return _Interface(
        _with_result(stated, hints.get("return")),
        {"type": "object", "properties": {}, **schema},
        _Validator(model, parameters),
        CONTEXT in parameters,
    )


def _with_result(stated: Described, hint: Any) -> str:
    """Return a function's description with its result: the type, unless text, and what it is."""
    kind = _type_text(hint)
    if not stated.result and not kind:
        return stated.text
    if not stated.result:
        result = f"Returns {kind}."
    elif not kind or stated.result.startswith(kind):
        result = f"Returns: {stated.result}"
    else:
        result = f"Returns {kind}: {stated.result}"
    return f"{stated.text}\n\n{result}" if stated.text else result


def _type_text(hint: Any) -> str:
    """Return an annotation as one writes it; nothing for text, and for what says nothing."""
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    if hint in (None, type(None), str, Any, object):
        return ""
    text = hint.__name__ if inspect.isclass(hint) and not typing.get_args(hint) else repr(hint)
    return re.sub(r"[\w.]*\.(?:<locals>\.)?(\w+)", r"\1", text)


def _effects(given: object, name: str) -> Effects | Callable[[Mapping[str, object]], Effects]:
    effects: Any = getattr(given, "effects", "idempotent")
    if effects in EFFECTS or callable(effects):
        return cast("Effects | Callable[[Mapping[str, object]], Effects]", effects)
    hint = "none, idempotent or external; or a function of the arguments that gives one of them."
    raise ToolError("AX657", f'effects of the tool "{name}" is {effects!r}.', hint)


def _approval(given: object, name: str) -> bool | Callable[[Mapping[str, object]], bool]:
    needed: Any = getattr(given, "needs_approval", False)
    if isinstance(needed, bool) or callable(needed):
        return cast("bool | Callable[[Mapping[str, object]], bool]", needed)
    message = f'needs_approval of the tool "{name}" is {with_article(type(needed).__name__)}.'
    raise ToolError("AX657", message, "Give True, or a function of the arguments.")


class _Quiet(GenerateJsonSchema):
    """Leaves out defaults that JSON cannot hold, without a warning."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012


def _unwrapped(given: Any) -> tuple[Any, tuple[int, set[str]]]:
    """Return the function behind partials and callable objects, and the filled parameters: how many
    positions, which names.
    """
    count, names = 0, set[str]()
    while isinstance(given, functools.partial):
        partial = cast("functools.partial[Any]", given)
        count, names = count + len(partial.args), names | set(partial.keywords)
        given = partial.func
    if not (inspect.isroutine(given) or inspect.isclass(given)):
        given = given.__call__
    return given, (count, names)


def _named(given: object) -> str:
    while isinstance(given, functools.partial):
        given = cast("functools.partial[Any]", given).func
    return str(getattr(given, "__name__", type(given).__name__))


def _shown(target: Any, bound: tuple[int, set[str]], name: str) -> dict[str, inspect.Parameter]:
    try:
        signature = signature_of(target)
    except (TypeError, ValueError) as error:
        message = f'the signature of the tool "{name}" cannot be read.'
        raise ToolError("AX657", message, "Wrap it in a function with annotations.") from error
    kinds = inspect.Parameter
    shown = {
        p.name: p
        for p in list(signature.parameters.values())[bound[0] :]
        if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
        and p.name not in bound[1]
        and (not p.name.startswith("_") or p.default is p.empty)  # else the function's own business
    }
    if not shown.keys() - {CONTEXT} and any(
        p.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) for p in signature.parameters.values()
    ):
        message = f'the tool "{name}" takes any arguments, and says of none what it is.'
        raise ToolError("AX984", message, "Wrap it in a function with named parameters.")
    return shown


def _docstring(given: object, target: object) -> str | None:
    own = target if isinstance(given, functools.partial) else given
    return (own if inspect.isroutine(own) or inspect.isclass(own) else type(own)).__doc__


def _hints(target: Any, name: str, shown: Set[str]) -> dict[str, Any]:
    """Read the annotations of the parameters that a model is shown, and of the result; strings are
    read where the function was written, closure included.
    """
    function = getattr(target, "__func__", target)
    function = function.__init__ if inspect.isclass(function) else inspect.unwrap(function)
    used = {*shown, "return"}
    read = types.SimpleNamespace(
        __annotations__={key: each for key, each in _written(function).items() if key in used},
        __globals__=getattr(function, "__globals__", {}),
        __type_params__=getattr(function, "__type_params__", ()),
    )
    try:
        hints = typing.get_type_hints(read, localns=_closure(function), include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        message = f'the annotations of the tool "{name}" cannot be read: {error}.'
        raise ToolError("AX657", message, "Import the types, or define them first.") from error
    return {name: _readable(hint) for name, hint in hints.items()}


def _written(function: Callable[..., object]) -> dict[str, Any]:
    """Return the annotations as they are written; what they name need not exist."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(function, format=Format.FORWARDREF)
    return inspect.get_annotations(function)


def _closure(function: object) -> dict[str, object]:
    """Return what a function sees of the functions around it, as far as it is there already."""
    found: dict[str, object] = {}
    if inspect.isfunction(function):
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            with contextlib.suppress(ValueError):
                found[name] = cell.cell_contents
    return found


def _annotated(hint: Any, notes: tuple[object, ...]) -> Any:
    """Return ``Annotated`` of a hint and notes that are known only at run time."""
    annotated: Any = typing.Annotated
    return annotated[(hint, *notes)]


def _readable(hint: Any, seen: tuple[object, ...] = ()) -> Any:
    """Return ``hint`` with typed dicts that pydantic reads: not ``typing``'s before Python 3.12."""
    if typing.is_typeddict(hint):
        if sys.version_info >= (3, 12) or hint in seen or type(hint).__module__ != "typing":
            return hint
        hints = typing.get_type_hints(hint, include_extras=True)
        needed = cast("frozenset[str]", hint.__required_keys__)
        inner = {key: _readable(each, (*seen, hint)) for key, each in hints.items()}
        fields = {
            key: each if key in needed else typing_extensions.NotRequired[each]
            for key, each in inner.items()
        }
        # made at run time
        return typing_extensions.TypedDict(hint.__name__, fields)  # type: ignore[operator]
    parts = typing.get_args(hint)
    if not parts or typing.get_origin(hint) in (typing.Literal, Callable):
        return hint
    if typing.get_origin(hint) is typing.Annotated:
        return _annotated(_readable(parts[0], seen), parts[1:])
    new = tuple(_readable(part, seen) for part in parts)
    if new == parts:
        return hint
    if isinstance(hint, types.UnionType):
        return functools.reduce(lambda one, other: one | other, new)
    return hint.copy_with(new) if hasattr(hint, "copy_with") else typing.get_origin(hint)[new]


def adapter_of(hint: object) -> TypeAdapter[Any]:
    """Return a validator of whatever an annotation can be.

    Raises: PydanticUserError: values of this type cannot be validated.
    """
    return TypeAdapter(_readable(hint))


def _field(parameter: inspect.Parameter, hint: Any, description: str) -> tuple[Any, Any]:
    """Make a model's field of a parameter, described by ``Annotated[int, "text"]`` or docstring."""
    inner = typing.get_args(hint) if typing.get_origin(hint) is typing.Annotated else ()
    texts = [each for each in inner[1:] if isinstance(each, str)]
    described_already = any(isinstance(each, FieldInfo) and each.description for each in inner[1:])
    if inner and texts:
        rest = tuple(each for each in inner[1:] if not isinstance(each, str))
        hint = _annotated(inner[0], rest) if rest else inner[0]
    settings: dict[str, Any] = {"alias": parameter.name}
    if texts or (description and not described_already):
        settings["description"] = texts[0] if texts else description
    default: Any = ... if parameter.default is parameter.empty else parameter.default
    if isinstance(default, FieldInfo):
        return hint, default
    from pydantic import Field

    return hint, Field(default, **settings)


class _Validator:
    """Arguments as a model gave them → as the function takes them."""

    def __init__(self, model: type[BaseModel], parameters: Mapping[str, inspect.Parameter]) -> None:
        self._model = model
        self._parameters = [
            (f"p{number}", p) for number, p in enumerate(parameters.values()) if p.name != CONTEXT
        ]

    def __call__(
        self, arguments: Mapping[str, object]
    ) -> tuple[Sequence[object], Mapping[str, object]]:
        try:
            made = self._model.model_validate(dict(arguments), by_alias=True)
        except ValidationError as error:
            raise Refused(validation_text(error)) from error
        positions: list[object] = []
        named: dict[str, object] = {}
        for name, parameter in self._parameters:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positions.append(getattr(made, name))
            elif name in made.model_fields_set:
                named[parameter.name] = getattr(made, name)
        return positions, named


async def tools_of(given: Sequence[Any], ctx: object = None) -> list[Tool]:
    """Return the tools of those that are toolsets, for a firing."""
    found: list[Tool] = []
    for each in given:
        if is_toolset(each):
            ask: Callable[..., Any] = each.tools
            tools = await (ask(ctx=ctx) if _asks_for_ctx(getattr(ask, "__func__", ask)) else ask())
            found += [tool_of(tool) for tool in tools]
    return found


@functools.lru_cache(maxsize=256)
def _asks_for_ctx(function: Callable[..., object]) -> bool:
    return CONTEXT in signature_of(function).parameters
