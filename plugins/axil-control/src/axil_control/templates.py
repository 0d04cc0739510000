"""``NodeTemplate``: a kind of node with its settings, of which nodes of graphs are made.

A setting of a node comes from, weak to strong: ``template_defaults``, ``template_defaults_for``,
the template, the call that makes the node, ``template_overrides``, ``template_overrides_for``; of
equals the later one. The four are scopes: they hold for nodes made within them. A node gets only
the settings that its kind takes.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final, Generic, Literal, TypeVar, cast

from axil import Graph, GraphWarning
from axil.plugin import NodeOptions, signature_of, with_article
from axil_control.errors import ControlError
from axil_files import match_path

T = TypeVar("T")

Strength = Literal["defaults", "defaults_for", "overrides", "overrides_for"]
_STRENGTHS: Final[tuple[Strength, ...]] = (
    "defaults",
    "defaults_for",
    "overrides",
    "overrides_for",
)


@dataclass(frozen=True, slots=True)
class Shared(Generic[T]):
    """A setting that all nodes of a template have in common."""

    value: T


@dataclass(frozen=True, slots=True)
class Factory(Generic[T]):
    """A setting that is made anew for each node of a template."""

    factory: Callable[[], T]


@dataclass(frozen=True, slots=True)
class TemplateTarget:
    """A node that is to be made of a template."""

    path: tuple[str, ...]
    """The names of the graphs around it, and its own."""
    kind: Any

    @property
    def name(self) -> str:
        """Its name."""
        return self.path[-1] if self.path else ""


@dataclass(eq=False)
class _Rule:
    """Settings within a scope."""

    settings: Mapping[str, object]
    chooses: Callable[[TemplateTarget], bool] | None = None
    fitted: bool = False


_rules: ContextVar[Mapping[Strength, tuple[_Rule, ...]]] = ContextVar("axil_templates")
_making: ContextVar[tuple[str, ...]] = ContextVar("axil_template_path", default=())
"""The path of the node that is being made of a template."""


@contextmanager
def scoped(
    strength: Strength,
    settings: Mapping[str, object],
    chooses: Callable[[TemplateTarget], bool] | None = None,
) -> Generator[_Rule]:
    """Let settings hold for the nodes that are made of templates within the block."""
    known, rule = _rules.get({}), _Rule(settings, chooses)
    token = _rules.set({**known, strength: (*known.get(strength, ()), rule)})
    try:
        yield rule
    finally:
        _rules.reset(token)


@contextmanager
def template_defaults(**settings: object) -> Generator[None]:
    """Give settings to the nodes made of templates within the block, where nothing else does."""
    with scoped("defaults", settings):
        yield


@contextmanager
def template_overrides(**settings: object) -> Generator[None]:
    """Give settings to the nodes made of templates within the block, whatever templates say."""
    with scoped("overrides", settings):
        yield


@contextmanager
def template_defaults_for(
    path: str = "", /, *, kind: object = None, **settings: object
) -> Generator[None]:
    """Do as ``template_defaults``, for the nodes at a path or of a kind.

    Args:
        path: names of graphs and of the node with ``>`` between them; ``*`` is one name, ``**`` any
            number; it may fit a part of the whole path. ``team>writer`` is a writer in a team.
        kind: a class, whose subclasses count too, or what the template is of.
    """
    with _choosing("defaults_for", path, kind, settings):
        yield


@contextmanager
def template_overrides_for(
    path: str = "", /, *, kind: object = None, **settings: object
) -> Generator[None]:
    """Do as ``template_overrides``, for nodes chosen as by ``template_defaults_for``."""
    with _choosing("overrides_for", path, kind, settings):
        yield


@contextmanager
def _choosing(
    strength: Strength, path: str, kind: Any, settings: Mapping[str, Any]
) -> Generator[None]:
    """Let settings hold for chosen nodes; warn of a choice that no node fitted (AX172)."""
    match_path(path or "*", ())  # it raises where the path is none

    def chooses(target: TemplateTarget) -> bool:
        return (not path or match_path(path, target.path)) and (
            kind is None
            or target.kind is kind
            or (
                isinstance(kind, type)
                and isinstance(target.kind, type)
                and issubclass(target.kind, kind)
            )
        )

    with scoped(strength, settings, chooses) as rule:
        yield
    if not rule.fitted:
        what = " and ".join(
            part for part in (path and f'path "{path}"', kind and f"kind {_title(kind)}") if part
        )
        message = (
            f"AX172 template_{strength} for {what or 'all'} fits no node that was made of a "
            "template within it. Correct the path or the kind, or make the nodes inside."
        )
        warnings.warn(message, GraphWarning, stacklevel=5)


class NodeTemplate(Generic[T]):
    """A class, function or node type with settings; calling it derives another template.

    Given to ``create_node`` it makes a node. Each node gets copies of lists, mappings and objects
    among the settings; models, functions, classes, templates and what is ``Shared`` are not copied,
    and a ``Factory`` is called.
    """

    def __init__(self, kind: type[T] | Callable[..., object] | str, /, **settings: object) -> None:
        """Take what ``create_node`` takes: a class, a function, or the name of a node type.

        Raises: ControlError (AX615): an object of a node class was given, which can be one node.
        """
        given: object = kind
        if not (isinstance(given, (type, str)) or inspect.isroutine(given)):
            raise ControlError(
                "AX615",
                f"a template is made of {given!r:.60}, which is one object.",
                "Give its class and its settings; to derive from a template call it.",
            )
        self.kind: Any = kind
        self.settings: dict[str, Any] = settings

    def __call__(self, **settings: object) -> NodeTemplate[T]:
        return type(self)(self.kind, **{**self.settings, **settings})

    def __repr__(self) -> str:
        return f"NodeTemplate({_title(self.kind)}, {', '.join(self.settings)})"

    def create_in(self, graph: Graph, *args: object, name: str = "", **settings: object) -> T:
        """Make a node of a graph; see ``Graph.create_node``.

        Raises: ControlError (AX615): a setting cannot be copied.
        """
        path = (*path_of(graph), name)
        own = self.settings_at(path, settings, taken=_taken(self.kind))
        token = _making.set(path)
        try:
            return cast("Any", graph).create_node(self.kind, *args, name=name, **own)
        finally:
            _making.reset(token)

    def settings_at(
        self, path: tuple[str, ...], settings: Mapping[str, object], *, taken: Callable[[str], bool]
    ) -> dict[str, object]:
        """Return the settings of the node at a path, with copies of what is not shared.

        Args:
            settings: stronger than the template's own.
            taken: whether the node takes a setting; what rules say beside that is left out.
        """
        target, known = TemplateTarget(path, self.kind), _rules.get({})
        layers: dict[Strength, dict[str, object]] = {}
        for strength in _STRENGTHS:
            layer = layers[strength] = dict[str, object]()
            for rule in known.get(strength, ()):
                if rule.chooses is None or rule.chooses(target):
                    rule.fitted = True
                    layer |= {key: value for key, value in rule.settings.items() if taken(key)}
        whole = {
            **layers["defaults"],
            **layers["defaults_for"],
            **self.settings,
            **settings,
            **layers["overrides"],
            **layers["overrides_for"],
        }
        return {key: copied(value, key) for key, value in whole.items()}


def path_of(graph: Any) -> tuple[str, ...]:
    """Return the names of the graphs around a graph's nodes, the outermost one first."""
    names: list[str] = []
    while graph is not None:
        if graph.name:
            names.insert(0, graph.name)
        elif not getattr(graph, "owner", None):
            return (*_making.get(), *names)
        graph = getattr(graph, "owner", None)
    return tuple(names)


def _taken(kind: object) -> Callable[[str], bool]:
    """Return whether what is made of a kind takes a setting."""
    options = _options()
    if isinstance(kind, str):
        return lambda name: True
    if not isinstance(kind, type):
        return options.__contains__
    model: Any = getattr(kind, "Config", None)
    if hasattr(model, "model_fields"):
        return {*options, *model.model_fields}.__contains__
    made = (base.__dict__["__init__"] for base in kind.__mro__ if "__init__" in base.__dict__)
    return {*options, *_names(made)}.__contains__


@lru_cache
def _options() -> frozenset[str]:
    """Return the options of all nodes."""
    return frozenset(NodeOptions.__annotations__.keys() - {"name"})


def _names(functions: Iterable[Any]) -> set[str]:
    """Return the parameters of a function, and of the next one where it passes others on."""
    names: set[str] = set()
    for function in functions:
        parameters = signature_of(function).parameters.values()
        names |= {each.name for each in parameters}
        if all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters):
            break
    return names - {"self"}


_KEPT = (
    str,
    bytes,
    int,
    float,
    bool,
    type(None),
    type,
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    NodeTemplate,
)


def copied(value: object, name: str) -> object:
    """Return the value of a setting for one node.

    Raises: ControlError (AX615): it cannot be copied.
    """
    if isinstance(value, Shared):
        return cast("Shared[object]", value).value
    if isinstance(value, Factory):
        return cast("Factory[object]", value).factory()
    if isinstance(value, _KEPT):
        return cast("Any", value)
    if getattr(value, "__node_template_scope__", "") == "shared" or _is_model(value):
        return value
    if type(value) is dict:
        return {
            key: copied(each, name) for key, each in cast("dict[object, object]", value).items()
        }
    if type(value) in (list, tuple, set):
        several = cast("Sequence[object]", value)
        return cast("Any", type(several))(copied(each, name) for each in several)
    try:
        return copy.deepcopy(value)
    except Exception as error:  # __deepcopy__ is anybody's code
        raise ControlError(
            "AX615",
            f'the setting "{name}" of a template holds {with_article(type(value).__name__)}, '
            f"which cannot be copied: {error}.",
            "Give Shared(…) for one object, or Factory(…) for one per node.",
        ) from error


def _is_model(value: object) -> bool:
    return callable(getattr(value, "reply", None)) or callable(getattr(value, "invoke", None))


def _title(kind: object) -> str:
    return kind if isinstance(kind, str) else getattr(kind, "__name__", repr(kind))
