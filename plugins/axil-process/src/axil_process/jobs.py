"""A body and its firing as plain data, for executors that run bodies in another process, or on
another machine.

No code is sent and nothing is unpickled: a *job* is the name of a component with its config, or of
a function that can be imported, with the node's rules about state; a firing is its payloads and its
state, as a journal would keep them. The receiver makes the body from the job once, by the same
planner.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from axil import (
    AxilError,
    ComponentRef,
    CustomNode,
    EdgeSpec,
    GraphSpec,
    NodeSpec,
    Out,
    Problem,
    Schema,
    SpecError,
    State,
    Token,
)
from axil.plugin import (
    ENTRY,
    EXIT,
    CompileOptions,
    FunctionNode,
    Grants,
    Plan,
    Task,
    compile_spec,
    kept_field,
    local_field,
)
from axil_journals import decode_delta, decode_value, encode_delta, encode_value

Job = Mapping[str, Any]
"""JSON data; two jobs with one ``digest`` are the same body. ``fields``, if it is there: the fields
of the state that the body sees; ``resources``: what it needs of a machine."""


def job_of(
    spec: NodeSpec,
    payload: str,
    schema: Schema,
    *,
    state: str = "",
    grants: Grants | None = None,
) -> Job:
    """Return the job of a node's own body.

    Args:
        spec: the node, in a graph whose edges carry ``payload`` and whose state is of ``schema``.
        state: where the class of a typed state can be imported from, ``module:Class``.
        grants: those of the file that names the node; None: Python code names it.
    Raises: SpecError (AX544): it cannot be named.
    """
    job: dict[str, Any] = {"node": spec.id, "payload": payload}
    if spec.use is not None:
        job["use"] = {
            "type": spec.use.type,
            "config": _plain(spec, "its config", dict(spec.use.config)),
        }
        if grants is not None:
            job["grants"] = {"words": sorted(grants.words), "folder": grants.folder}
    else:
        job["function"], job["kind"] = _function(spec)
    for name in ("pull", "push", "attributes"):
        if getattr(spec, name) is not None:
            job[name] = _plain(spec, f"its {name}", dict(getattr(spec, name)))
    if state:
        job["state"] = state
    elif schema.view is not None or any(
        field.encode is not None for field in schema.fields.values()
    ):
        raise _unnamed(
            spec, "its state is typed, and its class is not named", 'Set state: "module:Class".'
        )
    if resources := spec.extras.get("resources"):
        job["resources"] = dict(resources)
    if spec.pull is not None and payload != "state" and not schema.closed:
        own = (local_field(spec.id), kept_field(spec.id))
        job["fields"] = sorted({*spec.pull, *own})
    text = json.dumps(job, sort_keys=True, separators=(",", ":"))
    return {**job, "digest": hashlib.sha256(text.encode()).hexdigest()}


def _plain(spec: NodeSpec, what: str, value: Any) -> Any:
    try:
        return encode_value(json.loads(json.dumps(value, allow_nan=False)))
    except (TypeError, ValueError, AxilError) as error:
        raise _unnamed(
            spec, f"{what} is not plain data ({error})", "Give what can be written in a file."
        ) from None


def _function(spec: NodeSpec) -> tuple[str, str]:
    """Return the import path of a node's function, and the settings with which the node uses it."""
    body, kind = spec.body, "function"
    if isinstance(body, CustomNode):
        if body.memories or body.tools or body.retrievers:
            raise _unnamed(
                spec, "it is given memories, tools or retrievers", "Make them inside the function."
            )
        body, kind = body.forward, "custom"
    elif isinstance(body, FunctionNode):
        body = body.function
    module, name = getattr(body, "__module__", None), getattr(body, "__qualname__", "")
    if not callable(body) or not isinstance(module, str) or not name or "<" in name:
        raise _unnamed(
            spec, "it is no function of a module", "Put the function at the top of a module."
        )
    if module == "__main__":
        raise _unnamed(
            spec,
            "it is in the script that was started",
            "Put the function into a module that the script imports.",
        )
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not body:
        raise _unnamed(
            spec,
            f"{module}:{name} is something else",
            "Is it decorated? Give the function a name of its own.",
        )
    return f"{module}:{name}", kind


def _unnamed(spec: NodeSpec, why: str, hint: str) -> SpecError:
    where = str(spec.place) if spec.place is not None else f'node "{spec.id}"'
    return SpecError(Problem("AX544", where, f"its body cannot be run elsewhere: {why}.", hint))


# --------------------------------------------------------------------------------------------------


def plan_of_job(job: Job) -> Plan:
    """Return a plan of one node, whose body it is.

    Raises: SpecError, PluginError, ImportError: it cannot be made here.
    """
    use = (
        ComponentRef(type=job["use"]["type"], config=decode_value(job["use"]["config"]))
        if "use" in job
        else None
    )
    given = job.get("grants")
    grants = given and Grants(words=frozenset(given["words"]), folder=given["folder"])
    # of Python code the sender has allowed it; what a file names is as bounded here as there
    setting = CompileOptions(allow_code=grants is None, grants=grants)
    if use is not None and any(
        hasattr(setting.resolve("nodes", use.type, job["node"]), name) for name in ("bind", "scope")
    ):
        message = (
            f'its body cannot be run elsewhere: a "{use.type}" is bound to the graph around it.'
        )
        hint = "Run its heavy work in a node of its own."
        raise SpecError(Problem("AX544", f'node "{job["node"]}"', message, hint))
    body: Any = None
    if use is None:
        kind = CustomNode if job["kind"] == "custom" else FunctionNode
        body = kind(imported(job["function"]))
    rules = {
        name: decode_value(job[name]) for name in ("pull", "push", "attributes") if name in job
    }
    spec = GraphSpec(
        id=job["node"],
        nodes=(NodeSpec(id=job["node"], use=use, body=body, **rules),),
        edges=(
            EdgeSpec(source=ENTRY, target=job["node"]),
            EdgeSpec(source=job["node"], target=EXIT),
        ),
        schema=_schema(job["state"]) if "state" in job else None,
        payload=job["payload"],
        extras={} if grants is None else {"grants": grants},
    )
    return compile_spec(spec, setting)


def imported(path: str) -> Any:
    """Return the object at ``module:name``. Raises: ImportError, AttributeError."""
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _schema(path: str) -> Schema:
    from axil import schema_of  # axil: only a typed state needs it

    return schema_of(imported(path))


# --------------------------------------------------------------------------------------------------


def encode_task(
    task: Task, schema: Schema, fields: Collection[str] | None = None
) -> dict[str, Any]:
    """Return a firing as plain data, with these fields of its state; None: with all.

    Raises: JournalError (AX501): a payload or a value of the state is not plain data.
    """
    return {
        "frame": list(task.frame),
        "ordinal": list(task.ordinal),
        "payloads": [
            [token.edge, encode_value(token.payload), list(token.ordinal)] for token in task.tokens
        ],
        "state": encode_delta(
            {name: value for name, value in task.state.items() if fields is None or name in fields},
            schema,
        ),
    }


def decode_task(plain: Mapping[str, Any], plan: Plan) -> Task:
    """Return the firing that ``encode_task`` was given."""
    schema = plan.graph.schema
    state: State = schema.start(decode_delta(plain["state"], schema))
    tokens = tuple(
        Token(edge, decode_value(payload), state, tuple(ordinal))
        for edge, payload, ordinal in plain["payloads"]
    )
    return Task(tuple(plain["frame"]), plan.nodes[0], tuple(plain["ordinal"]), tokens, state)


def encode_outcome(out: Out, schema: Schema) -> dict[str, Any]:
    """Return an outcome as plain data. Raises: JournalError (AX501)."""
    to: Sequence[str] | None = None if out.to is None else sorted(out.to)
    return {"output": encode_value(out.output), "delta": encode_delta(out.delta, schema), "to": to}


def decode_outcome(plain: Mapping[str, Any], schema: Schema) -> Out:
    """Return the outcome that ``encode_outcome`` was given."""
    to = None if plain["to"] is None else frozenset(cast("list[str]", plain["to"]))
    return Out(decode_value(plain["output"]), decode_delta(plain["delta"], schema), to)
