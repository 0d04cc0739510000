"""YAML files: plain data with its lines; everything that is not data, or too much of it, is refused
where it stands.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc
from importlib.metadata import entry_points
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from axil import SpecError
from axil_files import LoadOptions, parse_yaml, spec_from_document, yaml_loader as loader


@pytest.fixture(autouse=True, params=["libyaml", "pure"])
def either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with both of PyYAML's parsers: which one is there is not ours to say."""
    if request.param == "pure":
        monkeypatch.setattr(loader, "LOADER", yaml.SafeLoader)
    elif not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without libyaml")


def data(text: str) -> Any:
    return parse_yaml(text, "flow.yaml").data


def refusal(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parse_yaml(text, "flow.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("On", True), ("TRUE", True), ("no", False), ("Off", False), ("false",
        False), ("y", "y"), ("N", "N"),
        ("null", None), ("~", None), ("", None), ("'null'", "null"), ('"yes"', "yes"), ("|\n  yes",
        "yes"),
        ("12", 12), ("-3", -3), ("+4", 4), ("0", 0), ("1.5", 1.5), ("-.5", -0.5), ("2.", 2.0),
        ("1e3", 1000.0), ("1.5E-3", 0.0015),
        ("010", "010"), ("0x1F", "0x1F"), ("0o7", "0o7"), ("1_000", "1_000"), ("1:30", "1:30"),
        ("190:20:30", "190:20:30"),
        ("2026-01-01", "2026-01-01"), ("0.0.0", "0.0.0"), ("e5", "e5"), (".", "."), ("-", [None]),
        ("=", "="), (".inf", float("inf")),
    ],
)  # fmt: skip
def test_scalars_are_what_people_mean(text, value):
    found = data(text)
    assert (found, type(found)) == (value, type(value))


def test_keys_are_text_whatever_they_look_like():
    assert data("no: 1\n1: 2\n2.5: 3\nnull: 4\n'': 5") == {
        "no": 1,
        "1": 2,
        "2.5": 3,
        "null": 4,
        "": 5,
    }


def test_lines_are_those_of_keys_and_items():
    document = parse_yaml(
        "a:\n  b: 1\n  c:\n  - x\n  -\n    d: 2\ne: |\n  text\n  text\nf: 3\n", "flow.yaml"
    )
    assert document.lines == {
        (): 1, ("a",): 1, ("a", "b"): 2, ("a", "c"): 3, ("a", "c", 0): 4, ("a", "c", 1): 6, ("a",
        "c", 1, "d"): 6, ("e",): 7, ("f",): 10,
    }  # fmt: skip


def test_an_empty_file_holds_nothing():
    assert data("# only a comment\n") is None


def test_aliases_and_merge_keys_are_written_out():
    text = (
        "base: &base {a: 1, b: [x]}\nmore: &more {b: 2, c: 3}\nuse: *base\nmerged: {<<: "
        "[*base, "
        "*more], a: 9}\n'<<': text\n"
    )
    assert data(text) == {
        "base": {"a": 1, "b": ["x"]}, "more": {"b": 2, "c": 3}, "use": {"a": 1, "b": ["x"]},
        "merged": {"b": ["x"], "c": 3, "a": 9}, "<<": "text",
    }  # fmt: skip


# 1e3 is a number here; PyYAML, which wants a point in it, writes such a text without quotes
TEXT = st.text().filter(lambda text: not re.fullmatch(r"[-+]?[0-9]+[eE][-+]?[0-9]+", text))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN)
def test_what_pyyaml_writes_is_read_back(value: Any):
    # with allow_unicode, PyYAML writes "\x85" in a way that nobody reads back
    for flow in (None, False, True):
        assert data(yaml.safe_dump(value, default_flow_style=flow)) == value


@given(st.text("ab:-[]{}&*!|>'\"#,?%@ \n0.\t", max_size=40))
def test_any_text_is_read_or_refused_with_its_line(text: str):
    try:
        assert parse_yaml(text, "flow.yaml") is not None
    except SpecError as error:
        where = error.problems[0].where  # either outcome is right
    else:
        where = "flow.yaml:1"
    assert where.startswith("flow.yaml")


LAUGHS = "l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"l{i}: &l{i} [{','.join([f'*l{i - 1}'] * 10)}]\n" for i in range(1, 30)
)  # fmt: skip
MERGES = "m0: &m0 {a: [1,2,3,4,5,6,7,8,9]}\n" + "".join(
    (f"m{i}: &m{i} {{<<: [{','.join([f'*m{i - 1}'] * 10)}], k{i}: {{<<: "
f"*m{i - 1}}}}}\n") for i in range(1, 30)
)  # fmt: skip
QUADRATIC = "a: &a [" + "x," * 4000 + "]\nb: [" + "*a," * 4000 + "]\n"
LONG_TEXT = "a: &a " + "x" * 500_000 + "\nb: [" + "*a," * 4000 + "]\n"
MAPPINGS = (
    "a: &a {b: &b {c: &c {d: &d {e: 1}}}}\n"
    + "x: {"
    + ",".join(f"k{i}: *a" for i in range(5000))
    + "}\n"
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            LAUGHS,
            "AX144 flow.yaml:4: holds more than 10000 values, aliases counted where they are used.",
        ),
        (MERGES, "AX144 flow.yaml:4"),
        (QUADRATIC, "AX144 flow.yaml:2"),
        (LONG_TEXT, "AX144 flow.yaml:2"),
        (MAPPINGS, "AX144 flow.yaml:2"),
        ("[" * 10_000, "AX110 flow.yaml:1: nested deeper than 64 levels."),
        ("{a: " * 10_000, "AX110 flow.yaml:1"),
        ("- " * 10_000, "AX110 flow.yaml:1"),
        ("\n".join(" " * i + "a:" for i in range(500)), "AX110 flow.yaml:66"),
        ("a: &a [*a]", "AX145 flow.yaml:1: &a would contain itself."),
        ("a: &a {b: {<<: *a}}", "AX145 flow.yaml:1: &a would contain itself."),
        ("x" * ((1 << 23) + 1), "AX144 flow.yaml: larger than 8388608 characters."),
    ],
)
def test_bombs_are_refused_before_they_cost_anything(text, problem, monkeypatch):
    """Cost: no event is read behind the refused one, and nothing that was refused is built."""
    read = 0
    original = loader._Builder._next

    def counted(self: Any) -> Any:
        nonlocal read
        read += 1
        return original(self)

    monkeypatch.setattr(loader._Builder, "_next", counted)
    tracemalloc.start()
    try:
        assert refusal(text).startswith(problem)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read <= 10_100
    assert peak < 50e6


def test_a_long_file_without_aliases_is_no_bomb(monkeypatch):
    monkeypatch.setattr("axil_files.yaml_loader.MAX_VALUES", 20_000)
    assert len(data("- x\n" * 19_000)) == 19_000
    assert refusal("- x\n" * 21_000).startswith(
        "AX144 flow.yaml:20000: holds more than 20000 values."
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", 'AX145 flow.yaml:3: the key "a" occurs twice. Remove one.'),
        ("{1: a, '1': b}", 'AX145 flow.yaml:1: the key "1" occurs twice.'),
        ("<<: {a: 1}\n<<: {b: 1}\n", 'AX145 flow.yaml:2: the key "<<" occurs twice.'),
        (
            "a:\n  b: !!python/object/apply:os.system ['x']\n",
            "AX145 flow.yaml:2: the tag tag:yaml.org,2002:python/object/apply:os.system",
        ),
        (
            "a: !!str 1",
            "AX145 flow.yaml:1: the tag tag:yaml.org,2002:str is refused: a workflow file is data.",
        ),
        ("a: !x 1", "AX145 flow.yaml:1: the tag !x is refused"),
        ("!!set {a, b}", "AX145 flow.yaml:1"),
        ("a: !\n  b", "AX145 flow.yaml:1"),
        (
            "!!str a: 1",
            "AX145 flow.yaml:1: the key has a tag or an anchor, which keys cannot have.",
        ),
        ("&k a: 1", "AX145 flow.yaml:1: the key has a tag or an anchor, which keys cannot have."),
        ("%TAG ! tag:example.org,2000:\n---\na: 1\n", "AX145"),
        ("? [a]\n: 1\n", "AX145 flow.yaml:1: expected a text as the key."),
        ("a: &a x\n? *a\n: 1\n", "AX145 flow.yaml:2: expected a text as the key."),
        ("?\n: 2\n", "AX145 flow.yaml:1: a key is missing."),
        ("a: *b", "AX145 flow.yaml:1: the anchor &b is not defined before this line."),
        ("a: 1\n---\nb: 2\n", "AX145 flow.yaml:2: the file has a second document."),
        ("a: {<<: 3}", "AX145 flow.yaml:1: << is followed by a value that is not a mapping."),
        ("a: 1\nb: [1, 2\nc: 3\n", "AX140 flow.yaml:3"),
        ("a: 1\n\tb: 2\n", "AX140 flow.yaml:2"),
        ("a: 1\n  b: 2\n", "AX140 flow.yaml:2"),
        ("a: 1\nb: \x07\n", "AX140 flow.yaml:2"),
        ("a: " + "9" * 5000, "AX140 flow.yaml:1: a number of more than 400 digits."),
    ],
)
def test_what_is_not_data_is_refused_at_its_line(text, problem):
    assert refusal(text).startswith(problem)


@pytest.mark.usefixtures("every_component")
def test_problems_of_a_workflow_name_its_lines():
    text = """\
graph:
  id: g
  nodes:
    - id: writer
      type: literal
      config: {content: x}
    - id: reviewer
      type: passthrough
  edges:
    - from: writer
      to: reveiwer
  start: writer
  end: [reviewer]
"""
    with pytest.raises(SpecError) as caught:
        spec_from_document(parse_yaml(text, "flow.yaml"), LoadOptions(environment={}))
    assert (
        str(caught.value)
        == 'AX104 flow.yaml:11 edges[0].to: no node "reveiwer". Did you mean "reviewer"?'
    )


def test_the_loader_is_registered_for_both_suffixes():
    found = {
        entry.name: entry.value
        for entry in entry_points(group="axil.loaders")
        if entry.name.startswith("y")
    }
    assert found == dict.fromkeys(("yaml", "yml"), "axil_files.yaml_loader:parse_yaml")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            "graph:\n\tnodes: []\n",
            "Indent with spaces instead of tabs. It is in column 1.",
        ),
        ("graph:\n  description: a: b\n", 'Put a text that contains ": " into quotes'),
        ("graph:\n  description: @x\n", "Put the text into quotes. It is in column 16."),
        ("graph: {nodes: [{id: a}\n", "Put a comma between two items, or close the bracket."),
        ('graph:\n  description: "abc\n', "Close the quotes. It began in line 2."),
        ("graph:\n  a: 1\n b: 2\n", "Check the indentation"),
    ],
)
def test_text_that_is_not_yaml_gets_advice_in_plain_words(text, reported):
    with pytest.raises(SpecError) as caught:
        parse_yaml(text, "flow.yaml")
    assert reported in str(caught.value)


MERGES = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
from axil_files import parse_yaml
text = "graph:\\n  vars: {<<: [" + ",".join(f"{{k{i}: 1}}" for i in range(12_000)) + "]}\\n"
for _ in range(4):
    assert len(parse_yaml(text, "flow.yaml").data["graph"]["vars"]) == 12_000
print("read")
"""


def test_merging_many_mappings_takes_time_that_grows_with_their_number():
    done = subprocess.run(
        [sys.executable, "-c", MERGES], capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("read\n", "")


def test_of_merged_mappings_the_first_that_has_a_key_wins():
    text = "a: {<<: [{x: 1, y: 1}, {y: 2, z: 2}, {z: 3, w: 3}], w: 4}"
    assert data(text)["a"] == {"x": 1, "y": 1, "z": 2, "w": 4}
