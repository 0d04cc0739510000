"""Config: strict, with everything wrong said at once, and never a secret in a message."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator

from axil import ConfigError
from axil.plugin import (
    FromEnvironment,
    Place,
    Secret,
    decode_config,
    make_component,
    resolve_secret,
)


class Inner(BaseModel):
    count: int = Field(1, ge=1, le=5)
    long_name: int = Field(1, alias="longName")


class Timer(BaseModel):
    max_duration: float = Field(60, gt=0, json_schema_extra={"unit": "seconds"})
    mode: Literal["fast", "slow"] = "fast"
    must: str
    inner: Inner | None = None
    items: list[Inner] = []
    either: int | list[int] = 1
    key: SecretStr | None = None
    secret: Secret | None = None
    token: int = 0
    odd: int = 1

    @field_validator("odd")
    @classmethod
    def is_odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("expected an odd number")
        return value


def reported(raw: Any, where: str | Place = "w") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        decode_config(Timer, raw, where)
    assert caught.value.__context__ is None  # pydantic's own text shows the input, secrets included
    return str(caught.value).splitlines()


def test_plain_data_becomes_the_model():
    made = decode_config(Timer, {"must": "x", "max_duration": 120, "items": [{"longName": 2}]})
    assert (made.max_duration, made.items[0].long_name) == (120.0, 2)
    assert decode_config(Timer, made) is made


def test_everything_wrong_is_said_at_once_with_its_path():
    raw = {
        "max_duration": "2m",
        "mode": "fsat",
        "items": [{"count": 9}, {"cuont": 1}],
        "inner": {"count": "q"},
        "either": "z",
        "mst": 1,
    }
    assert reported(raw) == [
        'AX131 w.max_duration: expected seconds > 0, found "2m".',
        'AX131 w.mode: expected one of fast, slow, found "fsat". Did you mean "fast"?',
        'AX132 w: the key "must" is missing.',
        'AX131 w.inner.count: expected a whole number ≥ 1 and ≤ 5, found "q".',
        "AX131 w.items[0].count: expected a number ≥ 1 and ≤ 5, found 9.",
        'AX130 w.items[1].cuont: unknown key "cuont". Did you mean "count"?',
        'AX131 w.either: expected a whole number or a list, found "z".',
        'AX130 w.mst: unknown key "mst". Did you mean "must"?',
    ]


def test_what_a_validator_says_is_passed_on():
    assert reported({"must": "x", "odd": 2}) == ["AX131 w.odd: expected an odd number."]


def test_containers_are_named_and_not_shown():
    assert reported({"must": "x", "inner": [1], "items": {"a": 1}, "max_duration": {"b": 2}}) == [
        "AX131 w.max_duration: expected seconds > 0, found a mapping.",
        "AX131 w.inner: expected a mapping, found a list.",
        "AX131 w.items: expected a list, found a mapping.",
    ]
    assert reported("text") == ['AX133 w: expected a mapping, found "text".']


def test_a_place_gives_each_problem_its_own_line():
    lines = {("graph", "nodes", 2): 20, ("graph", "nodes", 2, "config", "max_duration"): 27}
    place = Place(
        file="flow.yaml", line=20, path="nodes[2]", keys=("graph", "nodes", 2), lines=lines
    )
    assert reported({"must": "x", "max_duration": "2m", "mode": 1}, place.at("config"))[
        0
    ].startswith("AX131 flow.yaml:27 nodes[2].config.max_duration: ")


def test_null_is_the_default_where_a_field_does_not_take_it():
    made = decode_config(Timer, {"must": "x", "items": None, "inner": None, "mode": None})
    assert (made.items, made.inner, made.mode) == ([], None, "fast")
    assert reported({"must": None}) == ["AX131 w.must: expected text, found nothing."]


@pytest.mark.parametrize("field", ["key", "secret", "token"])
def test_secrets_never_appear_in_messages(field):
    for value in ({"env": "sk-canary", "x": "sk-canary"}, ["sk-canary"], "sk-canary"):
        raw = {field: value, "must": ["sk"]}
        assert "sk-canary" not in "".join(reported(raw))
    assert "sk-canary" not in "".join(
        reported({"mode": FromEnvironment("sk-canary", "${KEY}"), "must": "x"})
    )


def test_a_model_may_allow_other_keys():
    class Open(BaseModel, extra="allow"):
        a: int = 1

    assert decode_config(Open, {"b": 2}).model_extra == {"b": 2}


class Configured:
    class Config(BaseModel):
        n: int = 1

    def __init__(self, config: Config) -> None:
        self.config = config


def test_a_component_is_made_with_its_config():
    assert make_component(Configured, {"n": 3}).config.n == 3
    assert make_component(Configured).config.n == 1


def test_a_secret_is_a_reference_until_it_is_needed():
    for written in ("${KEY}", {"env": "KEY"}, FromEnvironment("sk-1", "${KEY}")):
        secret = decode_config(Timer, {"must": "x", "secret": written}).secret
        assert repr(secret) == "Secret(${KEY})"
        assert secret.resolve({"KEY": "sk-1"}).get_secret_value() == "sk-1"
    literal = decode_config(Timer, {"must": "x", "secret": "sk-2"})
    assert "sk-2" not in f"{literal!r} {literal.model_dump_json()}"
    assert literal.secret.resolve().get_secret_value() == "sk-2"
    assert decode_config(Timer, {"must": "x", "secret": {"env": "KEY"}}).model_dump(mode="json")[
        "secret"
    ] == {"env": "KEY"}
    assert Timer.model_json_schema()["properties"]["secret"]["anyOf"][0]["x-axil-secret"] is True


def test_a_secret_that_is_not_set_is_a_named_error():
    with pytest.raises(ConfigError, match="AX134 w: the environment variable KEY is not set"):
        resolve_secret({"env": "KEY"}, {}, "w")
    for wrong in ({"enf": "KEY"}, 5, None, {"env": ""}):
        with pytest.raises(ConfigError, match="AX134"):
            resolve_secret(wrong)
    assert resolve_secret(SecretStr("x")).get_secret_value() == "x"


def test_text_from_the_environment_behaves_like_text_and_hides_itself():
    text = FromEnvironment("sk-1", "${KEY}")
    assert (text, f"{text}", repr([text]), copy.deepcopy(text).template) == (
        "sk-1",
        "sk-1",
        "[${KEY}]",
        "${KEY}",
    )


def test_config_is_imported_without_pydantic():
    code = """
import sys, axil.settings.decoding, axil.settings.policy
assert not {'pydantic', 'importlib_metadata', 'yaml'} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_unknown_keys_that_are_forgiven_are_reported_and_left_out_at_any_depth(caplog):
    given = {
        "must": "x",
        "colour": 1,
        "inner": {"count": 2, "depth": 3},
        "items": [{"count": 1}, {"count": 2, "shape": 4}],
    }
    made = decode_config(Timer, given, "config", lenient=True)
    assert (made.inner, made.items) == (Inner(count=2), [Inner(count=1), Inner(count=2)])
    reported = [record.getMessage().partition(" is ignored")[0] for record in caplog.records]
    assert reported == [f'{where}: unknown key "{key}"' for where, key in NESTED]
    with pytest.raises(ConfigError) as caught:
        decode_config(Timer, given, "config")
    assert [problem.where for problem in caught.value.problems] == [where for where, _ in NESTED]


NESTED = [
    ("config.inner.depth", "depth"),
    ("config.items[1].shape", "shape"),
    ("config.colour", "colour"),
]


def test_forgiven_keys_hide_no_other_mistake():
    with pytest.raises(ConfigError) as caught:
        decode_config(Timer, {"must": 1, "colour": 1}, "config", lenient=True)
    assert [problem.where for problem in caught.value.problems] == ["config.must"]
