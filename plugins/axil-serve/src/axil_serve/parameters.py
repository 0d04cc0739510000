"""Parameters of OpenAI's requests: those that are served, and the values that ask for nothing.

A parameter that is not served is refused and never ignored: a workflow has the settings of its
models. It may be sent with the value that it has where it is left out; null is as if it was not
sent. ``docs/how-to/serve-openai-clients.md`` has the same tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from axil.plugin import format_names
from axil_serve.errors import BadRequest

KEPT: Final = ("safety_identifier", "user")
"""Parameters about a client's own user: they are kept with the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of one route."""

    served: frozenset[str]
    neutral: Mapping[str, tuple[Any, ...]]
    """Values of those that are not served which are taken all the same, by name."""


_BOTH: Final[Mapping[str, tuple[Any, ...]]] = {
    "parallel_tool_calls": (True, False),  # there are no tools to call
    "service_tier": ("auto", "default"),
    "store": (True,),  # runs are kept
    "temperature": (1,),
    "tool_choice": ("auto", "none"),
    "tools": ([],),
    "top_logprobs": (0,),
    "top_p": (1,),
}
CHAT: Final = Parameters(
    served=frozenset(
        ("messages", "metadata", "model", "response_format", "stream", "stream_options", *KEPT)
    )
    | {"input"},  # of axil: the input of the workflow
    neutral={
        **_BOTH,
        "frequency_penalty": (0,),
        "function_call": ("auto", "none"),
        "functions": ([],),
        "logit_bias": ({},),
        "logprobs": (False,),
        "modalities": (["text"],),
        "n": (1,),
        "presence_penalty": (0,),
        "stop": ([],),
        "verbosity": ("medium",),
    },
)
RESPONSES: Final = Parameters(
    served=frozenset(
        (
            "background",
            "conversation",
            "input",
            "instructions",
            "metadata",
            "model",
            "previous_response_id",
            "stream",
            "stream_options",
            "text",
            *KEPT,
        )
    ),
    neutral={
        **_BOTH,
        "context_management": ([],),
        "include": ([],),
        "truncation": ("disabled",),
    },
)
_STREAM_OPTIONS: Final = Parameters(
    served=frozenset(["include_usage"]), neutral={"include_obfuscation": (False,)}
)
TEXT: Final = Parameters(served=frozenset(["format"]), neutral={"verbosity": ("medium",)})


def check_parameters(body: Mapping[str, Any], parameters: Parameters, where: str = "") -> None:
    """Check that a request has no parameter that is not served.

    Raises: BadRequest (AX966): it has some; all are named.
    """
    refused = sorted(
        name
        for name, value in body.items()
        if value is not None
        and name not in parameters.served
        and not any(_is_same(value, each) for each in parameters.neutral.get(name, ()))
    )
    if refused:
        names = [f"{where}{name:.100}" for name in refused]
        message = f"a workflow does not follow {format_names(names)}."
        hint = "Leave it out: the workflow has the settings of its models, tools and limits."
        taken = [
            f"{where}{name} may be {' or '.join(map(json.dumps, values))}"
            for name in refused
            if (values := parameters.neutral.get(name))
        ]
        raise BadRequest("AX966", message, " ".join([hint, *(f"{e}." for e in taken)]), names[0])
    options: Any = body.get("stream_options")
    if not where and isinstance(options, dict):
        check_parameters(cast("dict[str, Any]", options), _STREAM_OPTIONS, "stream_options.")


def kept_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request that are kept with its run."""
    return {name: body[name] for name in KEPT if body.get(name) is not None}


def _is_same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


__all__ = ["CHAT", "RESPONSES", "TEXT", "Parameters", "check_parameters", "kept_of"]
