"""Laws of the warning about keys that stand in files."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest
import yaml

from axil_files import Document, load
from axil_files.keys import literal_keys

REPOSITORY = Path(__file__).parents[3]
LITERAL = {
    "a maker's key": {"api_key": "sk-proj-Ab3dEf6hIj9kLm"},
    "a word of one's own": {"api_key": "correcthorsebattery"},
    "a key in words": {"instructions": "Use ghp_0123456789abcdefABCD to log in."},
    "a key in a list": {"args": ["--key", "AKIAABCDEFGHIJKLMNOP"]},
    "a token": {"token": "0a1b2c3d4e5f"},
    "a password": {"db_password": "hunter2hunter2"},
    "a header": {"headers": {"Authorization": "Bearer 0a1b2c3d4e5f"}},
    "another header": {"headers": {"X-Api-Key": "0a1b2c3d4e5f"}},
    "a cookie": {"headers": {"Cookie": "session=0a1b2c3d4e5f"}},
    "an address": {"base_url": "https://me:0a1b2c3d4e5f@host.example/v1"},
    "a store": {"dsn": "postgresql://me:0a1b2c3d4e5f@db.example/name"},
    "a private key": {"pem": "-----BEGIN RSA PRIVATE KEY-----\nabc"},
    "a token of a service": {"x": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefgh"},
}
FINE = {
    "a variable": {"api_key": "${API_KEY}", "dsn": "postgresql://me:${PW}@db.example/name"},
    "a part": {"headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "translators"}},
    "a reference": {"api_key": {"env": "OPENAI_API_KEY"}},
    "the name of a variable": {"token_env": "MY_TOKEN", "api_key": "OPENAI_API_KEY"},
    "none": {"api_key": "none", "token": "", "password": "not-needed"},
    "a local server": {"api_key": "lm-studio", "dsn": "postgresql://me:password1@localhost/db"},
    "one that is meant": {"api_key": "<your key here>", "token": "your-token-here"},
    "words": {"keys": {"password": "the password of the user", "api_key": "its key"}},
    "a number": {"max_tokens": 100000000, "stop_token": "<|endoftext|>"},
    "names like keys": {"x": "sk-learn-and-friends", "y": "task-123456789012345", "z": "sk-…"},
    "an address": {"url": "https://host.example:8080/a@b", "mail": "ann@example.org"},
}


def document(data: object) -> Document:
    return Document(data=data, lines={}, name="flow.yaml")


@pytest.mark.parametrize("name", LITERAL)
def test_a_key_in_a_file_is_warned_of_and_not_shown(name):
    data = {"graph": {"nodes": [{"config": LITERAL[name]}]}}
    [found] = literal_keys(document(data))
    assert (found.id, found.severity) == ("AX178", "warning")
    assert "nodes[0].config" in found.where
    assert "${NAME}" in found.hint
    values = re.sub(r'"[^"]*":', "", json.dumps(LITERAL[name]))
    assert not any(each in str(found) for each in re.findall(r"[A-Za-z0-9]{10,}", values))


@pytest.mark.parametrize("name", FINE)
def test_what_is_no_key_is_not_warned_of(name):
    assert not list(literal_keys(document({"graph": {"nodes": [{"config": FINE[name]}]}})))


def test_no_example_and_no_page_has_a_key():
    folders = [REPOSITORY / each for each in ("examples", "docs", "contrib", "plugins", "core")]
    paths = [each for folder in folders for each in folder.rglob("*")]
    files = [each for each in paths if "tests" not in each.relative_to(REPOSITORY).parts]
    texts = [each for each in files if each.suffix in (".yaml", ".yml", ".json")]
    fences = re.compile(r"^( *)```(?:yaml|json)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
    found = {str(each): each.read_text("utf-8") for each in texts}
    for page in (each for each in files if each.suffix == ".md"):
        for at, fence in enumerate(fences.finditer(page.read_text("utf-8"))):
            found[f"{page}#{at}"] = fence[2]
    seen = 0
    for name, text in found.items():
        try:
            data = yaml.load(text, yaml.CSafeLoader)
        except yaml.YAMLError:
            continue  # a part of a file
        seen += isinstance(data, dict)
        is_flow = not name.endswith(".json") or (isinstance(data, dict) and "graph" in data)
        assert not is_flow or not list(literal_keys(document(data))), name
    assert seen > 100


def test_loading_a_file_says_it_at_once(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    file = Path(tmp_path, "flow.yaml")
    model = "{type: openai, name: m, base_url: 'https://host.example', api_key: 0a1b2c3d4e5f}"
    node = f"{{id: a, type: agent, config: {{model: {model}}}}}"
    file.write_text(f"graph:\n  nodes:\n    - {node}\n  start: [a]\n")
    load(file)
    assert "AX178" in caplog.text
    assert "flow.yaml:3" in caplog.text
    assert "0a1b2c3d4e5f" not in caplog.text
