"""``NodeTemplate``: a node's class with settings, of which nodes are made.

Settings of a node, from weak to strong: ``template_defaults``, ``template_defaults_for``, the
template's own, ``template_overrides``, ``template_overrides_for``; of equals the later one.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Generic, TypeVar, cast

from masfactory.utils.path_filter import PathFilter, match_path_filter, parse_path_filter
from masfactory.utils.selector import SelectionTarget, Selector, build_selector

__all__ = [
    "Factory",
    "NodeTemplate",
    "Shared",
    "template_defaults",
    "template_defaults_for",
    "template_overrides",
    "template_overrides_for",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Shared(Generic[T]):
    """A setting that all nodes of a template have in common."""

    value: T


@dataclass(frozen=True)
class Factory(Generic[T]):
    """A setting that is made anew for each node of a template."""

    factory: Callable[[], T]


@dataclass(frozen=True)
class _Rule:
    settings: Mapping[str, Any]
    selector: Selector | None = None
    path: PathFilter | None = None

    def holds(self, name: str, cls: type, path: tuple[str, ...]) -> bool:
        """Say whether the rule is for a node."""
        if self.path is not None and not match_path_filter(self.path, path):
            return False
        return self.selector is None or self.selector.match_declaration(name=name, cls=cls)


_defaults: ContextVar[tuple[_Rule, ...]] = ContextVar("masfactory_defaults", default=())
_defaults_for: ContextVar[tuple[_Rule, ...]] = ContextVar("masfactory_defaults_for", default=())
_overrides: ContextVar[tuple[_Rule, ...]] = ContextVar("masfactory_overrides", default=())
_overrides_for: ContextVar[tuple[_Rule, ...]] = ContextVar("masfactory_overrides_for", default=())


@contextmanager
def _within(rules: ContextVar[tuple[_Rule, ...]], rule: _Rule) -> Generator[None]:
    token = rules.set((*rules.get(), rule))
    try:
        yield
    finally:
        rules.reset(token)


@contextmanager
def template_defaults(**defaults: Any) -> Generator[None]:
    """Within it, nodes made of templates have these settings where nothing else says one."""
    with _within(_defaults, _Rule(defaults)):
        yield


@contextmanager
def template_overrides(**overrides: Any) -> Generator[None]:
    """Within it, nodes made of templates have these settings, whatever the template says."""
    with _within(_overrides, _Rule(overrides)):
        yield


@contextmanager
def template_defaults_for(
    *,
    selector: Selector | None = None,
    path_filter: str | None = None,
    type_filter: Any = None,
    name_filter: Any = None,
    predicate: Callable[[SelectionTarget], bool] | None = None,
    **defaults: Any,
) -> Generator[None]:
    """Do as ``template_defaults``, for the nodes that are chosen by type, name, path or predicate.

    A path is that of the names of the graphs around a node and its own: ``phase>writer``.
    """
    chosen = build_selector(
        selector, type_filter=type_filter, name_filter=name_filter, predicate=predicate
    )
    path = None if path_filter is None else parse_path_filter(path_filter)
    with _within(_defaults_for, _Rule(defaults, chosen, path)):
        yield


@contextmanager
def template_overrides_for(
    *,
    selector: Selector | None = None,
    path_filter: str | None = None,
    type_filter: Any = None,
    name_filter: Any = None,
    predicate: Callable[[SelectionTarget], bool] | None = None,
    **overrides: Any,
) -> Generator[None]:
    """Do as ``template_overrides``, for nodes that are chosen as by ``template_defaults_for``."""
    chosen = build_selector(
        selector, type_filter=type_filter, name_filter=name_filter, predicate=predicate
    )
    path = None if path_filter is None else parse_path_filter(path_filter)
    with _within(_overrides_for, _Rule(overrides, chosen, path)):
        yield


class NodeTemplate(Generic[T]):
    """A class of nodes and their settings.

    Calling it derives another template. Each node gets copies of lists, mappings and objects among
    the settings; models, functions, classes, templates and what is ``Shared`` are not copied.
    """

    def __init__(self, node_cls: type[T], **default_kwargs: Any) -> None:
        if not isinstance(cast("Any", node_cls), type):
            raise TypeError(
                f"NodeTemplate: found {node_cls!r:.60}, expected a class of nodes. "
                "Derive from a template by calling it."
            )
        self.node_cls = node_cls
        self.settings: dict[str, Any] = default_kwargs

    def __call__(self, **override_kwargs: Any) -> NodeTemplate[T]:
        return NodeTemplate(self.node_cls, **{**self.settings, **override_kwargs})

    def clone(self, **override_kwargs: Any) -> NodeTemplate[T]:
        """Derive a template, as calling it does."""
        return self(**override_kwargs)

    def render_config(self, **override_kwargs: Any) -> dict[str, Any]:
        """Give the settings of one node, outside any scope."""
        return {
            name: _copied(value, name)
            for name, value in {**self.settings, **override_kwargs}.items()
        }

    def make(self, name: str, *args: Any, path: tuple[str, ...] = (), **settings: Any) -> T:
        """Make a node, by the rules that hold here.

        Raises: TypeError: a setting cannot be copied.
        """
        own = {**self.settings, **settings}
        takes = _taken(self.node_cls)
        weak = [rule for rules in (_defaults, _defaults_for) for rule in rules.get()]
        strong = [rule for rules in (_overrides, _overrides_for) for rule in rules.get()]
        chosen: dict[str, Any] = {}
        for rule in weak:
            if rule.holds(name, self.node_cls, path):
                chosen |= {key: value for key, value in rule.settings.items() if takes(key)}
        chosen |= own
        for rule in strong:
            if rule.holds(name, self.node_cls, path):
                chosen |= {key: value for key, value in rule.settings.items() if takes(key)}
        chosen.pop("name", None)
        copies = {key: _copied(value, key) for key, value in chosen.items()}
        return cast("Any", self.node_cls)(name, *args, **copies)

    def __repr__(self) -> str:
        return f"NodeTemplate({self.node_cls.__name__}, {', '.join(self.settings)})"


def _taken(cls: type) -> Callable[[str], bool]:
    """Give a function that says whether a class takes a setting."""
    names: set[str] = set()
    for base in cls.__mro__:
        made = base.__dict__.get("__init__")
        if made is None:
            continue
        parameters = inspect.signature(made).parameters.values()
        names |= {each.name for each in parameters}
        if all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters):
            break
    return lambda name: name in names - {"self", "name"}


_KEPT = (str, bytes, int, float, bool, type(None), type, FunctionType, BuiltinFunctionType)


def _copied(value: Any, name: str) -> Any:
    if isinstance(value, Shared):
        return cast("Shared[Any]", value).value
    if isinstance(value, Factory):
        return cast("Factory[Any]", value).factory()
    if isinstance(value, (*_KEPT, MethodType, NodeTemplate)):
        return cast("Any", value)
    if getattr(value, "__node_template_scope__", "") == "shared" or _is_model(value):
        return value
    if type(value) is dict:
        return {key: _copied(each, name) for key, each in cast("dict[Any, Any]", value).items()}
    if type(value) in (list, tuple, set):
        several = cast("list[Any]", value)
        return type(several)(_copied(each, name) for each in several)
    try:
        return copy.deepcopy(value)
    except Exception as error:  # __deepcopy__ is anybody's code
        raise TypeError(
            f'NodeTemplate: the setting "{name}" holds a {type(value).__name__}, which cannot be '
            f"copied ({error}). Give Shared(…) for one object, or Factory(…) for one per node."
        ) from error


def _is_model(value: Any) -> bool:
    return callable(getattr(value, "reply", None)) or callable(getattr(value, "invoke", None))
