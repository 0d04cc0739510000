"""``get_city_num`` and ``get_weather``: the sample functions of DevAll, with made-up data: one
number for every city, the same weather everywhere.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

_NUMBER: Final = 3701
_CELSIUS: Final = 15


def get_city_num(city: Annotated[str, "the city's name"]) -> dict[str, Any]:
    """Give the number of a city: a sample with made-up data."""
    return {"city": city, "city_num": _NUMBER}


def get_weather(
    city_num: Annotated[int, "the city's number"],
    unit: Annotated[str, "celsius or fahrenheit"] = "celsius",
) -> dict[str, Any]:
    """Give the weather in a city, by its number: a sample with made-up data.

    >>> get_weather(3701, "fahrenheit")
    {'city_num': 3701, 'temperature': 59.0, 'unit': 'fahrenheit'}
    """
    is_fahrenheit = unit.casefold() == "fahrenheit"
    return {
        "city_num": city_num,
        "temperature": _CELSIUS * 9 / 5 + 32 if is_fahrenheit else _CELSIUS,
        "unit": unit,
    }
