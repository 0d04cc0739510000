"""Fixtures of this member's tests."""

from collections.abc import Iterator, Mapping

import pytest

from axil import ComponentRef
from axil.plugin import Policy, Registry, component_index, use_registry


class Anything:
    """A component that takes every setting."""

    def __init__(self, **settings: object) -> None:
        self.settings = settings


def keeper(context_window: int) -> ComponentRef:
    return ComponentRef(type="inbox", config={"window": context_window})


def stated(said: Mapping[str, str]) -> ComponentRef:
    return ComponentRef(type="expression", config={"expression": said["condition"]})


@pytest.fixture
def every_component() -> Iterator[None]:
    """Every component that files may name is there, whatever is installed."""
    made = Registry(Policy(), [])
    for key in component_index():
        kind, name = key.split(":")
        if kind in ("nodes", "conditions", "processors", "wrappers"):
            made.register(kind, name, Anything)
    made.register("shorthands", "context_window", lambda said: keeper(**said))
    made.register("shorthands", "condition", stated)
    made.register("shorthands", "is_majority_voting", lambda said: ComponentRef(type="vote"))
    with use_registry(made):
        yield
