"""Components made from settings: with arguments, each mistake named."""

from __future__ import annotations

from typing import Any

import pytest

from axil.errors import ConfigError
from axil.registry.components import make_component


class Plain:
    def __init__(self, a: int, *, b: int = 2) -> None:
        self.a, self.b = a, b


def test_a_component_without_a_config_is_made_with_arguments():
    assert make_component(Plain, {"a": 1}).b == 2


def test_a_plain_function_is_its_own_instance():
    def function(seen: Any) -> bool:
        return True

    assert make_component(function) is make_component(function, {}) is function
    with pytest.raises(ConfigError, match="function takes no config, found a"):
        make_component(function, {"a": 1})


def test_arguments_that_do_not_fit_are_named():
    with pytest.raises(ConfigError) as caught:
        make_component(Plain, {"bb": 1}, "w")
    assert (
        str(caught.value)
        == 'AX130 w.bb: unknown key "bb". Did you mean "b"?\nAX132 w: the key "a" is missing.'
    )
    with pytest.raises(ConfigError, match="AX133"):
        make_component(Plain, ["a"])


def test_a_config_that_no_class_describes_is_an_error_of_the_class():
    class Unsaid:
        def __init__(self, config: Any) -> None:
            self.config = config

    with pytest.raises(ConfigError, match=r"AX132 w: .*Its class has no Config"):
        make_component(Unsaid, {}, "w")


def test_an_argument_that_a_base_class_does_not_take_is_named():
    class Handing(Plain):
        def __init__(self, c: int = 0, **options: Any) -> None:
            super().__init__(1, **options)

    with pytest.raises(ConfigError, match=r'^AX130 w\.bb: unknown key "bb"\. Did you mean "b"\?$'):
        make_component(Handing, {"bb": 1}, "w")
    with pytest.raises(ConfigError, match=r"Known here: a, b, c\."):
        make_component(Handing, {"else": 1}, "w")


def test_a_type_error_of_the_constructor_itself_is_not_a_config_error():
    class Broken:
        def __init__(self) -> None:
            len(3)  # type: ignore[arg-type]  # the point of the test

    with pytest.raises(TypeError, match="has no len"):
        make_component(Broken)
