"""A workflow as a tool: what it takes and gives as JSON Schemas, what a person is asked as a form,
what comes out as a result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from axil import GraphSpec, Question, Result, Workflow
from axil.plugin import EXIT, is_messages, thaw
from axil_journals import input_schema
from axil_mcp.errors import Unserved

_REFUSED: Final = re.compile(r"[^A-Za-z0-9_-]+")
ANSWER_TOOL: Final = "answer_run"
"""The tool by which clients answer that cannot be asked."""
RUN_ID: Final = "axil/run_id"
"""The key of the run's id in the ``_meta`` of a call that failed."""
ANSWER_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "run_id": {"type": "string", "description": "The run that asks."},
        "answer": {"description": "A text; true or false for an approval; an object for a form."},
    },
    "required": ["run_id", "answer"],
    "additionalProperties": False,
}
_YES: Final = ("yes", "y", "true", "ok", "approve", "approved")
_MOST_CHARS: Final = 4000
"""Characters of an error that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One workflow, as a client sees it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    workflow: Workflow

    def given(self, arguments: Mapping[str, Any]) -> Any:
        """Return a call's arguments as the workflow's input."""
        return (
            arguments.get("input", "")
            if self.workflow.plan.graph.spec.payload == "messages"
            else dict(arguments)
        )


def served(workflows: Mapping[str, Workflow]) -> dict[str, Served]:
    """Return the tools, by name.

    Raises: Unserved (AX935): two have one name; SpecError: a workflow does not compile.
    """
    tools: dict[str, Served] = {}
    for given, workflow in workflows.items():
        name = _REFUSED.sub("_", given).strip("_")[:64]
        if not name or name in tools:
            message = (
                f'"{given}" cannot be the name of a tool.'
                if not name
                else f'two workflows have the name "{name}".'
            )
            raise Unserved(
                "AX935", message, "Name them by letters, digits, _ and -, each differently."
            )
        spec = workflow.plan.graph.spec
        tools[name] = Served(
            name=name,
            description=spec.description or f"Runs the workflow {given}.",
            input_schema=input_schema(spec),
            output_schema=_output(spec),
            workflow=workflow,
        )
    return tools


def _output(spec: GraphSpec) -> dict[str, Any]:
    """Describe the tool's result: what comes of a run, and which run it was."""
    if spec.payload == "messages":
        output: dict[str, Any] = {"type": ["string", "null"]}
    elif spec.payload == "state":
        output = {"type": "object"}
    else:
        output = {
            "type": "object",
            "properties": {
                name: {"description": text} if text else {}
                for edge in spec.edges
                if edge.target == EXIT
                for name, text in (edge.keys or {}).items()
            },
        }
    return {
        "type": "object",
        "properties": {"output": output, "run_id": {"type": "string"}},
        "required": ["output", "run_id"],
    }


# --------------------------------------------------------------------------------------------------


def form_of(question: Question) -> dict[str, Any]:
    """Return the question to a person as the flat schema that clients can show."""
    if question.kind == "approval":
        approved = {"approved": {"type": "boolean", "title": "Approve?"}}
        return {"type": "object", "properties": approved, "required": ["approved"]}
    if question.kind == "form":
        fields: Mapping[Any, Any] = question.data.get("fields") or {}
        asked: dict[str, Any] = {
            str(name): {"type": "string", "description": str(text or name)}
            for name, text in fields.items()
        }
        return {"type": "object", "properties": asked, "required": list(asked)}
    answer: dict[str, Any] = {"type": "string", "title": "Answer"}
    if question.options:
        answer["enum"] = list(question.options)
    return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}


def content_of(question: Question, answer: Any) -> dict[str, Any]:
    """Return one value as the content of the question's form.

    >>> content_of(Question(text="Send?", kind="approval"), " Yes")
    {'approved': True}
    """
    if question.kind == "approval":
        is_yes = isinstance(answer, str) and answer.strip().lower() in _YES
        return {"approved": answer if isinstance(answer, bool) else is_yes}
    if question.kind == "form":
        return cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    return {"answer": answer}


def reply_of(question: Question, content: Mapping[str, Any]) -> Any:
    """Return a form's content as the answer to the question."""
    if question.kind == "approval":
        return bool(content.get("approved"))
    return dict(content) if question.kind == "form" else content.get("answer")


def question_text(question: Question) -> str:
    """Return a question in words."""
    stated = (
        str(question.data.get("description") or ""),
        question.text,
        f"One of: {', '.join(question.options)}" if question.options else "",
    )
    return "\n".join(dict.fromkeys(part for part in stated if part))


# --------------------------------------------------------------------------------------------------


def can_answer(ctx: Any) -> bool:
    """Return whether the client can be asked by the answer to its request."""
    return getattr(ctx.session.client_capabilities, "elicitation", None) is not None


def asking_call(questions: Sequence[Question], state: str) -> Any:
    """Return the result of a call that asks; the client calls again with ``state``."""
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

    asked = {
        f"q{number}": ElicitRequest(
            params=ElicitRequestFormParams(
                message=question_text(each), requested_schema=form_of(each)
            )
        )
        for number, each in enumerate(questions, 1)
    }
    return InputRequiredResult(input_requests=dict(asked), request_state=state)


def failed_call(text: str, run_id: str = "") -> Any:
    """Return the result of a call that failed; ``run_id``: the run that it was."""
    from mcp_types import CallToolResult, TextContent

    content: list[Any] = [TextContent(type="text", text=str(plain(text)))]
    # not as structured content: clients hold that against the output schema, errors too
    meta: Any = {RUN_ID: run_id} if run_id else None
    return CallToolResult(content=content, is_error=True, _meta=meta)


def structured(result: Result) -> dict[str, Any]:
    """Return a finished run, as the output schema says."""
    output = (
        result.attributes
        if result.state is not None and result.output is result.state
        else result.output
    )
    return {"output": plain(output), "run_id": result.run_id}


def text_of(output: Any) -> str:
    """Return an output as text; of a state with a conversation the last message.

    >>> text_of({"messages": [{"role": "assistant", "content": "Hello."}]}), text_of({"n": 1})
    ('Hello.', '{"n": 1}')
    """
    if isinstance(output, dict):
        said: Any = cast("dict[str, Any]", output).get("messages")
        if said and is_messages(said) and isinstance(said[-1]["content"], str):
            return said[-1]["content"]
    return (
        output
        if isinstance(output, str)
        else ""
        if output is None
        else json.dumps(output, ensure_ascii=False)
    )


def failure(result: Result) -> str:
    """Return why a run is not done, in words for the caller."""
    if result.questions:
        asked = "\n\n".join(question_text(question) for question in result.questions)
        text = "The workflow asks, and this client cannot be asked (it has no elicitation)"
        hint = f'Ask the person, and call {ANSWER_TOOL} with the run_id "{result.run_id}".'
        return f"{text}:\n\n{asked:.{_MOST_CHARS}}\n\n{hint}"
    return str(result.error or f"the run ended as {result.status}.")[:_MOST_CHARS]


def plain(value: Any) -> Any:
    """Return a value in the types of JSON: what has no counterpart becomes text."""
    text = json.dumps(thaw(value), ensure_ascii=False, default=_as_data)
    return json.loads(text.encode("utf-8", "replace"), parse_constant=str)


def _as_data(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)
