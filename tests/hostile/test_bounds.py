"""Totals: a hostile file uses less than 1 GB, and ends within its ``limits.seconds``."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.third,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no peaks of memory here"),
]

SECONDS = 1
LOADING = 20
"""For starting Python and reading a file, on a machine that does other things."""
MEMORY = 1 << 30
Config = dict[str, Any]
BIG = "x" * 100_000


def whole(*nodes: Config, edges: Any = None, **more: Any) -> Config:
    named = [{"id": f"n{i}", **node} for i, node in enumerate(nodes)]
    ways = [{"from": f"n{i}", "to": f"n{i + 1}"} for i in range(len(nodes) - 1)]
    graph = {"id": "g", "nodes": named, "start": ["n0"], "edges": ways if edges is None else edges}
    graph["end"] = [named[-1]["id"]]
    return {"graph": {**graph, "limits": {"seconds": SECONDS}}, **more}


def literal(text: str = "x") -> Config:
    return {"type": "literal", "config": {"content": text}}


def agent(**more: Any) -> Config:
    return {"type": "agent", "config": {"model": {"type": "scripted", "default": "x"}, **more}}


PASS: Config = {"type": "passthrough"}


def edge(**more: Any) -> list[Config]:
    return [{"from": "n0", "to": "n1", **more}]


def doubled(depth: int) -> Config:
    """Variables of which each holds the last one ten times."""
    made = {"A0": "x" * 10} | {f"A{i}": f"${{A{i - 1}}}" * 10 for i in range(1, depth)}
    return whole(literal(f"${{A{depth - 1}}}"), vars=made)


def aliases(merge: bool) -> str:
    lines = ["  x0: &a0 {k0: 1}" if merge else "  x0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 12):
        of = ", ".join([f"*a{i - 1}"] * 9)
        lines.append(f"  x{i}: &a{i} {{<<: [{of}], k{i}: 1}}" if merge else f"  x{i}: &a{i} [{of}]")
    return (
        "vars:\n"
        + "\n".join(lines)
        + "\ngraph: {id: g, start: [n0], nodes: [{id: n0, type: passthrough, config: {x: *a11}}]}\n"
    )


def nested(depth: int) -> Config:
    made: Any = PASS
    for _ in range(depth):
        made = {"type": "map", "config": {"body": made}}
    return whole(made)


def schema(depth: int) -> Config:
    made: Any = {"type": "string"}
    for _ in range(depth):
        made = {"anyOf": [made, made]}
    return whole(agent(output_schema=made))


def template(text: str) -> Config:
    return {"type": "template", "config": {"template": text}}


def edges_that_make(count: int) -> Config:
    """Many small outputs, each of which an edge turns into a large text for one node."""
    big = {"type": "write", "config": {"fields": {"big": "x" * 1_000_000}}}
    nodes = [{**literal(), "wrappers": [big]}, *[literal()] * count, PASS]
    made = [template(f"{i}" + "{state.big}" * 9) for i in range(count)]
    found = whole(*nodes, edges=[
        *[{"from": "n0", "to": f"n{i + 1}"} for i in range(count)],
        *[{"from": f"n{i + 1}", "to": f"n{count + 1}", "process": made[i]} for i in range(count)],
    ])  # fmt: skip
    found["graph"]["state"] = {"big": {"type": "str"}}
    return found


LOOPED = [{"from": "n0", "to": "n1"}, {"from": "n1", "to": "n0"}]
REGEX = (
    "(a+)+$",
    "(a|aa)+$",
    "(a|a?)+$",
    "(.*a){25}$",
    "(?:a{0,99}){0,99}$",
    "((a*)*)*$",
    "(x+x+)+y",
)
FILES: dict[str, Config | str] = {
    "variables that double": doubled(9),
    "variables that double deeper": doubled(30),
    "aliases": aliases(False),
    "merges": aliases(True),
    "maps in maps": nested(200),
    "maps in maps deeper": json.dumps(whole({"type": "map", "config": {"body": "X"}})).replace(
        '"X"', '{"type": "map", "config": {"body": ' * 5_000 + "1" + "}}" * 5_000
    ),
    "a schema that doubles": schema(12),
    "a cycle without end": whole(PASS, PASS, edges=LOOPED),
    "a cycle that appends": whole(literal(BIG), PASS, edges=LOOPED),
    "a cycle with a template that doubles": whole(
        PASS,
        PASS,
        edges=[
            {
                "from": "n0",
                "to": "n1",
                "process": {"type": "template", "config": {"template": "{message}" * 50}},
            },
            LOOPED[1],
        ],
    ),
    "edges that each make a text": edges_that_make(250),
    "a cycle that keeps what it makes": whole(
        literal("x" * 1_000_000),
        PASS,
        edges=[{"from": "n0", "to": "n1", "process": template("{text}" * 9)}, LOOPED[1]],
    ),
    "a template of itself": whole({"use": "a"}, templates={"a": {"use": "b"}, "b": {"use": "a"}}),
    "thousands of nodes": whole(*[PASS] * 5_000),
    "edges between all": whole(
        *[PASS] * 150,
        edges=[{"from": f"n{i}", "to": f"n{j}"} for i in range(150) for j in range(i + 1, 150)],
    ),
    "a long number": json.dumps(whole({**PASS, "config": {"x": "X"}})).replace(
        '"X"', "9" * 400_000
    ),
    "a large exponent": json.dumps(whole(PASS)).replace('"n0"}', '"n0", "timeout": 1e99999}'),
    "brackets": "[" * 500_000,
    "mappings of YAML": "a: " * 100_000,
    "flow of YAML": "{a: " * 50_000,
    "keys of TOML": "a" + ".a" * 100_000 + " = 1",
    "an include of itself": whole(
        {"type": "subgraph", "config": {"type": "file", "config": {"path": "flow.json"}}}
    ),
    "a long instruction": whole(agent(instructions="{message}" * 100_000)),
    "many tools": whole(agent(tools=[{"type": "http_get"}] * 5_000)),
    "many wrappers": whole({"type": "passthrough", "wrappers": [{"type": "retry"}] * 20_000}),
    "many retries": whole(
        {"type": "passthrough", "wrappers": [{"type": "retry", "config": {"max_tries": 10**9}}]}
    ),
    "a long wait": whole(
        {"type": "passthrough", "wrappers": [{"type": "timeout", "config": {"seconds": 1e300}}]}
    ),
    "a split into letters": whole(
        literal("x," * 200_000),
        {
            "type": "map",
            "config": {"body": PASS, "split": {"type": "regex", "config": {"pattern": ""}}},
        },
    ),
    "a tree": whole(
        literal("x\n" * 100_000), {"type": "tree", "config": {"body": PASS, "split": "message"}}
    ),
    "endless names": whole({**PASS, "id": "x" * 5_000_000}),
    "documents": whole(agent(retrievers=[{"type": "keyword", "documents": [{"text": BIG}] * 40}])),
    "a reply as Python writes it": whole(
        agent(
            model={"type": "scripted", "default": "{'a': [" + "1," * 1_000_000 + "1]}"},
            formatters="lenient_json",
        )
    ),
    "documents of letters": whole(
        agent(retrievers=[{"type": "vector", "documents": [{"text": "a b " * 20_000}] * 20}])
    ),
}
for number, pattern in enumerate(REGEX):
    FILES[f"a condition {number}"] = whole(
        literal("a" * 40 + "!"), PASS,
        edges=edge(condition={"type": "regex", "config": {"pattern": pattern}}),
    )  # fmt: skip
    FILES[f"an extraction {number}"] = whole(
        literal("x" * 3_000 + "a" * 3_000 + "!"), PASS,
        edges=edge(process={"type": "regex_extract", "config": {"pattern": pattern}}),
    )  # fmt: skip


def held(seconds: int) -> None:
    """Give the program that is about to start its share."""
    resource.setrlimit(resource.RLIMIT_AS, (3 * MEMORY, 3 * MEMORY))  # of addresses, not of memory
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))


PROGRAM = """
import sys
from axil_cli.main import main
code = main(sys.argv[1:])
with open("/proc/self/status") as status:  # what rusage says counts the process that forked, too
    print("\\nPEAK", next(line.split()[1] for line in status if line.startswith("VmHWM")))
raise SystemExit(code)
"""


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_ends_in_time_and_in_memory(tmp_path: Path, name: str):
    given = FILES[name]
    text = given if isinstance(given, str) else json.dumps(given)
    is_yaml = "YAML" in name or not text.startswith(("{", "["))
    kind = "toml" if "TOML" in name else "yaml" if is_yaml else "json"
    file = tmp_path / f"flow.{kind}"
    file.write_text(text)
    command = [sys.executable, "-c", PROGRAM, "run", str(file), "--input", "x", "--journal", "off"]
    done = subprocess.run(
        [*command, "--no-progress"],
        capture_output=True,
        text=True,
        timeout=600,  # a bound for what waits; its share bounds what computes
        check=False,
        preexec_fn=lambda: held(LOADING + SECONDS),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
    )
    said = done.stdout + done.stderr
    assert "Traceback (most recent call last)" not in said, said[-2000:]
    assert done.returncode in (0, 1, 2, 3, 4), (done.returncode, said[-2000:])
    assert done.returncode == 0 or "AX" in said, said[-2000:]
    assert int(said.rpartition("PEAK ")[2].split()[0]) * 1024 < MEMORY
    assert {each.name for each in tmp_path.iterdir()} <= {file.name, ".axil"}
