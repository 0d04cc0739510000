"""Mutants of workflow files: the same seed and number give the same text."""

from __future__ import annotations

import json
import random
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1e308, 10**30, "", "a", "${HOME}", "${", "\0", "\ud800", "../../x",
    "a" * 3_000, [], [[]], ["x"], {}, {"": {}}, {"type": "x"}, {"type": []}, "mod:attribute",
    "((a{99}){99}){99}", "${API_KEY}", "x${API_KEY} y", {"env": "API_KEY"}, "${WANTED}",
    {"env": "WANTED"}, "${OPENAI_API_KEY}", {"env": "OPENAI_API_KEY"}, "{message}${API_KEY}",
)  # fmt: skip


def mutant(text: str, seed: int, *, is_json: bool) -> str:
    """Return a text that differs from this one: as data where it is JSON, else in its letters."""
    chance = random.Random(seed)
    if is_json and chance.random() < 0.8:
        data = json.loads(text)
        for _ in range(chance.randint(1, 3)):
            data = _changed(data, chance)
        return json.dumps(data)
    for _ in range(chance.randint(1, 4)):
        at, many = chance.randrange(len(text) + 1), chance.randint(0, 12)
        piece = chance.choice(
            [
                "",
                "{",
                "}",
                "[",
                "]",
                ":",
                ",",
                '"',
                "\n",
                "\t",
                "- ",
                "&a ",
                "*a",
                "<<: ",
                "#",
                "\0",
            ]
        )
        text = text[:at] + piece * chance.randint(0, 3) + text[at + many :]
    return text


def _changed(data: Any, chance: random.Random) -> Any:
    """Change one place: another value, a part less, a part twice, or a part from elsewhere."""
    places = list(_places(data))
    if not places:
        return data
    holder, key = chance.choice(places)
    way = chance.random()
    if way < 0.5:
        holder[key] = json.loads(json.dumps(chance.choice(ODD)))
    elif way < 0.65:
        del holder[key]
    elif way < 0.8 and isinstance(holder, list):
        holder.append(json.loads(json.dumps(holder[key])))
    else:
        other, name = chance.choice(places)
        holder[key] = json.loads(json.dumps(other[name]))
    return data


def _places(data: Any) -> Any:
    if isinstance(data, (dict, list)):
        for key in list(data) if isinstance(data, dict) else range(len(data)):
            yield data, key
            yield from _places(data[key])
