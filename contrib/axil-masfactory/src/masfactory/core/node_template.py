"""``NodeTemplate``: a node's class with settings, of which nodes are made.

Settings of a node, from weak to strong: ``template_defaults``, ``template_defaults_for``, the
template's own, ``template_overrides``, ``template_overrides_for``; of equals the later one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from axil.plugin import signature_of
from axil_control import (
    ControlError,
    Factory,
    NodeTemplate as AxilTemplate,
    Shared,
    Strength,
    TemplateTarget,
    copied,
    scoped,
)
from masfactory.utils.path_filter import match_path_filter, parse_path_filter
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


@contextmanager
def _chosen(
    strength: Strength, selector: Selector, path_filter: str | None, settings: Mapping[str, Any]
) -> Generator[None]:
    path = None if path_filter is None else parse_path_filter(path_filter)

    def chooses(target: TemplateTarget) -> bool:
        return (path is None or match_path_filter(path, target.path)) and (
            selector.match_declaration(name=target.name, cls=target.kind)
        )

    with scoped(strength, settings, chooses):
        yield


@contextmanager
def template_defaults(**defaults: Any) -> Generator[None]:
    """Within it, nodes made of templates have these settings where nothing else says one."""
    with scoped("defaults", defaults):
        yield


@contextmanager
def template_overrides(**overrides: Any) -> Generator[None]:
    """Within it, nodes made of templates have these settings, whatever the template says."""
    with scoped("overrides", overrides):
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
    with _chosen("defaults_for", chosen, path_filter, defaults):
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
    with _chosen("overrides_for", chosen, path_filter, overrides):
        yield


class NodeTemplate(AxilTemplate[T]):
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
        super().__init__(node_cls, **default_kwargs)
        self.node_cls = node_cls

    def clone(self, **override_kwargs: Any) -> NodeTemplate[T]:
        """Derive a template, as calling it does."""
        return cast("NodeTemplate[T]", self(**override_kwargs))

    def render_config(self, **override_kwargs: Any) -> dict[str, Any]:
        """Give the settings of one node, outside any scope."""
        return {
            name: copied(value, name)
            for name, value in {**self.settings, **override_kwargs}.items()
        }

    def make(self, name: str, *args: Any, path: tuple[str, ...] = (), **settings: Any) -> T:
        """Make a node, by the rules that hold here.

        Raises: TypeError: a setting cannot be copied.
        """
        try:
            whole = self.settings_at(path, settings, taken=_taken(self.node_cls))
        except ControlError as error:
            raise TypeError(f"NodeTemplate: {error}") from error
        whole.pop("name", None)
        return cast("Any", self.node_cls)(name, *args, **whole)


def _taken(cls: type) -> Callable[[str], bool]:
    """Give a function that says whether a class takes a setting."""
    names: set[str] = set()
    for base in cls.__mro__:
        made = base.__dict__.get("__init__")
        if made is None:
            continue
        parameters = signature_of(made).parameters.values()
        names |= {each.name for each in parameters}
        if all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters):
            break
    return lambda name: name in names - {"self", "name"}
