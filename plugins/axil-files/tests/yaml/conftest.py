"""Fixtures of this member's tests."""

from collections.abc import Iterator

import pytest

from axil.plugin import Policy, Registry, component_index, use_registry


class Anything:
    """A component that takes every setting."""

    def __init__(self, **settings: object) -> None:
        self.settings = settings


@pytest.fixture
def every_component() -> Iterator[None]:
    """Every component that files may name is there, whatever is installed."""
    made = Registry(Policy(), [])
    for key in component_index():
        kind, name = key.split(":")
        if kind in ("nodes", "conditions", "processors", "wrappers"):
            made.register(kind, name, Anything)
    with use_registry(made):
        yield
