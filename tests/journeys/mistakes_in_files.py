"""Mistakes in workflow files, with models and with tools."""

from __future__ import annotations

from tests.journeys.mistakes import (
    AGENT,
    CODE,
    FLOW,
    MISTAKES,
    MODEL,
    RUN,
    Mistake,
    edit,
    service,
    typed,
)

# ------------------------------------------------------------------------------ YAML
edit("a tab", "  start:", "\tstart:", "flow.yaml:3", "cannot start any token", "spaces instead of")
edit("no colon", "id: review", "id review", "flow.yaml:12", "not allowed", "begin the keys of one")
edit(
    "an item out of column",
    "    - id: review",
    "     - id: review",
    "flow.yaml:11",
    "did not find expected '-'",
    "begin in the same column",
)
edit(
    "a key twice",
    "  start: [write]\n",
    "  start: [write]\n  start: [review]\n",
    "flow.yaml:4",
    'the key "start" occurs twice',
    "Remove one",
)
edit("the top key", "graph:", "grpah:", "flow.yaml:2", 'unknown key "grpah"', 'mean "graph"')
edit("a key", "  edges:", "  egdes:", "flow.yaml:14", 'unknown key "egdes"', 'mean "edges"')
edit(
    "nodes as a mapping",
    FLOW[FLOW.index("  nodes:") : FLOW.index("  edges:")],
    "  nodes: {write: {type: passthrough}, review: {type: passthrough}}\n",
    "flow.yaml:5 nodes",
    "expected a list, found a mapping",
    "- {id: plan, type: agent",
)
edit(
    "an edge as a text",
    "{from: write, to: review}",
    "write -> review",
    "flow.yaml:15 edges[0]",
    'found "write -> review"',
    "- {from: plan, to: write}",
)
edit("an edge to nowhere", "to: review", "to: reviw", "flow.yaml:15", 'no node "reviw"', '"review"')
edit("a type", "type: agent", "type: agnet", "flow.yaml:6", 'type "agnet"', 'mean "agent"')
edit("no id", "id: review\n      type", "type", "flow.yaml:11", 'key "id" is missing', "unique in")
edit("an id twice", "id: review", "id: write", "flow.yaml:11", "(line 6)", "another id")
edit("a start", "[write]", "[wirte]", "flow.yaml:3", 'no node "wirte"', 'mean "write"')
edit("an end", "[review]", "[reveiw]", "flow.yaml:4", 'no node "reveiw"', 'mean "review"')
edit(
    "a version to come",
    "version: 1",
    "version: 9",
    "flow.yaml:1 version",
    "version 9 of the format is not known",
    "Write version: 1",
    code=0,
)
edit("a setting", "instructions:", "instruction:", "flow.yaml:10", "unknown key", '"instructions"')
edit(
    "a setting of another type",
    "instructions: Write.",
    "max_turns: many",
    "flow.yaml:10",
    'found "many"',
    "expected a whole number ≥ 1",
)
edit(
    "a number as an id", "id: write", "id: 1", "flow.yaml:6", "expected text, found 1", 'Write "1"'
)
edit("an id that is no", "id: review", "id: no", "flow.yaml:11", "found false", "Put it in quotes")
edit("no target", ", to: review}", "}", "flow.yaml:15", 'key "to" is missing', 'A node, or "@exit"')
edit(
    "a key of an edge",
    "to: review}",
    "to: review, when: {type: expression, config: {expression: 'message.ok'}}}",
    "flow.yaml:15",
    'unknown key "when"',
    'Write "condition"',
)
edit(
    "a condition",
    "to: review}",
    "to: review, condition: {type: expresion, config: {expression: 'message.score > 1'}}}",
    "flow.yaml:15 edges[0].condition",
    'unknown condition "expresion"',
    'Did you mean "expression"',
)
edit(
    "an expression",
    "to: review}",
    "to: review, condition: {type: expression, config: {expression: 'message.score >'}}}",
    "flow.yaml:15",
    "column 16",
    "expected a value",
)
edit("a quote", "Write.", "'Write.", "in line 10", "unexpected end of stream", "Close the quotes")
edit("a bracket", "[write]", "[write", "in line 3", "expected ',' or ']'", "close the bracket")
edit("a colon in a text", "Write.", "Note: write.", "flow.yaml:10", "not allowed", "into quotes")
edit("an at sign", "Write.", "@home write.", "flow.yaml:10", "cannot start", "text into quotes")
edit(
    "a cycle without an end",
    "  end: [review]",
    "  cycle_limits: {}",
    "flow.yaml:2",
    "every node has an out-edge",
    "Write end: [write] and cycle_limits",
)
MISTAKES["a cycle without an end"] = Mistake(
    files={
        "flow.yaml": FLOW.replace("  end: [review]\n", "").replace(
            "  edges:\n", "  edges:\n    - {from: review, to: write}\n"
        )
    },
    line="axil check flow.yaml",
    says=MISTAKES["a cycle without an end"].says,
)
edit(
    "a node that nothing leads to",
    "  edges:\n    - {from: write, to: review}\n",
    "",
    "flow.yaml:11 nodes[1]",
    "so it never fires",
    "no start node leads to it",
    code=0,
)
typed(
    "an empty file",
    "axil check flow.yaml",
    "flow.yaml",
    "the file is empty",
    "axil schema prints the format",
    files={"flow.yaml": ""},
    mended="axil schema",
)
typed(
    "a file of words",
    "axil check flow.yaml",
    "flow.yaml:3",
    'found "It writes."',
    "Write graph, with nodes and start",
    files={"flow.yaml": "# My flow\n\nIt writes.\n"},
)
typed(
    "a text in another encoding",
    "axil check flow.yaml",
    "flow.yaml:10",
    "not text in UTF-8",
    "Save it as UTF-8",
    files={"flow.yaml": FLOW.replace("Write.", "Grüße.").encode("latin-1")},
)
edit("an alias", "Write.", "*house", "flow.yaml:10", "&house is not defined", "Correct the name")
edit("rounds of zero", "  edges:", "  cycle_limits: {write: {rounds: 0}}\n  edges:", "flow.yaml:14",
     "found 0", "expected a number ≥ 1 or unlimited")  # fmt: skip
edit(
    "a limit", "  edges:", "  limits: {firing: 3}\n  edges:", "flow.yaml:14", "firing", '"firings"'
)
edit(
    "a limit that is no number",
    "  edges:",
    "  limits: {firings: three}\n  edges:",
    "flow.yaml:14 limits.firings",
    'found "three"',
    "expected a whole number",
)
edit(
    "a type of a field",
    "  edges:",
    "  state: {score: {type: integer}}\n  edges:",
    "flow.yaml:14 state.score",
    'no type is called "integer"',
    'Did you mean "int"',
)
edit(
    "a strategy of a field",
    "  edges:",
    "  state: {score: {type: int, strategy: add}}\n  edges:",
    "flow.yaml:14 state.score",
    'no update strategy is called "add"',
    "built in: overwrite, append",
)
edit("a payload", "  start:", "  payload: field\n  start:", "flow.yaml:3", '"field"', '"fields"')
edit(
    "a wrapper",
    AGENT,
    f"wrappers: [{{type: rety}}]\n      {AGENT}",
    "flow.yaml:12",
    'unknown wrapper "rety"',
    'Did you mean "retry"',
)
edit(
    "settings of a wrapper",
    AGENT,
    f"wrappers: [{{type: retry, config: {{tries: 0}}}}]\n      {AGENT}",
    "flow.yaml:12",
    "found 0",
    "expected a number ≥ 1",
)
edit(
    "retries of a node",
    AGENT,
    f"retries: 3\n      {AGENT}",
    "flow.yaml:12 nodes[1].retries",
    'unknown key "retries"',
    "Write wrappers: [{type: retry}]",
)
edit(
    "an included file",
    AGENT,
    "type: subgraph\n      config: {type: file, config: {path: parts/review.yaml}}",
    "flow.yaml:11 nodes[1]",
    "no file parts/review.yaml",
    "relative to the folder of the file",
)
edit(
    "an included file, written otherwise",
    AGENT,
    "type: subgraph\n      config: {path: parts/review.yaml}",
    "flow.yaml:13 nodes[1].config",
    'the key "config" is missing',
    "{path: other.yaml}, or a graph",
)
edit(
    "an edge with keys of fields",
    "to: review}",
    "to: review, keys: [text]}",
    'node "write"',
    "the payload lacks text; it has message",
    "change the edge's keys",
    line="run",
    code=1,
)
edit("a variable", "Write.", "To ${FRIEND}.", "flow.yaml:10", "no value for ${FRIEND}", "--set FR")

# ----------------------------------------------------------------------------- models, keys
edit("a provider", "{type: scripted,", "{type: opnai,", "flow.yaml:9", '"opnai"', 'mean "openai"')
edit(
    "a model without a type",
    MODEL,
    "{name: gpt-4o}",
    "flow.yaml:9 nodes[0].config.model",
    'the key "type" is missing',
    "Write {type: openai, name: …}",
)
edit(
    "a name for a model",
    MODEL,
    "gpt-4o",
    "flow.yaml:9",
    'unknown model adapter "gpt-4o"',
    '{"type": "openai", "name": "gpt-4o"}',
)
edit(
    "no key",
    MODEL,
    "{type: openai, name: gpt-4o}",
    'node "write"',
    "no key for api.openai.com",
    "Set OPENAI_API_KEY",
    line="run",
    code=1,
)
edit(
    "a key of the environment without leave",
    MODEL,
    "{type: openai, name: m, api_key: {env: MY_KEY}}",
    "flow.yaml:6",
    "read the environment variable MY_KEY",
    "--allow env:MY_KEY",
    line="run",
)
edit(
    "a key of the environment that is not set",
    MODEL,
    "{type: openai, name: m, api_key: {env: MY_KEY}}",
    'node "write"',
    "the environment variable MY_KEY is not set",
    "Set MY_KEY",
    line="axil run flow.yaml --input x --allow env:MY_KEY",
    code=1,
)
edit(
    "a temperature beside the settings",
    MODEL,
    "{type: openai, name: m, temperature: 0.2}",
    "flow.yaml:9",
    "temperature is a setting of requests",
    "write settings: {temperature: …}",
)
edit(
    "a temperature out of range",
    MODEL,
    "{type: openai, name: m, settings: {temperature: 5}}",
    "flow.yaml:9",
    "found 5",
    "expected a number from 0 to 2",
)
service("a wrong key", "401", "answered 401", "Check the key: api_key")
service("a model that is not there", "404", "answered 404", 'Check name ("large") and base_url')
service("too many requests", "429", "answered 429", "Wait and resume the run")
service("a page in the place of an API", "page", "sent a web page", "it often ends in /v1")
service("a text that is too long", "400", "maximum context length is 8192")
typed(
    "a service that does not run",
    "axil run flow.yaml --input x --set KEY=wrong-key",
    'node "write"',
    "the connection to 127.0.0.1:9 failed",
    "Is the service running there? Check base_url",
    files={
        "flow.yaml": FLOW.replace(
            MODEL,
            "{type: openai, name: m, api_key: '${KEY}', retry: {max_tries: 1}, "
            "base_url: 'http://127.0.0.1:9/v1'}",
        )
    },
    code=1,
)
edit(
    "an output that does not fit",
    "instructions: Write.",
    "output: {score: a number, why: a reason}",
    'node "write"',
    'expected one JSON object, found "a text"',
    "Make the task easier",
    line="run",
    code=1,
)
edit(
    "money without a price",
    "  edges:",
    "  limits: {cost: 1, pricing: {models: {other: {input: 1, output: 1}}}}\n  edges:",
    'node "write"',
    "has no price",
    "Give it one in pricing.models",
    line="run",
    code=1,
)
edit(
    "too few tokens",
    "  edges:",
    "  limits: {tokens: 5}\n  edges:",
    "the run's limit",
    "is 5 tokens",
    "Raise tokens in the limits",
    line="run",
    code=4,
)
edit(
    "too few firings",
    "  edges:",
    "  limits: {firings: 1}\n  edges:",
    "the run",
    "fired 1 times",
    "Raise limits.firings",
    line="run",
    code=4,
)
typed("a script", f"{RUN} --model-script r.yaml", "r.yaml", "cannot be read", "Check the path")
typed(
    "keys of a script",
    f"{RUN} --model-script r.yaml",
    "r.yaml:1",
    'unknown key "replies"',
    'Did you mean "rules"',
    files={"r.yaml": "replies: [a text]\n"},
)
typed(
    "a recording",
    f"{RUN} --replay calls.jsonl",
    "calls.jsonl",
    "cannot be read",
    "--record FILE makes one",
    mended=f"{RUN} --record calls.jsonl",
)

# ----------------------------------------------------------------------------------- tools
edit(
    "a tool",
    "instructions: Write.",
    "tools: [{type: flies}]",
    "flow.yaml:10 nodes[0].config.tools[0]",
    'unknown tool "flies"',
    'Did you mean "files"',
)
edit(
    "a tool that is a function",
    "instructions: Write.",
    "tools: [count]",
    "flow.yaml:10",
    'unknown tool "count"',
    "--functions DIR --allow code",
)
edit(
    "a server of tools without leave",
    "instructions: Write.",
    "tools: [{type: mcp, command: [no-such-server]}]",
    "flow.yaml:10",
    "start the MCP server no-such-server",
    "--allow mcp:no-such-server",
    line="run",
)
edit(
    "a server of tools that is not there",
    "instructions: Write.",
    "tools: [{type: mcp, command: [no-such-server]}]",
    'MCP server "mcp"',
    'there is no program "no-such-server"',
    "Check the command",
    line=f"{RUN} --allow mcp",
    code=1,
)
TOOL = "def count(text: str) -> int:\n    return 1\n"
WITH = f"{RUN} --functions tools"
typed("functions", f"{WITH} --allow code", "tools", "is not a folder", "a folder with Python files")
typed(
    "functions without leave",
    WITH,
    "--functions",
    "functions are code",
    "Add --allow code",
    files={"tools/t.py": TOOL},
    mended=f"{WITH} --allow code",
)
typed(
    "functions with a slip",
    f"{WITH} --allow code",
    "tools/t.py:1",
    "SyntaxError: expected ':'",
    "Correct it",
    files={"tools/t.py": TOOL.replace("int:", "int")},
)
typed(
    "functions that import what is not there",
    f"{WITH} --allow code",
    "tools/t.py:1",
    "No module named 'pandsa'",
    "install what has pandsa",
    files={"tools/t.py": f"import pandsa\n{TOOL}"},
)
typed(
    "code without leave",
    RUN,
    "flow.yaml:5",
    "tries to run code",
    "--allow code",
    files={"flow.yaml": CODE},
    mended=f"{RUN} --allow code",
)
edit(
    "code with a slip",
    "input().upper()",
    "inptu().upper()",
    "line 1",
    "name 'inptu' is not defined",
    line=f"{RUN} --allow code",
    code=0,
)
