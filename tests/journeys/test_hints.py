"""Every hint is followed: what an error or a warning advises is done as printed, and cures it.

Each row is a command, what it prints, and how its advice is followed: the printed command is typed
(`TYPE`), or the printed options are added to the command (`ADD`). A hint in the sources that no row
follows has to be in `ELSEWHERE`, with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.house.checkout import nodes_of, text_of, tree_of
from tests.journeys.person import LONG, ROOT, Screen, Terminal

HINT = re.compile(
    r"\baxil (run|runs|check|show|batch|serve|view|worker|submit|plugins|lock|build|eval|tune|mcp"
    r"|draft|schema)\b|(?<![\w-])--[a-z][a-z-]+"
)
MAY_HOLD_HINT = re.compile(rf"{HINT.pattern}|axil ?[\"']")
"""As `HINT`, in a source, where a text may be written in parts."""
NAMED = re.compile(r"\s*(axil( \w+)*|--[\w-]*)=?\s*")
"""A command or an option alone, which advises nothing."""
FILES = {
    "brief.yaml": """
version: 1
graph:
  start: [write]
  nodes:
    - {id: write, type: agent, config: {model: {type: scripted, default: a text}}}
""",
    "priced.yaml": """
version: 1
graph:
  start: [write]
  limits: {pricing: {models: {scripted: {input: 1, output: 1}}}}
  nodes:
    - {id: write, type: agent, config: {model: {type: scripted, default: a text}}}
""",
    "ask.yaml": """
version: 1
graph:
  start: [ask]
  end: [said]
  nodes:
    - {id: ask, type: human, config: {description: "Go on?"}}
    - {id: said, type: literal, config: {content: It went on.}}
  edges: [{from: ask, to: said}]
""",
    "tool.yaml": """
version: 1
graph:
  start: [count]
  nodes:
    - id: count
      type: agent
      config: {model: {type: scripted, default: three}, tools: [count_words]}
""",
    "functions/tools.py": '''
def count_words(text: str) -> int:
    """Count words."""
    return len(text.split())
''',
    "condition.yaml": """
version: 1
graph:
  start: [a]
  end: [b]
  nodes: [{id: a, type: passthrough}, {id: b, type: passthrough}]
  edges: [{from: a, to: b, condition: "own:is_long"}]
""",
    "own.py": "def is_long(text):\n    return len(text) > 2\n",
    "code.yaml": """
version: 1
graph:
  start: [shout]
  nodes:
    - {id: shout, type: python, config: {code: "print(input().upper())"}}
""",
    "variable.yaml": """
version: 1
graph:
  start: [said]
  nodes: [{id: said, type: literal, config: {content: "Dear ${NAME_OF_A_FRIEND}"}}]
""",
    "fields.yaml": """
version: 1
graph:
  payload: fields
  nodes: [{id: greet, type: passthrough}]
  edges:
    - {from: "@entry", to: greet, keys: [name]}
    - {from: greet, to: "@exit"}
""",
    "endless.yaml": """
version: 1
graph:
  start: [a]
  nodes: [{id: a, type: passthrough}, {id: b, type: passthrough}]
  edges: [{from: a, to: b}, {from: b, to: a}]
""",
    "read.yaml": """
version: 1
graph:
  start: [look]
  nodes:
    - id: look
      type: agent
      config:
        model: {type: scripted, default: seen}
        retrievers: [{type: keyword, paths: [../elsewhere]}]
""",
    "program.yaml": """
version: 1
graph:
  start: [look]
  nodes:
    - id: look
      type: agent
      config:
        model: {type: scripted, default: seen}
        tools: [{type: mcp, command: [python3, server.py]}]
""",
    "wrong.yaml": "version: 1\ngraph: {start: [a], nodes: [{id: a, type: nothing_of_this_name}]}\n",
    "nograph.yaml": "a text\n",
    "flow.py": """
from axil import RootGraph

graph = RootGraph("loud")
graph.create_node(lambda inputs: {"text": inputs["text"].upper()}, name="shout")
graph.edge_from_entry("shout", {"text": ""})
graph.edge_to_exit("shout", {"text": ""})
""",
    "raises.py": """
import os
from axil import RootGraph

graph = RootGraph("raises")


def shout(inputs):
    if not os.path.exists("mended"):
        raise ValueError("not yet")
    return {"text": "mended"}


graph.create_node(shout, name="shout")
graph.edge_from_entry("shout")
graph.edge_to_exit("shout", {"text": ""})
""",
    "rows.csv": "question,tone\nHow many?,dry\n",
    "row.csv": "question\nHow many?\n",
    "cases.yaml": "cases:\n  - {name: one, inputs: hello, expected: a text}\n",
    "unknown.yaml": """
version: 1
graph:
  start: [said]
  nodes: [{id: said, type: literal, config: {content: "Dear ${NOBODY_KNOWS}"}}]
""",
    "broken.yaml": "version: 1\ngraph: {start: [a], nodes: [{id: a, type: acme.broken}]}\n",
    "acme_broken-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-broken\nVersion: 1\n",
    "acme_broken-1.dist-info/entry_points.txt": "[axil.nodes]\nacme.broken = no_such_module:X\n",
    "devall.yaml": """
version: 0.4.0
graph:
  start: [Clerk]
  nodes:
    - id: Clerk
      type: agent
      config:
        provider: openai
        name: gpt-4o
        api_key: none
        base_url: http://127.0.0.1:9/v1
        tooling: [{type: function, config: {tools: [{name: count_words}]}}]
""",
    "key.yaml": """
version: 1
graph:
  start: [write]
  nodes:
    - id: write
      type: agent
      config: {model: {type: openai, name: m, api_key: sk-of-the-file}}
""",
    "empty.yaml": "",
    "loads.py": """
from axil_files import load

try:
    load("flow.py")
except ValueError as error:
    raise SystemExit(str(error))
""",
    "submits.py": """
import asyncio

from axil_journals import LocalEngine
from axil_sqlite import SqliteJournal
from flow import graph


async def submit():
    async with LocalEngine(SqliteJournal(".axil"), loaded=0) as engine:
        await engine.start(graph.build(), {"text": "x"}, run_id="r")


asyncio.run(submit())
""",
    "damages.py": """
import sqlite3

with sqlite3.connect(".axil/runs.db") as runs:
    runs.execute("update entries set body = body || ' ' where seq = 2")
""",
    "unscored.yaml": "cases:\n  - {name: one, inputs: hello}\n",
    "four.yaml": "scorers: [exact]\ncases:\n"
    + "".join(f"  - {{name: c{n}, inputs: hello, expected: other}}\n" for n in range(4)),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Hint:
    """A command whose output advises something, and what follows from the advice."""

    line: str
    code: int
    advice: str
    """The printed text, as a pattern; its group is what is typed, or added."""
    adds: bool = False
    """The advice is added to the command, instead of typed."""
    source: tuple[str, ...] = ()
    """Parts of the texts in the sources that this row follows."""
    first: tuple[tuple[str, int], ...] = ()
    """The commands that were typed before, with their exit codes."""
    then: tuple[str, ...] = ()
    """The commands between the advice and the next one."""
    fill: tuple[tuple[str, str], ...] = ()
    """The words that a person puts in the place of others, as of ANSWER."""
    cured: int = 0
    shows: str = ""
    """The text that is seen then."""


ADD = {"adds": True}
SERVICE = (
    '"type": "openai", "name": "m", "base_url": "http://127.0.0.1:9/v1", "retry": {"max_tries": 1}'
)
DRAFT = (
    '{"type": "scripted",'
    ' "default": "version: 1\\ngraph: {start: [a], nodes: [{id: a, type: passthrough}]}"}'
)
EVALUATED = "axil eval run brief.yaml cases.yaml --scorer exact --out a.json"
SECOND = (
    "mkdir second-1.dist-info; cd second-1.dist-info;"
    " printf 'Metadata-Version: 2.1\\nName: second\\nVersion: 1\\n' > METADATA;"
    " printf '[axil.protocols]\\nsecond = axil_serve.chat:ChatCompletions\\n' > entry_points.txt"
)
RUN = "axil run ask.yaml --run-id r"
PAUSED = ((RUN, 3),)
SHOWN = "sh -c '\"$@\" && axil runs show RUN' - axil"
"""With it a command is followed by what became of a run."""
FUNCTIONS = r"A function of your own: axil … (--functions DIR --allow code)"
DIR = (("DIR", "functions"),)
ANSWER = (("ANSWER", "yes"),)
DAMAGED = (("axil run brief.yaml --input x", 0), ("printf %3000s x > .axil/runs.db", 0))
CHANGED = (RUN, 3), ("sed -i s/Go/Come/ ask.yaml", 0)
HINTS: dict[str, Hint] = {
    **{
        f"functions of one's own for {line.split()[1]}": Hint(
            line=f"axil {line}",
            code=2,
            advice=FUNCTIONS,
            fill=DIR,
            cured=cured,
            source=("A function of your own",),
            **ADD,
        )
        for line, cured in (
            ("check tool.yaml", 0),
            ("run tool.yaml --input x", 0),
            ("batch tool.yaml row.csv", 0),
            ("submit tool.yaml --input x", 0),
            ("worker tool.yaml --drain", 0),
            ("lock tool.yaml", 0),
            ("plugins why tool.yaml", 0),
            ("eval run tool.yaml cases.yaml --scorer exact", 1),  # a case fails
            ("tune tool.yaml four.yaml --budget 1 --repeats 9", 1),  # nothing was better
        )
    },
    "a file that is no text": Hint(
        line="axil run brief.yaml --input-file plan.pdf",
        code=2,
        advice=r"as load_file: (axil .*)",
        first=(("printf %%PDF-1.4 > plan.pdf", 0),),
        fill=(("TEXT", "x"),),
        shows="axil-runs",
    ),
    "leave for functions": Hint(
        line="axil run tool.yaml --input x --functions functions",
        code=2,
        advice=r"Add (--allow code), if you trust them",
        source=("Add --allow code, if",),
        **ADD,
    ),
    "leave for code": Hint(
        line="axil run code.yaml --input x",
        code=2,
        advice=r"trust the workflow: (--allow code)",
        source=("Allow it if you trust the workflow: --allow",),
        shows="X",
        **ADD,
    ),
    "leave to read": Hint(
        line="axil run read.yaml --input x",
        code=2,
        advice=r"workflow: (--allow read\S+)",
        **ADD,
    ),
    "leave for the environment": Hint(
        line="axil run variable.yaml --input x",
        code=2,
        advice=r"(--allow env:NAME_OF_A_FRIEND)",
        source=("or give a value: --set",),
        shows="Dear Ada",
        **ADD,
    ),
    "a variable in the place of the environment": Hint(
        line="axil run variable.yaml --input x",
        code=2,
        advice=r"or give a value: (--set \w+=…)",
        fill=(("…", "Bob"),),
        shows="Dear Bob",
        **ADD,
    ),
    "leave to start a server": Hint(
        line="axil check program.yaml",
        code=2,
        advice=r"(--allow mcp:\S+|--allow program:\S+)",
        **ADD,
    ),
    "leave to import": Hint(
        line="axil run condition.yaml --input long",
        code=2,
        advice=r"(--allow import:\w+)",
        source=("Name an installed component, or allow it", "Use a component's name, or allow"),
        shows="long",
        **ADD,
    ),
    "all leave that a check lists": Hint(
        line="axil check code.yaml",
        code=2,
        advice=r"needs leave:\s+(--allow \S+)",
        source=("--allow {shlex.quote(word)}",),
        **ADD,
    ),
    "an input": Hint(
        line="axil run brief.yaml",
        code=2,
        advice=r"Write (--input) TEXT",
        shows="a text",
        fill=(("--input", "--input hello"),),
        source=("Write --input TEXT",),
        **ADD,
    ),
    "an empty input": Hint(
        line="axil run brief.yaml",
        code=2,
        advice=r"; (--input '') for an empty",
        shows="a text",
        **ADD,
    ),
    "fields": Hint(
        line="axil run fields.yaml --input x",
        code=2,
        advice=r"Write (--input '.*')\.",
        fill=(("…", "Ada"),),
        source=("Write --input '",),
        shows="Ada",
        **ADD,
    ),
    "an answer": Hint(
        line=RUN,
        code=3,
        advice=r"The run is kept: (axil .*)",
        fill=ANSWER,
        shows="It went on.",
    ),
    "an answer where the journal is elsewhere": Hint(
        line=f"{RUN} --journal 'a place'",
        code=3,
        advice=r"The run is kept: (axil .*)",
        fill=ANSWER,
        shows="It went on.",
        source=(" --journal {quote(place)}",),
    ),
    "an answer to a row": Hint(
        line="axil batch ask.yaml row.csv --journal 'a place'",
        code=1,
        advice=r"Answer with (axil .*)",
        fill=ANSWER,
        shows="It went on.",
    ),
    "answers from a file": Hint(
        line=RUN,
        code=3,
        advice=r"on a terminal, or with (--answers FILE)",
        fill=(("FILE", "answers"),),
        then=("printf 'yes\\n' > answers", "rm -r .axil"),
        source=("or with --answers FILE",),
        shows="It went on.",
        **ADD,
    ),
    "a run that failed": Hint(
        line="axil run raises.py:graph --input x",
        code=1,
        advice=r"The run is kept: (axil .*)",
        then=("touch mended",),
        shows="mended",
        source=(" --allow {quote(each)}",),
    ),
    "a run that ended at a limit": Hint(
        line="axil run brief.yaml --input x --limit firings=0",
        code=4,
        advice=r"The run is kept: (axil .*)",
        fill=(("MORE", "9"),),
        source=("--limit {limit}=MORE",),
        shows="a text",
    ),
    "leave again": Hint(
        line="axil runs resume r",
        code=2,
        advice=r"Give leave again: add (--allow code)",
        first=(
            ("axil run raises.py:graph --input x --run-id r", 1),
            ("echo graph.build\\(\\) >> raises.py", 0),
        ),
        then=("touch mended",),
        source=("Give leave again",),
        shows="mended",
        **ADD,
    ),
    "a fork": Hint(
        line="axil runs fork r --at 1",
        code=0,
        advice=r"Resume it: (axil .*)",
        first=(("axil run raises.py:graph --input x --run-id r", 1),),
        then=("touch mended",),
        shows="mended",
    ),
    "a step to edit": Hint(
        line="axil runs fork r --at 2 --output 1 --as new",
        code=2,
        advice=r"\((axil runs show RUN --steps)\)",
        first=PAUSED,
        fill=(("RUN", "r"),),
        source=("Name a step of the kind done",),
        shows="asked",
    ),
    "a run that is not there": Hint(
        line="axil runs show nobody",
        code=2,
        advice=r"(axil runs list) shows them",
        first=PAUSED,
        source=("axil runs list shows them",),
        shows="r paused",
    ),
    "more runs": Hint(
        line="axil runs list --limit 1",
        code=0,
        advice=r"(--limit 0) shows all",
        first=(*PAUSED, ("axil run ask.yaml --run-id s", 3)),
        shows="r paused",
        source=("There are more; --limit 0",),
        **ADD,
    ),
    "a run without a question": Hint(
        line="axil runs answer r yes",
        code=2,
        advice=r"(axil runs show r) tells",
        first=(("axil run brief.yaml --input x --run-id r", 0),),
        shows="r brief done",
    ),
    "prompts": Hint(
        line="axil runs show r --prompts",
        code=0,
        advice=r"no prompts are kept: (axil run --prompts whole) keeps them",
        first=(("axil run brief.yaml --input x --run-id r", 0),),
        fill=(("axil run", "axil run brief.yaml --input x --run-id s"),),
        shows="a text",
        source=("no prompts are kept",),
    ),
    "what changed in a file, migrated": Hint(
        line="axil runs resume r",
        code=3,
        first=CHANGED,
        advice=r"With what is there now: (axil runs resume r --migrate)",
        cured=3,
        source=("resume {run_id} --migrate",),
    ),
    "what changed in a file, forked": Hint(
        line="axil runs resume r",
        code=3,
        first=CHANGED,
        shows="Resume it",
        advice=r"or (axil runs fork r --current)",
        source=("fork {run_id} --current",),
    ),
    "what changed in a graph": Hint(
        line="axil runs show r",
        code=0,
        advice=r"what: (axil runs show r .*) tells",
        first=(
            ("axil run code.yaml --input x --run-id r --allow code --break shout", 3),
            ("sed -i s/upper/lower/ code.yaml", 0),
        ),
        shows="shout",
    ),
    "a graph in Python that changed": Hint(
        line="axil runs answer r go --allow code",
        code=2,
        advice=r"continue with the current files:\s+(axil .*)",
        first=(
            ('axil run flow.py:graph --input \'{"text": "x"}\' --break shout --run-id r', 3),
            ("sed -i s/shout/cry/ flow.py", 0),
        ),
        shows="X",
    ),
    "a place for runs": Hint(
        line="axil runs list --journal off",
        code=2,
        advice=r"Name a folder with (--journal)",
        first=PAUSED,
        fill=(("--journal", "--journal .axil"),),
        shows="r paused",
        source=("Name a folder with --journal",),
        **ADD,
    ),
    "a damaged journal, another place": Hint(
        line="axil run brief.yaml --input x",
        code=0,
        advice=r"(--journal DIR) names another",
        fill=(("DIR", "elsewhere"),),
        source=("The run is kept nowhere",),
        first=DAMAGED,
        shows="a text",
        **ADD,
    ),
    "a damaged journal, none": Hint(
        line="axil run brief.yaml --input x",
        code=0,
        advice=r"(?s)(--journal off) none",
        first=DAMAGED,
        shows="a text",
        **ADD,
    ),
    "why a drawing cannot run": Hint(
        line="axil show wrong.yaml",
        code=0,
        advice=r"(axil check) says why",
        cured=2,
        fill=(("axil check", "axil check wrong.yaml"),),
        shows="nothing_of_this_name",
        source=("axil check says why",),
    ),
    "a column": Hint(
        line="axil batch brief.yaml rows.csv",
        code=2,
        advice=r"is given: (--column NAME)",
        fill=(("NAME", "question"),),
        source=("--column NAME.",),
        shows="done 1",
        **ADD,
    ),
    "another table of results": Hint(
        line="axil batch brief.yaml row.csv --output row.csv",
        code=2,
        advice=r"Name another file with (--output)",
        fill=(("--output", "--output new.csv"),),
        source=("Name another file with --output",),
        shows="done 1",
        **ADD,
    ),
    "plugins that are there": Hint(
        line="axil --only-plugins zzzz check brief.yaml",
        code=2,
        advice=r"Those that are there: (axil plugins list)",
        source=("Those that are there",),
        shows="axil-agent",
    ),
    "a lock": Hint(
        line="axil run brief.yaml --input x --locked",
        code=2,
        advice=r"(axil lock brief.yaml)",
        source=("axil lock {file}",),
        shows="written",
    ),
    "a lock of what changed": Hint(
        line="axil run tool.yaml --input x --locked --functions functions --allow code",
        code=2,
        first=(
            ("axil lock tool.yaml --functions functions --allow code", 0),
            ("sed -i s/three/four/ tool.yaml", 0),
        ),
        advice=r"If that is meant: (axil lock .*)",
        shows="written",
    ),
    "a run of a dataset": Hint(
        line="axil eval run kept cases.yaml",
        code=2,
        advice=r"`(axil eval add)` makes cases",
        first=(("axil run brief.yaml --input x --run-id r", 0),),
        fill=(("axil eval add", "axil eval add r new.yaml"),),
        source=("axil eval add` makes",),
    ),
    "a report": Hint(
        line="axil eval compare a.json b.json",
        code=2,
        first=(("echo {} > a.json", 0),),
        advice=r"(axil eval run --out) writes one",
        fill=(("run --out", "run brief.yaml cases.yaml --scorer exact --out a.json"),),
        source=("axil eval run --out writes",),
        shows="1 of 1",
    ),
    "more trials": Hint(
        line="axil tune brief.yaml four.yaml --budget 1",
        code=2,
        advice=r"or more (--repeats)",
        fill=(("--repeats", "--repeats 9"),),
        source=(", or more --repeats",),
        shows="Nothing that was tried was better",
        cured=1,
        **ADD,
    ),
    "a variable": Hint(
        line="axil check unknown.yaml",
        code=2,
        advice=r"give it with (--set \w+=…)",
        fill=(("…", "Bob"),),
        source=("Add it to vars",),
        **ADD,
    ),
    "a component that cannot be imported": Hint(
        line="axil run broken.yaml --input x",
        code=2,
        advice=r"More: (axil plugins doctor \S+ --import)",
        cured=2,
        source=("More: axil plugins doctor",),
        shows="no_such_module",
    ),
    "functions of a file of DevAll": Hint(
        line="axil check devall.yaml",
        code=2,
        advice=r"pass its folder: (--functions DIR --allow-code)",
        fill=DIR,
        source=("Write them in a .py file",),
        **ADD,
    ),
    "runs for a case": Hint(
        line="axil eval add nobody new.yaml",
        code=2,
        advice=r"(axil runs list) shows them",
        first=PAUSED,
        shows="r paused",
    ),
    "a component that is meant": Hint(
        line="axil plugins show retry",
        code=2,
        advice=r"Show the component: (axil plugins show \S+?)[. ]",
        source=("Show the component",),
        shows="retry",
    ),
    "a model of a draft": Hint(
        line="axil draft hello -o new.yaml",
        code=2,
        advice=r"Add (--model NAME)",
        cured=4,
        fill=(("NAME", "scripted"),),
        source=("Add --model NAME",),
        shows="6 drafts",
        **ADD,
    ),
    "a sentence of a draft": Hint(
        line="axil draft -o new.yaml --model scripted",
        code=2,
        advice=r"with (--from)\.",
        fill=(("--from", "--from rows.csv"),),
        cured=4,
        source=("Say what is wanted",),
        **ADD,
    ),
    "workflows of a server": Hint(
        line="axil serve",
        code=2,
        advice=r"Name one, or a folder with (--edit)",
        source=("Name one, or a folder with --edit",),
        fill=(("--edit", "--edit . --port notaport"),),
        cured=2,
        shows="--port",
        **ADD,
    ),
    "another name of a case": Hint(
        line="axil eval add r new.yaml",
        code=2,
        advice=r"Give another (--name)",
        first=(("axil run brief.yaml --input x --run-id r", 0), ("axil eval add r new.yaml", 0)),
        fill=(("--name", "--name other"),),
        source=("Give another --name",),
        **ADD,
    ),
    "another folder of a plugin": Hint(
        line="axil plugins new acme-clock",
        code=2,
        advice=r"another name or (--into)",
        first=(("axil plugins new acme-clock", 0),),
        fill=(("--into", "--into elsewhere"),),
        source=("Choose another name or --into",),
        **ADD,
    ),
    "an empty file": Hint(
        line="axil check empty.yaml",
        code=2,
        advice=r"(axil schema) prints",
        source=("Write graph, with nodes and start",),
        shows="additionalProperties",
    ),
    "a graph in Python that is loaded as a file": Hint(
        line="python loads.py",
        code=1,
        advice=r"if it is called graph there: (axil .*)",
        fill=(("flow.py:graph", """flow.py:graph --input '{"text": "x"}'"""),),
        source=("Import its graph",),
        shows="X",
    ),
    "a run of a graph in Python that a worker does not have": Hint(
        line="axil worker brief.yaml --drain",
        code=0,
        first=(("python submits.py", 0),),
        advice=r"Start one that has it: (axil worker FILE.py:GRAPH --allow code)",
        fill=(("FILE.py:GRAPH", "flow.py:graph --drain"), ("axil", SHOWN.replace("RUN", "r"))),
        source=("Start one that has it",),
        shows="r loud done",
    ),
    "a damaged entry": Hint(
        line="axil runs show r",
        code=2,
        first=(("axil run brief.yaml --input x --run-id r", 0), ("python damages.py", 0)),
        advice=r"See (axil runs doctor)",
        cured=1,
        source=("See axil runs doctor",),
        shows="its checksum is wrong",
    ),
    "a damaged report": Hint(
        line="axil eval compare a.json a.json",
        code=2,
        first=((EVALUATED, 0), ("""sed -i 's/"trials": /"trials": 1, "more": /' a.json""", 0)),
        advice=r"Evaluate again, with (--out)",
        fill=(("--out", EVALUATED),),
        source=("Evaluate again, with --out",),
        shows="1 of 1",
    ),
    "a scorer": Hint(
        line="axil eval run brief.yaml unscored.yaml",
        code=2,
        advice=r"Give (--scorer)",
        fill=(("--scorer", "--scorer exact"),),
        source=("Give --scorer",),
        cured=2,
        shows="expected",
        **ADD,
    ),
    "the folder of a build": Hint(
        line="axil build brief.yaml --until plan",
        code=2,
        first=(("mkdir build; ln -s ../functions build/brief", 0),),
        advice=r"Say (--out FOLDER)",
        fill=(("FOLDER", "built"),),
        source=("Say --out FOLDER.",),
        shows="runs workflows",
        **ADD,
    ),
    "a protocol": Hint(
        line="axil serve brief.yaml --port 0 --host 192.0.2.77",
        code=2,
        first=((SECOND, 0),),
        advice=r"Select one of them with (--protocol)",
        fill=(("--protocol", "--protocol openai"),),
        source=("Select one of them with --protocol",),
        cured=2,
        shows="Give --host an address of this machine",
        **ADD,
    ),
    "the address of a server": Hint(
        line="axil serve brief.yaml --port 0 --host 192.0.2.77",
        code=2,
        advice=r"Give (--host) an address",
        fill=(("--host", "--host 127.0.0.1 --port notaport"),),
        source=("Give --host an address of this machine",),
        cured=2,
        shows="--port",
        **ADD,
    ),
    "a recording": Hint(
        line="axil run brief.yaml --input x --replay calls.jsonl",
        code=2,
        advice=r"(--record FILE) makes one",
        fill=(("--record FILE", "axil run brief.yaml --input x --record calls.jsonl"),),
        source=("--record FILE makes one",),
        shows="a text",
    ),
    "what a draft costs": Hint(
        line=f"axil draft hello -o new.yaml --budget 1 --model '{{{SERVICE}}}'",
        code=2,
        advice=r"million tokens: (--model '.*')",
        fill=(("…", SERVICE),),
        source=("--budget needs to know", "Say it for a million tokens"),
        cured=1,
        shows="Check base_url",
        **ADD,
    ),
    "a draft to be kept": Hint(
        line=f"axil draft hello -o new.yaml --model '{DRAFT}'",
        code=3,
        advice=r"Keep it: (--yes)",
        source=("Say what to change",),
        shows="new.yaml is written",
        **ADD,
    ),
    "a file that exists": Hint(
        line="axil draft hello -o brief.yaml --model scripted",
        code=2,
        advice=r"Add (--replace)",
        source=("Add --replace",),
        cured=4,
        **ADD,
    ),
}

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "it says a fact, and advises nothing": (
        "limited nothing",
        "a draft that is checked may do",
        "--model is no JSON",
        "It does not pass after",
        "no plugin is called",
        "has no effect",
        "f'--out {path}'",
        "--prompts expects",
        "created-by",
        "shows runs that wait",
        "--hash=sha256",
        "--find-links",
    ),
    "it is said to a model, or in Python, and not on a terminal": (
        "Where something needs leave (--allow)",
        "what reaches the node",
        'allow={{"{word}"}}',
        "allow all programs",
        "Pass workspace=",
    ),
    "it is a file or a page that is written": (
        "docker compose",
        "docker build",
        "Runs {workflow}",
        "Built from this folder alone",
        "<!doctype html>",
    ),
    "it is the help of a command": ("Run this workflow;",),
    "what it is said of is made by the tests of its member": (
        "Give a larger --budget",
        "axil runs doctor --repair",
        "Look at them; then give leave again",
        "Look what the server has changed (axil mcp tools)",
        "Say which with --from",
        "Name another file with --out",
        "Run it with --thread",
        "(needs --allow",
        "--workspace DIR.",
        "Answer with axil runs answer, on the page",
        "Start them with axil serve, axil submit",
        "See axil runs list",
        "f'--allow program:",
        "Check them (axil mcp tools)",
        "Log in once",
        "allow all servers",
        "axil plugins manifest",
        "A later version of the distribution",
        "Start it with --files DIR",
        "--oidc needs a library that is not installed",
        "expected HEADER=NAME, each once",
        "Name the folder of the server's files: --files DIR",
        "Ask one of axil serve",
        "Serve the workflow with axil serve",
        "Give the agent memories: [history]",
        "Name runs of axil eval run --run-id",
        "Leave the option out, or use --engine local",
        "axil eval run … --out {path} writes one",
    ),
}
"""Parts of hints that no row follows, by the reason."""
SAID = ("help", "usage", "description", "metavar", "prog", "epilog")
"""Arguments that describe an option, and advise nothing."""


@cache
def sources(holding: re.Pattern[str] = re.compile("")) -> list[tuple[Path, ast.Module]]:
    """Return the sources of all members in which a pattern is found, parsed."""
    files = [file for kind in ("core", "plugins/*", "contrib/*") for file in found_in(kind)]
    return [(file, tree_of(file)) for file in files if holding.search(text_of(file))]


def found_in(kind: str) -> list[Path]:
    return sorted(ROOT.glob(f"{kind}/src/**/*.py"))


@cache
def advised() -> dict[str, str]:
    """Return the texts of the sources that name a command or an option, with their places."""
    found: dict[str, str] = {}
    for file, _ in sources(MAY_HOLD_HINT):
        left_out = {
            id(each)
            for node in nodes_of(file)
            for part in (
                [word.value for word in node.keywords if word.arg in SAID]
                if isinstance(node, ast.Call)
                else [node]
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                else node.values
                if isinstance(node, ast.JoinedStr)
                else []
            )
            for each in ast.walk(part)
        }
        for node in nodes_of(file):
            if id(node) not in left_out and isinstance(node, (ast.Constant, ast.JoinedStr)):
                text = ast.unparse(node) if isinstance(node, ast.JoinedStr) else node.value
                is_name = isinstance(text, str) and NAMED.fullmatch(text)
                if isinstance(text, str) and not is_name and HINT.search(text):
                    found[text] = f"{file.relative_to(ROOT)}:{node.lineno}"
    return found


def test_every_hint_of_the_sources_is_followed_or_has_a_reason() -> None:
    parts = [part for hint in HINTS.values() for part in hint.source]
    parts += ["Write ${NAME}, and give it"]  # its test is below
    parts += [part for each in ELSEWHERE.values() for part in each]
    left = {text: place for text, place in advised().items() if not any(p in text for p in parts)}
    assert not left, "\n".join(f"{place}: {text!r}" for text, place in left.items())
    idle = [part for part in parts if not any(part in text for text in advised())]
    assert not idle, f"the sources do not say this any more: {idle}"


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
SETTING = re.compile(r"\b[a-z]+(?:_[a-z]+)+(?=: |=)")
"""A setting as an advice writes it, with what it is to be."""
OF_OTHERS = {
    "--build",
    "--build-arg",
    "--invalidation-mode",
    "--detach",
    "--hash",
    "--find-links",
    "--scale",
    "--rm",
    "--tag",
    "--username",
    "--no-cache-dir",
    "--no-create-home",
    "search_path",
    "synchronous_commit",
    "run_name",
    "any_order",
    "draw_graph",
    "set_streaming_handler",
    "fail_node",
    "stop_run",
    "idle_in_transaction_session_timeout",
    "nexit_code",
}
"""Options and settings of other programs, and words in lists of words."""


@pytest.mark.skipif(not LONG, reason="it reads all sources again and again")
def test_every_option_that_an_advice_names_is_there() -> None:
    texts = [
        node.value
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    known = {text for text in texts if OPTION.fullmatch(text)}
    known |= {
        f"--{name}" for text in texts for name in re.findall(r"^(?:run|all)\.([a-z-]+)$", text)
    }
    unknown = {
        f"{place}: {option}"
        for text, place in advised().items()
        for option in set(OPTION.findall(text)) - known - OF_OTHERS
    }
    assert not unknown, "\n".join(sorted(unknown))


@pytest.mark.skipif(not LONG, reason="it reads all sources again and again")
def test_every_setting_that_an_advice_names_is_there() -> None:
    known = {
        name
        for _, tree in sources()
        for node in ast.walk(tree)
        for name in (
            getattr(node, "arg", None),
            getattr(node, "attr", None),
            getattr(node, "name", None),
            getattr(node, "value", None) if isinstance(node, ast.Constant) else None,
            node.id if isinstance(node, ast.Name) else None,
        )
    }
    unknown = {
        f"{file.relative_to(ROOT)}:{node.lineno}: {name}"
        for file, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for name in set(SETTING.findall(node.value)) - known - OF_OTHERS
        if len(node.value) < 300
    }
    assert not unknown, "\n".join(sorted(unknown))


@pytest.fixture
def desk(terminals: Callable[..., Terminal]) -> Terminal:
    """A terminal beside the files."""
    terminal = terminals(NAME_OF_A_FRIEND="Ada", PYTHONPATH=".")
    terminals("elsewhere")
    for name, text in FILES.items():
        terminal.write(name, text.lstrip("\n"))
    return terminal


def followed(desk: Terminal, hint: Hint) -> Screen:
    """Do what a hint says."""
    for line, code in hint.first:
        desk.paste(line, code=code)
    said = desk.type(hint.line, code=hint.code).find(hint.advice)
    for line in hint.then:
        desk.paste(line)
    for word, meant in hint.fill:
        said = said.replace(word, meant)
    return desk.type(f"{hint.line} {said}" if hint.adds else said, code=hint.cured)


@pytest.mark.third
@pytest.mark.parametrize("name", HINTS)
def test_a_hint_is_followed_as_it_is_printed_and_cures(desk: Terminal, name: str) -> None:
    hint = HINTS[name]
    done = followed(desk, hint)
    done.shows(hint.shows)
    if hint.adds:
        assert not re.search(hint.advice, done.text), f"it is advised again\n{done}"


def test_an_end_for_a_cycle_ends_it(desk: Terminal) -> None:
    shown = desk.type("axil check endless.yaml", code=2)
    said = shown.find(r"Write (end: \[a\] and cycle_limits: .*);")
    text = FILES["endless.yaml"].replace("nodes:", "\n  ".join([*said.split(" and "), "nodes:"]), 1)
    desk.write("endless.yaml", text.lstrip("\n"))
    desk.type("axil check endless.yaml").shows("then out")
    desk.type("axil run endless.yaml --input x").shows("x")


def test_a_key_that_is_written_out_is_given_as_is_advised(desk: Terminal) -> None:
    shown = desk.type("axil check key.yaml").shows("AX178")
    place = shown.find(r"Write (\S+), and give it")
    option = shown.find(r"with (--set \w+=…)").replace("…", "sk-of-nobody")
    desk.write("key.yaml", FILES["key.yaml"].lstrip().replace("sk-of-the-file", f"'{place}'"))
    again = desk.type(f"axil check key.yaml {option}")
    assert "AX178" not in again.text
