"""Mistakes on the command line, in programs, with plugins, and with servers."""

from __future__ import annotations

from tests.journeys.mistakes import (
    BROKEN_PLUGIN,
    CASES,
    CLAIMING_PLUGIN,
    FLOW,
    PROGRAM,
    RUN,
    TABLE,
    program,
    typed,
)

# ------------------------------------------------------------------------- the command line
typed("a command", "axil rnu flow.yaml", "command", '"rnu"', 'Did you mean "run"')
typed("an option", "axil run flow.yaml --imput x", "axil run", "--imput", 'mean "--input"')
typed("an option of another command", "axil check flow.yaml --input x", "axil check", "--input x")
typed("a file", "axil run flw.yaml --input x", "flw.yaml", "no such file", 'mean "flow.yaml"')
typed("a folder", "axil run . --input x", ".", "this is a folder", "Name a workflow file in it")
typed("no input", "axil run flow.yaml", "--input", "there is no input", "Write --input TEXT")
typed(
    "an input file",
    "axil run flow.yaml --input-file imput.txt",
    "--input-file",
    "imput.txt cannot be read",
    'Did you mean "input.txt"',
    files={"input.txt": "x"},
    mended="axil run flow.yaml --input-file input.txt",
)
typed("two inputs", f"{RUN} --input-file y", "axil run", "not allowed with", "[--input TEXT | --in")
typed("a variable alone", f"{RUN} --set FRIEND", "--set", 'found "FRIEND"', "Write --set tone=dry")
typed("an unused variable", f"{RUN} --set X=1", "flow.yaml", "called X", "has no effect", code=0)
typed("leave", f"{RUN} --allow everything", "--allow", '"everything"', "Available: code, env")
typed("a format", f"{RUN} --format jsn", "--format", "'jsn'", 'Did you mean "json"')
typed("a place for runs", f"{RUN} --journal /proc/x", "/proc/x", "cannot be used", "Check the path")
typed("a kind of journal", f"{RUN} --journal mysql://h/db", "--journal", '"mysql"', "postgresql")
typed("a stop", f"{RUN} --break reveiw", "--break", 'no node "reveiw"', 'Did you mean "review"')
typed(
    "a run",
    "axil runs show s",
    "the journal",
    'no run "s"',
    "axil runs list",
    first=f"{RUN} --run-id r",
    mended="axil runs list",
)
typed(
    "an answer to a run that asks nothing",
    "axil runs answer r yes",
    "RUN",
    'no question of "r" is open',
    "axil runs show r",
    first=f"{RUN} --run-id r",
    mended="axil runs show r",
)
typed(
    "a step of a run",
    "axil runs fork r --at 99",
    "--at",
    "found 99",
    "expected a step from 1 to 6",
    first=f"{RUN} --run-id r",
    mended="axil runs fork r --at 6",
)
typed(
    "the name of another run",
    "axil run flow.yaml --input y --run-id r",
    "a run of this id",
    "was begun with another input",
    "choose another run_id",
    first=f"{RUN} --run-id r",
    mended="axil run flow.yaml --input y --run-id s",
)
typed("an attachment", f"{RUN} --attach a.pdf", "--attach", "No such file", "Check the path")
typed("answers", f"{RUN} --answers a.txt", "--answers", "a.txt cannot be read", "Check the path")
typed("a table", "axil batch flow.yaml rows.csv", "rows.csv", "No such file", "Check the path")
typed(
    "a table without rows",
    "axil batch flow.yaml rows.csv",
    "rows.csv",
    "has no rows",
    "Add rows below the column names",
    files={"rows.csv": "question\n"},
)
typed(
    "a table of another kind",
    "axil batch flow.yaml rows.ods",
    "rows.ods is no table",
    "expected a name with .csv",
    "Convert the file",
    files={"rows.ods": "x"},
)
typed(
    "a table of two columns",
    "axil batch flow.yaml rows.csv",
    "the table has 2 columns",
    "the workflow takes one text",
    "--column NAME",
    files={"rows.csv": TABLE},
    mended="axil batch flow.yaml rows.csv --column question",
)
typed(
    "a column",
    "axil batch flow.yaml rows.csv --column qestion",
    "no column",
    '"qestion"',
    'Did you mean "question"',
    files={"rows.csv": TABLE},
)
typed(
    "a text as a workflow",
    "axil run notes.txt --input x",
    "notes.txt",
    'unknown file format "txt"',
    "Installed: json, toml, yaml",
    files={"notes.txt": "hello"},
)
typed(
    "a program without its graph",
    "axil run prog.py --input x",
    "prog.py",
    "name a graph in it",
    "prog.py:graph",
    files={"prog.py": PROGRAM},
    mended="""axil run prog.py:graph --input '{"text": "x"}'""",
)
typed(
    "a graph of a program",
    "axil run prog.py:grpah --input x",
    "prog.py:grpah",
    'no "grpah" in it',
    'Did you mean "graph"',
    files={"prog.py": PROGRAM},
)
typed(
    "a program with a slip",
    "axil run prog.py:graph --input x",
    "prog.py:1",
    "SyntaxError: '(' was never closed",
    "Correct it",
    files={"prog.py": "graph = (\n"},
)
typed(
    "a dataset",
    "axil eval run flow.yaml cases.yaml --scorer exact",
    "cases.yaml",
    "cannot be read",
    "Check the path",
)
typed(
    "a key of a dataset",
    "axil eval run flow.yaml cases.yaml --scorer exact",
    "cases.yaml: cases[0]",
    'unknown key "input"',
    'Did you mean "inputs"',
    files={"cases.yaml": CASES.replace("inputs", "input")},
)
typed(
    "a scorer",
    "axil eval run flow.yaml cases.yaml --scorer exakt",
    "scorer exakt",
    "unknown scorer",
    'Did you mean "exact"',
    files={"cases.yaml": CASES},
)

# --------------------------------------------------------------------------------- programs
RAN = f"{PROGRAM}graph.invoke({{'text': 'x'}})\n"
BODY = '{"text": inputs["text"]}'
program("a name of another package", "from axil import Agent\n", "axil", "no attribute",
        "from axil_agent import Agent")  # fmt: skip
program("a graph that is not built", RAN.replace("graph.build()\n", ""), 'graph "g"', "not built",
        "Call build() first")  # fmt: skip
program("a node after the build", f"{PROGRAM}graph.create_node(lambda x: x, name='b')\n",
        'graph "g"', "cannot be changed", "Make a new one")  # fmt: skip
program("an edge to no node", PROGRAM.replace("graph.build()", "graph.create_edge('a', 'b')"),
        'graph "g"', 'no node "b"', "Nodes: a")  # fmt: skip
program("a name of two nodes", PROGRAM.replace("graph.build()", "graph.create_node(len, name='a')"),
        'graph "g"', 'node "a" exists', "another name")  # fmt: skip
program("a body that returns a number", RAN.replace(BODY, "3"), 'node "a"', "returned int",
        'Return {"message": …}')  # fmt: skip
program("a body that returns nothing", RAN.replace(BODY, "None"), 'node "a"', "returned NoneType",
        'Return {"message": …}')  # fmt: skip
program("a body without the field", RAN.replace(BODY, '{"txt": 1}'), "edge a->@exit", "lacks text",
        'has "txt"; the edge wants "text"')  # fmt: skip
program("an input without the field", RAN.replace("{'text'", "{'txt'"), "edge @entry->a",
        "lacks text", 'has "txt"; the edge wants "text"')  # fmt: skip
program("a text for fields", RAN.replace("{'text': 'x'}", "'x'"), "edge @entry->a", "lacks text",
        'Give "text" with the input')  # fmt: skip
program("a path for a journal", RAN.replace("'x'}", "'x'}, journal='.axil'"), "journal:",
        "found a path", 'SqliteJournal(".axil")')  # fmt: skip
program("limits as a mapping", RAN.replace("'x'}", "'x'}, limits={'firings': 3}"), "limits:",
        "found a mapping", "Limits(firings=3)")  # fmt: skip
program("an option of a run", RAN.replace("'x'}", "'x'}, jurnal=None"), "option", "jurnal",
        'Did you mean "journal"')  # fmt: skip
program("a method of other systems", RAN.replace("invoke", "run_sync"), 'RootGraph "g"',
        'no "run_sync"', "invoke runs it and waits")  # fmt: skip
program("a cycle", PROGRAM.replace("graph.build()", "graph.create_edge('a', 'a')"), 'graph "g"',
        "close a cycle", 'cycles="allow"')  # fmt: skip
program("a file to load", "from axil_files import load\nload('flw.yaml')\n", "flw.yaml",
        "no such file", "Check the path")  # fmt: skip
program("a setting of an agent", "from axil_agent import Agent\nAgent(instruction='x')\n",
        'Agent takes no "instruction"', 'Did you mean "instructions"')  # fmt: skip

# ---------------------------------------------------------------------------------- plugins
typed("a plugin", "axil plugins show axil-agnet", "plugin", '"axil-agnet"', 'mean "axil-agent"')
typed("a name of a plugin", "axil plugins new My", "NAME", '"My"', "for example acme-shout")
typed("a hook", "axil --hook nohook check flow.yaml", "hook plugin", '"nohook"', "circuit_breaker")
typed(
    "only plugins",
    "axil --only-plugins axil-agnet check flow.yaml",
    "--only-plugins",
    '"axil-agnet"',
    'Did you mean "axil-agent"',
)
typed(
    "a plugin whose module is not there",
    "axil check flow.yaml",
    "flow.yaml:6",
    "No module named 'no_such_module'",
    "axil plugins doctor acme-broken --import",
    files={"flow.yaml": FLOW.replace("type: agent", "type: acme.broken", 1), **BROKEN_PLUGIN},
)
typed(
    "a component of two plugins",
    "axil check flow.yaml",
    "flow.yaml:6",
    "other-agent 1",
    '"axil-agent/agent"',
    files=CLAIMING_PLUGIN,
)
typed(
    "no lock",
    f"{RUN} --locked",
    "flow.yaml.lock",
    "there is no lock",
    "axil lock flow.yaml",
    mended="axil lock flow.yaml",
)
CONFIG = "AXIL_CONFIG=axil.toml axil check flow.yaml"
typed("a key of the settings", CONFIG, "axil.toml", '"blok"', 'mean "block"',
      files={"axil.toml": "[plugins]\nblok = ['x']\n"})  # fmt: skip
typed("settings that are no TOML", CONFIG, "axil.toml", "line 1", "Correct the file",
      files={"axil.toml": "[plugins\n"})  # fmt: skip
typed("a key of a build", "axil build axil-build.toml", "axil-build.toml", '"nme"', 'mean "name"',
      files={"axil-build.toml": "[dist]\nnme = 'x'\n"})  # fmt: skip

# ---------------------------------------------------------------------------------- servers
SERVE = "axil serve flow.yaml --port 0"
typed("no workflow", "axil serve", "workflow", "no workflow is named", "a folder with --edit")
typed("a port that is taken", "axil serve flow.yaml --port PORT", "127.0.0.1:PORT", "in use",
      "Choose another port")  # fmt: skip
typed("a port", "axil serve flow.yaml --port http", "--port", "'http'", "invalid int")
typed("a host", f"{SERVE} --host no.invalid", "no.invalid:0", "cannot listen", "an address of this")
typed("a protocol", f"{SERVE} --protocol grpc", "--protocol", '"grpc"', "Installed: a2a")
typed("a short token", f"AXIL_SERVE_TOKEN=abc {SERVE}", 'token of "local"', "fewer than 16",
      "secrets.token_urlsafe(32)")  # fmt: skip
typed("tokens that are no JSON", f"{SERVE} --tokens t.json", "t.json", "line 1 column 2",
      "Write a JSON file of callers", files={"t.json": "{ada"})  # fmt: skip
typed("a right", f"{SERVE} --tokens t.json", '"ada"', "not valid", "a list of look, prompts, run",
      files={"t.json": '{"ada": {"env": "ADA", "rights": ["write"]}}'})  # fmt: skip
typed("no token", "axil mcp serve flow.yaml --transport http --port 0", "--token-env",
      "AXIL_MCP_TOKEN is not set", "export AXIL_MCP_TOKEN=")  # fmt: skip
WORKER = "axil worker flow.yaml --drain"
typed("an engine", f"{WORKER} --engine locl", "--engine", '"locl"', 'Did you mean "local"')
typed("no journal", f"{WORKER} --journal off", "axil worker", "kept nowhere", "with --journal",
      mended=f"{WORKER} --journal .axil")  # fmt: skip
TRIGGERS = f"{WORKER} --triggers t.toml"
typed("triggers as a list", TRIGGERS, "t.toml", "expected a table", "Write [time]",
      files={"t.toml": "[[time]]\nworkflow = 'flow.yaml'\ncron = '0 9 * * *'\n"})  # fmt: skip
typed("a line of cron", TRIGGERS, "t.toml time", '"every day"', "minute, hour, day, month",
      files={"t.toml": "[time]\nworkflow = 'flow.yaml'\ncron = 'every day'\n"})  # fmt: skip
typed("a workflow of a trigger", TRIGGERS, "flw", "no such file", 'Did you mean "flow.yaml"',
      files={"t.toml": "[time]\nworkflow = 'flw.yaml'\ncron = '0 9 * * *'\n"})  # fmt: skip
