"""Mistakes of users, and what is said of each: the place, the fact, and the advice.

Most are one edit of a workflow file that is fine, so that taking the edit back is the cure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FLOW = """version: 1
graph:
  start: [write]
  end: [review]
  nodes:
    - id: write
      type: agent
      config:
        model: {type: scripted, default: a text}
        instructions: Write.
    - id: review
      type: agent
      config: {model: {type: scripted, default: fine}}
  edges:
    - {from: write, to: review}
"""
CODE = """version: 1
graph:
  start: [shout]
  nodes:
    - {id: shout, type: python, config: {code: "print(input().upper())"}}
"""
PROGRAM = """from axil import RootGraph

graph = RootGraph("g")
graph.create_node(lambda inputs: {"text": inputs["text"]}, name="a")
graph.edge_from_entry("a", {"text": ""})
graph.edge_to_exit("a", {"text": ""})
graph.build()
"""
BROKEN_PLUGIN = {
    "acme_broken-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-broken\nVersion: 1\n",
    "acme_broken-1.dist-info/entry_points.txt": "[axil.nodes]\nacme.broken = no_such_module:X\n",
}
CLAIMING_PLUGIN = {
    "other_agent-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: other-agent\nVersion: 1\n",
    "other_agent-1.dist-info/entry_points.txt": "[axil.nodes]\nagent = other:X\n",
}
CASES = "cases:\n  - {name: one, inputs: hello, expected: a text}\n"
TABLE = "question,tone\na,b\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mistake:
    """A command, the files that it reads, and what it says."""

    line: str
    says: tuple[str, ...]
    """The place, the fact, and the advice."""
    files: Mapping[str, str | bytes] = field(default_factory=dict[str, str | bytes])
    code: int = 2
    first: str = ""
    """The command before it."""
    mended: str = ""
    """The command that works in its place."""


MISTAKES: dict[str, Mistake] = {}
"""By what was done wrong."""


def edit(name: str, old: str, new: str, *says: str, line: str = "check", code: int = 2) -> None:
    """Add a slip in a file: ``new`` in the place of ``old``."""
    text = next(base for base in (FLOW, CODE) if old in base).replace(old, new, 1)
    whole = {"check": "axil check flow.yaml", "run": "axil run flow.yaml --input x"}.get(line, line)
    MISTAKES[name] = Mistake(files={"flow.yaml": text}, line=whole, says=says, code=code)


def typed(
    name: str,
    line: str,
    *says: str,
    files: Mapping[str, str | bytes] | None = None,
    code: int = 2,
    first: str = "",
    mended: str = "",
) -> None:
    """Add a slip on the command line, beside a file that is fine."""
    MISTAKES[name] = Mistake(
        files={"flow.yaml": FLOW, **(files or {})},
        line=line,
        says=says,
        code=code,
        first=first,
        mended=mended,
    )


def program(name: str, text: str, *says: str) -> None:
    """Add a slip in a program."""
    MISTAKES[name] = Mistake(files={"prog.py": text}, line="python prog.py", says=says, code=1)


RUN = "axil run flow.yaml --input x"
MODEL = "{type: scripted, default: a text}"
AGENT = "type: agent\n      config: {model: {type: scripted, default: fine}}"


def service(name: str, path: str, *says: str) -> None:
    """Add an answer of a service at ``path`` of the server that the test has."""
    more = "api_key: '${KEY}', retry: {max_tries: 1}"
    model = f"{{type: openai, name: large, {more}, base_url: 'http://127.0.0.1:PORT/{path}'}}"
    line = "axil run flow.yaml --input x --set KEY=wrong-key"
    edit(name, MODEL, model, 'node "write"', *says, line=line, code=1)
