"""Laws of DevAll's functions: each has a name here, and a model is shown DevAll's."""

from __future__ import annotations

import asyncio

import pytest

from axil.plugin import Registry
from axil_devall.functions import MODULES, TOOLS, expanded, function_tools, tools_of
from axil_devall.samples import get_city_num, get_weather


def test_every_function_of_every_module_is_a_tool_here():
    assert {name for names in MODULES.values() for name in names} <= set(TOOLS)
    assert len(expanded(f"{module}:All" for module in MODULES)) == 39


def test_functions_of_deep_research_are_shown_by_their_own_names_with_their_parameters():
    pytest.importorskip("axil_workspace")
    wanted = {
        "search_save_result": ["url", "title", "abs", "detail"],
        "search_high_light_key": ["url", "keys"],
        "report_create_chapter": ["title", "level", "content"],
        "report_reorder_chapters": ["new_order"],
        "report_export_pdf": [],
    }
    known = dict(function_tools(["deep_research:All"], Registry()))
    assert list(known) == list(MODULES["deep_research"])
    for name, parameters in wanted.items():
        (tool,) = asyncio.run(tools_of(known[name], None))
        assert list(tool.parameters["properties"]) == parameters


def test_the_weather_is_a_sample():
    number = get_city_num("Rome")["city_num"]
    assert get_weather(number) == {"city_num": number, "temperature": 15, "unit": "celsius"}
    assert get_weather(number, "fahrenheit")["temperature"] == 59


def test_a_function_of_ones_own_is_taken_before_that_of_its_name():
    def get_weather(city_num: int) -> str:
        """Give the weather."""
        return "rain"

    own = Registry()
    own.register("tools", "get_weather", get_weather, instead=True)
    ((name, tool),) = function_tools(["get_weather"], own)
    assert (name, asyncio.run(tool({"city_num": 1}))) == ("get_weather", "rain")
