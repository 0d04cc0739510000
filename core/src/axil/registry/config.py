"""Config: what users write, decoded strictly into what components declare; and secrets, which are
references.

A component class may have a ``Config``, a pydantic model; then it is made with one. Without it, it
is made with the config's entries as arguments. Making a component has no effects: it connects to
nothing and reads nothing.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from axil.errors import ConfigError, Problem, did_you_mean, format_names
from axil.registry.excerpts import format_value
from axil.registry.grants import Grants, current_grants, host_of, note_own
from axil.spec.graph import FromEnvironment, Place

if TYPE_CHECKING:
    from pydantic import BaseModel, SecretStr, ValidationError

    Model = TypeVar("Model", bound=BaseModel)
else:
    Model = TypeVar("Model")

T = TypeVar("T")
Keys = tuple[str | int, ...]


def decode_config(
    model: type[Model], raw: Any, where: str | Place = "", *, lenient: bool = False
) -> Model:
    """Return an instance of the pydantic class ``model`` from plain data; keys that the model does
    not have are errors.

    A model that sets ``extra="allow"`` keeps them; models inside it cannot (a field that takes
    anything is a ``dict``). A key that is null says nothing where the field has a default and does
    not take None: ``tooling: null`` is the default. ``lenient``: keys that the model does not have
    are logged as warnings and left out. Raises: ConfigError with everything that was found: AX130
    unknown key, AX131 a value that does not fit, AX132 a key that is missing, AX133 not a mapping.
    Values of secret fields are never shown. While a file's grants are in force (``Grants``), paths
    become whole, and AX137 is a path, AX138 a secret's variable that the file may not have.
    """
    from pydantic import ValidationError

    if isinstance(raw, model):
        return raw
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        raise ConfigError(
            Problem("AX133", str(where), f"expected a mapping, found {format_value(raw)}.")
        )
    stated = _said(model, cast("Mapping[str, Any]", raw))
    is_open = model.model_config.get("extra") == "allow"
    try:
        return _confined(model.model_validate(stated, extra=None if is_open else "forbid"), where)
    except ValidationError as error:
        found = list(misfits(model, raw, error))
    # outside the handler: the original error's text shows the input, secrets included
    problems = [
        Problem(_IDS[each.kind], _inside(where, each.keys), each.message, each.hint)
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


def _within(
    value: Any, grants: Grants, where: str | Place, keys: Keys, problems: list[Problem]
) -> Any:
    """Return a part of settings as it is granted; what is not is added to ``problems``."""
    if fields := _fields(cast("Any", type(value))):
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
) -> Any:
    changes: dict[str, Any] = {}
    for name, info in fields.items():
        given = getattr(value, name)
        stated: Any = info.json_schema_extra
        extra = cast("dict[str, Any]", stated) if isinstance(stated, dict) else {}
        at = (*keys, str(info.alias or name))
        if act := extra.get("x-axil-path"):
            new = _paths(given, act, grants, where, at, problems)
        elif extra.get("x-axil-usual"):
            continue
        elif extra.get("x-axil-host"):
            if isinstance(given, str) and (host := host_of(given)):
                note_own(f"net:{host}", _inside(where, at))
            continue
        else:
            new = _within(given, grants, where, at, problems)
        if new is not given:
            changes[name] = new
    return value.model_copy(update=changes) if changes else value


def _paths(
    value: Any, act: Any, grants: Grants, where: str | Place, keys: Keys, problems: list[Problem]
) -> Any:
    """Return one path, or several, as ``Grants.path`` does; an empty text is none."""
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        found = [_paths(v, act, grants, where, (*keys, i), problems) for i, v in enumerate(items)]
        return type(cast("Any", value))(found)
    if not isinstance(value, (str, os.PathLike)) or value == "":
        return cast("Any", value)
    given = cast("str | os.PathLike[str]", value)
    try:
        real = grants.path(os.fspath(given), act, _inside(where, keys))
    except ConfigError as error:
        problems.extend(error.problems)
        return given
    return real if isinstance(given, str) else type(given)(real)  # pyright: ignore[reportCallIssue]


_IDS: Final = {"unknown": "AX130", "missing": "AX132", "value": "AX131"}


def make_component(
    component: Callable[..., T],
    config: Any = None,
    where: str | Place = "",
    *,
    lenient: bool = False,
) -> T:
    """Return the lifecycle's first step, *new*: an instance of a component class, with its config
    decoded.

    A plain function is its own instance and takes no config. Raises: ConfigError; and what the
    constructor raises.
    """
    model = getattr(component, "Config", None)
    if model is not None:
        made = component(decode_config(model, config, where, lenient=lenient))
        if (grants := current_grants()) is not None:
            grants.note_later(made, str(where))
        return made
    if config is not None and not isinstance(config, Mapping):
        raise ConfigError(
            Problem("AX133", str(where), f"expected a mapping, found {format_value(config)}.")
        )
    arguments = dict(cast("Mapping[str, Any]", config or {}))
    if not isinstance(component, type):
        if arguments:
            name = getattr(component, "__name__", type(component).__name__)
            found = format_names(sorted(map(str, arguments)))
            raise ConfigError(
                Problem(
                    "AX130", str(where), f"{name} takes no config, found {found}.", "Remove it."
                )
            )
        if (grants := current_grants()) is not None:
            grants.note_later(component, str(where))
        return cast("T", component)
    problems = list(_misfits(component, arguments, where))
    if problems:
        raise ConfigError(problems)
    made = component(**arguments)
    if (grants := current_grants()) is not None:
        grants.note_later(made, str(where))
    return made


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


def _said(model: type[BaseModel], raw: Mapping[str, Any]) -> dict[str, Any]:
    silent = {
        key
        for name, info in model.model_fields.items()
        for key in (name, info.alias)
        if not info.is_required()
        and info.annotation is not Any
        and type(None) not in getattr(info.annotation, "__args__", ())
    }
    return {key: value for key, value in raw.items() if value is not None or key not in silent}


def _misfits(
    component: type, arguments: Mapping[str, Any], where: str | Place
) -> Iterator[Problem]:
    """Yield the arguments that the constructor does not take, and those that it lacks."""
    try:
        parameters = inspect.signature(component).parameters.values()
    except (ValueError, TypeError):
        # a class written in C says nothing; it will refuse what it does not take
        return
    named = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for key in arguments:
            if key not in named:
                hint = did_you_mean(key, named) or (
                    f"Known here: {format_names(sorted(named))}." if named else "It takes none."
                )
                yield Problem("AX130", _inside(where, (key,)), f'unknown key "{key}".', hint)
    for name, parameter in named.items():
        if parameter.default is parameter.empty and name not in arguments:
            yield Problem("AX132", str(where), f'the key "{name}" is missing.')


def _inside(where: str | Place, keys: Keys) -> str:
    if isinstance(where, Place):
        return str(where.at(*keys))
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return f"{where}{path}" if where else path.lstrip(".")


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """One thing in plain data that does not fit a pydantic model."""

    kind: Literal["unknown", "missing", "value"]
    """An unknown key, a key that is missing, or a value that does not fit."""
    keys: Keys
    """Where it is in the data; of a missing key, what lacks it."""
    message: str
    hint: str = ""
    key: str = ""
    """The unknown or missing key."""
    known: tuple[str, ...] = ()
    """The keys that could stand in place of an unknown one."""
    description: str = ""
    """What the model says of a missing key."""


def misfits(model: type[BaseModel], raw: Any, error: ValidationError) -> Iterator[Misfit]:
    """Yield what pydantic found wrong with ``raw``, in the words of messages, in the order found.

    There is one for each place: what the members of a union expect is said in one sentence, and
    where one of them fits the value but not what is in it, only of what is in it. Values of secret
    fields are never shown.
    """
    by_keys: dict[Keys, list[dict[str, Any]]] = {}
    for each in cast("list[dict[str, Any]]", error.errors(include_url=False)):
        by_keys.setdefault(_keys(raw, each), []).append(each)
    around = {keys[:length] for keys in by_keys for length in range(len(keys))}
    for keys, found in by_keys.items():
        first = found[0]
        if first["type"] == "extra_forbidden":
            key = str(keys[-1])
            known = tuple(_names(_field(model, keys[:-1])[0]))
            hint = did_you_mean(key, known) or (
                f"Known here: {format_names(sorted(known), 12)}." if known else ""
            )
            message = f'unknown key "{key}".'
            yield Misfit(
                kind="unknown", keys=keys, message=message, hint=hint, key=key, known=known
            )
        elif first["type"] == "missing" and keys and isinstance(keys[-1], int):
            message = f"expected more than {keys[-1]} items."
            yield Misfit(kind="value", keys=keys[:-1], message=message)
        elif first["type"] == "missing" and keys:
            yield Misfit(
                kind="missing",
                keys=keys[:-1],
                message=f'the key "{keys[-1]}" is missing.',
                key=str(keys[-1]),
                description=getattr(_field(model, keys)[1], "description", None) or "",
            )
        elif keys not in around:
            yield _misfit(model, found, keys)


def _misfit(model: type[BaseModel], found: list[dict[str, Any]], keys: Keys) -> Misfit:
    kind, info = _field(model, keys)
    first = found[0]
    if first["type"] in ("value_error", "assertion_error"):
        text = str(first["msg"]).split(", ", 1)[-1].rstrip(".")
        return Misfit(kind="value", keys=keys, message=f"{text}.")
    expected = " or ".join(dict.fromkeys(_expected(error, info) for error in found))
    value = first.get("input")
    if _is_secret(kind, keys):
        return Misfit(kind="value", keys=keys, message=f"expected {expected}.")
    contexts = [cast("dict[str, Any]", error.get("ctx") or {}) for error in found]
    allowed = re.findall(r"'([^']*)'", " ".join(str(each.get("expected", "")) for each in contexts))
    hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
    if "text" in expected and isinstance(value, (int, float)):
        hint = f'Write "{format_value(value)}".'
    message = f"expected {expected}, found {format_value(value)}."
    return Misfit(kind="value", keys=keys, message=message, hint=hint)


_TYPES = (
    ("int", "a whole number"),
    ("float", "a number"),
    ("decimal", "a number"),
    ("bool", "true or false"),
    ("string", "text"),
    ("list", "a list"),
    ("tuple", "a list"),
    ("set", "a list"),
    ("frozen_set", "a list"),
    ("dict", "a mapping"),
    ("mapping", "a mapping"),
    ("model", "a mapping"),
    ("none_required", "nothing"),
)
_BOUNDS = (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))


def _expected(error: Mapping[str, Any], info: Any) -> str:
    kind = str(error["type"])
    context = cast("Mapping[str, Any]", error.get("ctx") or {})
    if kind in ("literal_error", "enum"):
        words = str(context.get("expected", "")).replace("'", "").replace(" or ", ", ")
        return f"one of {words}" if "," in words else words
    if kind == "string_too_short" and context.get("min_length") == 1:
        return "text that is not empty"
    bounds = [
        f"{sign} {_number(_bound(info, name))}"
        for name, sign in _BOUNDS
        if _bound(info, name) is not None
    ]
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal") or (
        bounds and kind.startswith(("int", "float"))
    ):
        if not bounds:
            bounds = [
                f"{sign} {_number(context[name])}" for name, sign in _BOUNDS if name in context
            ]
        number = "a whole number" if kind.startswith("int") else "a number"
        return f"{_unit(info) or number} {' and '.join(bounds)}"
    if kind == "string_pattern_mismatch":
        return f"text that matches {context.get('pattern', '')}"
    for name, words in _TYPES:
        if kind in (
            f"{name}_type",
            f"{name}_parsing",
            f"{name}_from_float",
            f"{name}_attributes_type",
            name,
        ):
            return words
    text = str(error["msg"]).rstrip(".")
    return re.sub(r"^(?:Input|Value|String|List|\w+) should (?:be |have )?", "", text)


def _number(bound: Any) -> str:
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def _bound(info: Any, name: str) -> Any:
    return next(
        (
            getattr(m, name)
            for m in getattr(info, "metadata", ())
            if getattr(m, name, None) is not None
        ),
        None,
    )


def _unit(info: Any) -> str:
    extra = getattr(info, "json_schema_extra", None)
    return (
        str(cast("Mapping[str, Any]", extra).get("unit", "")) if isinstance(extra, Mapping) else ""
    )


def _keys(raw: Any, error: Mapping[str, Any]) -> Keys:
    """Return the part of an error's location that is in the data; pydantic adds the names of union
    members and validators.
    """
    keys: list[str | int] = []
    location = cast("Sequence[str | int]", error["loc"])
    for i, key in enumerate(location):
        if (isinstance(raw, Mapping) and key in raw) or (
            isinstance(raw, (list, tuple))
            and isinstance(key, int)
            and key < len(cast("list[Any]", raw))
        ):
            raw = cast("Any", raw)[key]
        elif error["type"] == "missing" and i == len(location) - 1:
            return (*keys, key)
        else:
            continue
        keys.append(key)
    return tuple(keys)


def _names(kind: Any) -> list[str]:
    names: list[str] = []
    for name, info in _fields(kind).items():
        names.append(str(info.validation_alias or info.alias or name))
    return names


def _fields(kind: Any) -> Mapping[str, Any]:
    """Return the fields of the first model in an annotation; empty: there is none."""
    if isinstance(kind, type) and hasattr(kind, "model_fields"):
        return cast("Mapping[str, Any]", cast("Any", kind).model_fields)
    inner = (_fields(part) for part in getattr(kind, "__args__", ()))
    return next((found for found in inner if found), dict[str, Any]())


def _field(model: Any, keys: Keys) -> tuple[Any, Any]:
    """Return the annotation and the field that keys lead to, as far as models go."""
    kind, info = model, None
    for key in keys:
        if isinstance(key, int):
            continue
        fields = _fields(kind)
        info = next((i for n, i in fields.items() if key in (n, i.alias, i.validation_alias)), None)
        if info is None:
            return (kind if fields else Any), None
        kind = info.annotation
    return kind, info


_PRIVATE = re.compile(r"secret|password|passwd|token$|api_?key|credential", re.IGNORECASE)


def is_private(name: str) -> bool:
    """Return whether the name of a setting or of a variable says that its value is a secret.

    >>> is_private("OPENAI_API_KEY"), is_private("rounds")
    (True, False)
    """
    return _PRIVATE.search(name) is not None


def _is_secret(kind: Any, keys: Keys) -> bool:
    return "Secret" in str(kind) or any(is_private(key) for key in keys if isinstance(key, str))


# --------------------------------------------------------------------------------------------------

_REFERENCE = re.compile(r"\$\{([A-Za-z0-9_]+)\}")


class Secret:
    """A secret in a component's config: a reference, resolved when it is needed, or a value given
    in Python.

    In files: ``{env: OPENAI_API_KEY}`` or ``${OPENAI_API_KEY}``. Neither text form shows a value.

    >>> Secret("${KEY}"), Secret({"env": "KEY"}), Secret("sk-123")
    (Secret(${KEY}), Secret(${KEY}), Secret(**********))
    """

    __slots__ = ("_grants", "_value", "name")

    def __init__(self, value: str | Mapping[str, str] | Secret | SecretStr) -> None:
        self.name = ""
        """The environment variable; empty: the value was given."""
        self._value: str | None = None
        self._grants = current_grants()
        if isinstance(value, Secret):
            self.name, self._value, self._grants = value.name, value._value, value._grants
        elif isinstance(value, Mapping):
            if set(value) != {"env"} or not value["env"]:
                raise ValueError("expected {env: NAME}, ${NAME} or text")
            self.name = value["env"]
        elif isinstance(value, str):
            reference = _REFERENCE.fullmatch(
                value.template if isinstance(value, FromEnvironment) else value
            )
            self.name = reference[1] if reference else ""
            self._value = (
                None if reference and not isinstance(value, FromEnvironment) else str.__str__(value)
            )
        elif hasattr(value, "get_secret_value"):
            self._value = value.get_secret_value()
        else:
            raise ValueError("expected {env: NAME}, ${NAME} or text")

    @property
    def is_known(self) -> bool:
        """True if the value was given, rather than the name of its variable only."""
        return self._value is not None

    def permit(self, where: str = "", grants: Grants | None = None) -> None:
        """Refuse a variable that the file which names it may not read.

        ``grants``: those in force; without them those of when the secret was made. Raises:
        ConfigError (AX138).
        """
        grants = grants or self._grants
        if grants is not None and self.name and self._value is None:
            message = f"the file would read the environment variable {self.name}."
            grants.need(f"env:{self.name}", message, where, later=True)

    def resolve(
        self,
        environment: Mapping[str, str] | None = None,
        where: str = "",
        *,
        permitted: bool = False,
    ) -> SecretStr:
        """Return the value. ``permitted``: the variable may be read whatever the file was granted.

        Raises: ConfigError: AX134 the environment variable is not set; AX138 the file that names it
        may not read it.
        """
        from pydantic import SecretStr

        if self._value is not None:
            return SecretStr(self._value)
        if not permitted and self._grants is not None:
            message = f"the file would read the environment variable {self.name}."
            self._grants.need(f"env:{self.name}", message, where)
        found = (os.environ if environment is None else environment).get(self.name)
        if found is None:
            raise ConfigError(
                Problem(
                    "AX134",
                    where,
                    f"the environment variable {self.name} is not set.",
                    f"Set {self.name}.",
                )
            )
        return SecretStr(found)

    def __repr__(self) -> str:
        return f"Secret({'${' + self.name + '}' if self.name else '**********'})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self.name, self._value) == (other.name, other._value)

    def __hash__(self) -> int:
        return hash((self.name, self._value))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from typing import Annotated

        from pydantic import PlainSerializer, PlainValidator

        def reference(secret: Secret) -> Any:
            return {"env": secret.name} if secret.name else "**********"

        return handler.generate_schema(
            Annotated[Any, PlainValidator(cls), PlainSerializer(reference, when_used="json")]
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        variable = {
            "type": "object",
            "properties": {"env": {"type": "string"}},
            "required": ["env"],
            "additionalProperties": False,
        }
        return {"anyOf": [variable, {"type": "string"}], "writeOnly": True, "x-axil-secret": True}


def resolve_secret(
    value: Any, environment: Mapping[str, str] | None = None, where: str = ""
) -> SecretStr:
    """Return the secret that ``value`` is or refers to: ``{env: NAME}``, ``${NAME}``, text, a
    ``Secret`` or a ``SecretStr``.

    Raises: ConfigError (AX134): the environment variable is not set, or ``value`` is none of these.
    """
    try:
        secret = Secret(value)
    except ValueError as error:
        raise ConfigError(Problem("AX134", where, f"{error}.")) from None
    return secret.resolve(environment, where)
