"""Tests of redaction: what is known as a secret is found by its value."""

from __future__ import annotations

import json
import secrets
from urllib.parse import quote

import pytest

from axil.plugin import (
    FromEnvironment,
    Grants,
    Secret,
    granted,
    keep_secret,
    redact_data,
    redact_text,
    without_secrets,
)


@pytest.fixture
def value() -> str:
    return f'canary "{secrets.token_hex(8)}/ä'


def test_a_value_is_found_in_longer_texts_and_as_json_and_urls_write_it(value):
    keep_secret(value, "${KEY}")
    for said in (value, f"Bearer {value}.", json.dumps({"a": value}), quote(value, safe="")):
        assert "canary" not in without_secrets(said)
        assert "${KEY}" in without_secrets({"a": [(said,)]})["a"][0][0]


def test_the_password_of_a_url_and_the_token_of_a_header_are_secrets_by_themselves():
    word, token = f"canary-{secrets.token_hex(8)}+/", f"canary-{secrets.token_hex(8)}"
    keep_secret(f"postgresql://me:{quote(word, safe='')}@db.example.org/name")
    keep_secret(f"Bearer {token}")
    said = f"{word} {quote(word, safe='')} {token} db.example.org"
    assert without_secrets(said) == "[redacted] [redacted] [redacted] db.example.org"


@pytest.mark.parametrize("value", ["", "short-7", "/folder/of/someone", 'a "b" c'])
def test_ordinary_words_and_paths_are_not_looked_for(value):
    keep_secret(value)
    assert without_secrets(f"It is {value}.") == f"It is {value}."


def test_the_longest_secret_is_replaced_first(value):
    keep_secret(value, "${SHORT}")
    keep_secret(f"{value}-and-more", "${LONG}")
    assert without_secrets(f"{value}-and-more {value}") == "${LONG} ${SHORT}"


def test_traces_are_without_known_secrets(value):
    keep_secret(value)
    assert redact_text(f"It is {value}.") == "It is [redacted]."
    assert redact_data({"said": value}) == {"said": "[redacted]"}


def test_secrets_of_a_file_are_known_when_they_are_given_and_when_they_are_looked_up(
    value, monkeypatch
):
    monkeypatch.setenv("OWN_KEY", f"{value}-variable")
    Secret(f"{value}-of-code")
    with granted(Grants.of(["env:OWN_KEY"])):
        Secret(f"{value}-written")
        Secret(FromEnvironment(f"Bearer {value}-filled", "Bearer ${FILL}"))
        Secret({"env": "OWN_KEY"}).resolve()
    assert without_secrets(f"{value}-of-code") == f"{value}-of-code"
    assert without_secrets(f"{value}-written") == "[redacted]"
    assert without_secrets(f"Bearer {value}-filled") == "Bearer ${FILL}"
    assert without_secrets(f"{value}-variable") == "${OWN_KEY}"
