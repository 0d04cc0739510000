"""Data classes whose methods are generated at their first use.

``dataclasses.dataclass`` compiles up to eight methods when a class is defined. That is most of what
the import of a module of data classes costs: 440 µs a class on CPython 3.11, and 40 µs without
them. A process that runs one small workflow defines 130 such classes, makes objects of a third,
and compares or prints hardly any.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls=None, /, *, init=True, repr=True, eq=True, frozen=False, slots=False, kw_only=False
    ):
        """Return a data class as ``dataclasses.dataclass`` does; its methods are generated at
        their first use.

        >>> @dataclass(frozen=True, slots=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(1), Point(1) == Point(1, 0)
        (Point(x=1, y=0), True)
        """
        options = {"init": init, "repr": repr, "eq": eq, "frozen": frozen, "slots": slots}

        def made(cls):
            if any(hasattr(base, "__dataclass_fields__") for base in cls.__mro__[1:]):
                return dataclasses.dataclass(cls, kw_only=kw_only, **options)
            written = {name for name, value in vars(cls).items() if value is not None}
            cls.__doc__ = cls.__doc__ or cls.__name__  # else the signature is inspected for it
            result = dataclasses.dataclass(cls, kw_only=kw_only, slots=slots, **_NO_METHODS)
            for option in ("init", "repr", "eq", "frozen"):
                setattr(result.__dataclass_params__, option, options[option])
            if eq and not frozen and "__hash__" not in vars(cls):
                result.__hash__ = None
            for name, needed in _NEEDS.items():
                if all(map(options.__getitem__, needed)) and name not in written:
                    setattr(result, name, _Ungenerated(result, name, options))
            return result

        return made if cls is None else made(cls)


_NO_METHODS: Final = {"init": False, "repr": False, "eq": False}
_NEEDS: Final = {
    "__init__": ("init",),
    "__repr__": ("repr",),
    "__eq__": ("eq",),
    "__hash__": ("eq", "frozen"),
    "__setattr__": ("frozen",),
    "__delattr__": ("frozen",),
    "__getstate__": ("frozen", "slots"),
    "__setstate__": ("frozen", "slots"),
}
"""Method → the options with which a data class has it."""


class _Ungenerated:
    """A method of a data class until it is looked up."""

    __slots__ = ("cls", "name", "options")

    def __init__(self, cls: type[Any], name: str, options: dict[str, bool]) -> None:
        self.cls, self.name, self.options = cls, name, options

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        cls, name = self.cls, self.name
        method: Any = (
            _init(cls, self.options["frozen"]) if name == "__init__" else self._copied(cls, name)
        )
        setattr(cls, name, method)
        return method.__get__(instance, owner)

    def _copied(self, cls: type[Any], name: str) -> Any:
        """Return the method as the standard library generates it, for a class of the same
        fields.
        """
        generated: Any = {option: self.options[option] for option in _NEEDS[name]}
        fields = [(each.name, each.type, each) for each in dataclasses.fields(cls)]
        twin = dataclasses.make_dataclass(
            cls.__name__, fields, namespace={"__doc__": cls.__doc__}, **(_NO_METHODS | generated)
        )
        return vars(twin)[name]


class _Made:
    """The default of a parameter whose field has a ``default_factory``."""

    def __repr__(self) -> str:
        return "<factory>"


def _init(cls: type[Any], frozen: bool) -> Any:
    """Return ``__init__``, compiled alone: the standard library compiles two methods more with
    that of a frozen class, which take twice as long.
    """
    scope: dict[str, Any] = {"_set": object.__setattr__, "_made": _Made()}
    parameters, lines = ["self"], list[str]()
    fields = sorted(dataclasses.fields(cls), key=lambda field: bool(field.kw_only))
    for each in fields:
        name, value, default = each.name, each.name, ""
        if each.default is not MISSING:
            default = f"=_default_{name}"
            scope[f"_default_{name}"] = each.default
        elif each.default_factory is not MISSING:
            default = "=_made"
            scope[f"_default_{name}"] = each.default_factory
            value = f"_default_{name}() if {name} is _made else {name}"
        if each.init:
            if each.kw_only and "*" not in parameters:
                parameters.append("*")
            parameters.append(name + default)
        elif default:
            value = f"_default_{name}" + "()" * (default == "=_made")
        else:
            continue
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    source = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"])
    exec(source, scope)  # noqa: S102 (names of fields, as in the standard library)
    made = scope["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {each.name: each.type for each in fields if each.init}
    made.__annotations__["return"] = None
    return made
