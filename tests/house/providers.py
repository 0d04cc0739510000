"""The page `docs/reference/providers.md`, made of the profiles of services.

Written by `make manifests`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from axil_anthropic import AnthropicModel
from axil_gemini import GeminiModel
from axil_openai import PROFILES, OpenAIModel, OpenAIResponsesModel, Profile

PAGE = "docs/reference/providers.md"
_FOLDER = "../../tests/integration/"
_TESTS = f"{_FOLDER}test_providers.py"
_FORMS = {
    "strict": "strict schema",
    "schema": "schema",
    "object": "JSON object",
    "prompt": "prompt",
}
_SENT = {"text": "text", "image": "images", "file": "PDF", "audio": "audio"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """A service with an adapter of its own."""

    title: str
    model: str
    keys: tuple[str, ...]
    forms: tuple[str, ...]
    takes: tuple[str, ...]
    thinking: str
    caching: str


NATIVE = {
    "openai_responses": Native(
        title="OpenAI, Responses",
        model="{type: openai_responses}",
        keys=("OPENAI_API_KEY",),
        forms=("strict", "schema", "object", "prompt"),
        takes=("text", "image", "file"),
        thinking="items",
        caching="automatic",
    ),
    "anthropic": Native(
        title="Anthropic",
        model="{type: anthropic}",
        keys=("ANTHROPIC_API_KEY",),
        forms=("schema", "prompt"),
        takes=("text", "image", "file"),
        thinking="blocks",
        caching="asked for",
    ),
    "gemini_native": Native(
        title="Gemini API",
        model="{type: gemini}",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        forms=("schema", "object", "prompt"),
        takes=("text", "image", "file", "audio"),
        thinking="parts",
        caching="automatic",
    ),
}
"""Adapters by the names of their cases in the tests."""


APIS = {
    "chat": "Chat Completions",
    "responses": "Responses",
    "messages": "Messages",
    "generate": "generateContent",
}
"""The four APIs that adapters speak, by the names of the stub's dialects."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of an API, and the test that has a case for each dialect in which it is."""

    title: str
    file: str
    test: str
    dialects: tuple[str, ...] = tuple(APIS)


SHAPES = (
    Shape(
        "an empty reply",
        "test_output_parts.py",
        "test_an_empty_reply_is_asked_for_again_and_never_an_answer",
    ),
    Shape(
        "citations", "test_output_parts.py", "test_a_citation_is_a_part_of_the_reply_and_is_shown"
    ),
    Shape(
        "refusals",
        "test_output_parts.py",
        "test_a_refusal_is_a_part_of_the_reply",
        ("chat", "responses", "messages"),
    ),
    Shape(
        "images that the model makes",
        "test_output_parts.py",
        "test_an_image_reaches_the_edges_the_journal_and_watchers",
        ("chat", "responses", "generate"),
    ),
    Shape(
        "the same as files of the run",
        "test_parts_by_reference.py",
        "test_what_a_model_makes_is_a_file_of_the_run_over_a_stop_and_in_a_fork",
        ("chat", "responses", "generate"),
    ),
    Shape(
        "recordings that the model makes",
        "test_provider_tools.py",
        "test_a_recording_reaches_the_edges_with_its_words",
        ("chat", "generate"),
    ),
    Shape(
        "what the provider's tools did",
        "test_provider_tools.py",
        "test_what_a_tool_did_is_shown_and_recorded_and_goes_back",
        ("responses", "messages", "generate"),
    ),
)
MESSAGE = "Try that again later."
"""The words of a failing service in the tests."""
Body = Callable[[int], Any]
"""Given a status, the body of an error with ``MESSAGE``."""


def _openai(**more: Any) -> Body:
    def body(status: int) -> Any:
        usual = {"message": MESSAGE, "type": "server_error", "param": None, "code": None}
        return {"error": usual | more}

    return body


def _numbered(**more: Any) -> Body:
    return lambda status: {"error": {"code": status, "message": MESSAGE, **more}}


def _google(status: int) -> Any:
    return _numbered(status="UNAVAILABLE")(status)


def _listed(status: int) -> Any:
    return [_google(status)]


def _flat(**more: Any) -> Body:
    return lambda status: {"message": MESSAGE, **more}


def _anthropic(status: int) -> Any:
    kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": MESSAGE}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """The way in which a service says that it failed."""

    body: Body
    shown: str
    """The place of the message in the body, for the page."""
    middle: Body | None = None
    """The body in an event in the middle of a stream; None: the same."""
    waits: tuple[str, ...] = ()
    """The ways in which it says how long to wait, besides ``retry-after``."""
    poor: tuple[int, Any] | None = None
    """The status and body that say that there is no money left."""
    dialect: str = "chat"


_QUOTA = "insufficient_quota"
WAITS = {
    "milliseconds": "`retry-after-ms`",
    "spans": "spans",
    "moment": "`x-ratelimit-reset`",
    "RetryInfo": "`retryDelay` in the body",
    "headers in the body": "`metadata.headers` in the body",
}
"""The ways to say how long to wait, besides ``retry-after``, as the page words them."""
FAILING = {
    "openai_responses": Failing(
        body=_openai(),
        shown="error.message",
        dialect="responses",
        waits=("milliseconds", "spans"),
        poor=(429, _openai(type=_QUOTA, code=_QUOTA)(429)),
    ),
    "anthropic": Failing(body=_anthropic, shown="error.message", dialect="messages"),
    "gemini_native": Failing(
        body=_google, shown="error.message", dialect="generate", waits=("RetryInfo",)
    ),
    "openai": Failing(
        body=_openai(),
        shown="error.message",
        waits=("milliseconds", "spans"),
        poor=(429, _openai(type=_QUOTA, code=_QUOTA)(429)),
    ),
    "azure": Failing(
        body=_openai(code="429"), shown="error.message", waits=("milliseconds", "spans")
    ),
    "gemini": Failing(
        body=_listed, middle=_google, shown="[0].error.message", waits=("RetryInfo",)
    ),
    "vertex": Failing(
        body=_listed, middle=_google, shown="[0].error.message", waits=("RetryInfo",)
    ),
    "bedrock": Failing(body=_flat(), shown="message", middle=_openai()),
    "mistral": Failing(
        body=_flat(object="error", type="rate_limited", param=None, code="1300"), shown="message"
    ),
    "cohere": Failing(body=_flat(id="0"), shown="message", middle=_openai()),
    "deepseek": Failing(
        body=_openai(),
        shown="error.message",
        poor=(402, _openai(type="unknown_error", code="invalid_request_error")(402)),
    ),
    "qwen": Failing(
        body=_openai(type="limit_requests", code="limit_requests"),
        shown="error.message",
        middle=_openai(),
    ),
    "kimi": Failing(
        body=lambda status: {"error": {"type": "rate_limit_reached_error", "message": MESSAGE}},
        shown="error.message",
        middle=lambda status: {"error": {"type": "engine_overloaded_error", "message": MESSAGE}},
        poor=(429, {"error": {"type": "exceeded_current_quota_error", "message": MESSAGE}}),
    ),
    "xai": Failing(
        body=lambda status: {"code": "The service is unavailable", "error": MESSAGE},
        shown="error",
        middle=lambda status: {"error": MESSAGE},
    ),
    "groq": Failing(
        body=_openai(type="tokens", code="rate_limit_exceeded"),
        shown="error.message",
        waits=("spans",),
    ),
    "openrouter": Failing(
        body=_numbered(metadata={"provider_name": "A"}),
        shown="error.message",
        waits=("moment", "headers in the body"),
        middle=lambda status: {
            **{"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"},
            "error": {"code": "server_error", "message": MESSAGE},
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
        },
        poor=(402, _numbered()(402)),
    ),
    "ollama": Failing(body=_openai(type="api_error"), shown="error.message"),
    "vllm": Failing(
        body=lambda status: _flat(object="error", type="Unavailable", code=503)(status),
        shown="message",
    ),
    "llama.cpp": Failing(body=_numbered(type="unavailable_error"), shown="error.message"),
    "lmstudio": Failing(body=lambda status: {"error": MESSAGE}, shown="error"),
    "litellm": Failing(
        body=lambda status: _openai(type="None", param="None", code=str(status))(status),
        shown="error.message",
    ),
}
"""The services of the page, as they fail."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure that services may have, and the test that has a case for each service."""

    title: str
    test: str
    is_left_out: Callable[[Failing], bool] = lambda service: False
    """The services that cannot have it."""


FAULTS = (
    Fault(
        "429, with each way to say how long to wait",
        "test_a_busy_service_says_in_any_shape_how_long_to_wait",
    ),
    Fault(
        "529 and 503; a connection that is reset, and an error that is sent, in the middle of a "
        "stream",
        "test_a_service_that_fails_is_asked_again_and_says_why",
    ),
    Fault(
        "no money left",
        "test_a_service_that_wants_money_is_not_asked_again",
        lambda service: service.poor is None,
    ),
    Fault(
        "a whole JSON answer where a stream was asked for, a reply or an error",
        "test_a_reply_in_one_piece_is_read_where_a_stream_was_asked_for",
    ),
    Fault(
        "arguments as an object, or in pieces with paths",
        "test_arguments_are_read_as_an_object_and_in_pieces_with_paths",
        lambda service: service.dialect == "responses",
    ),
)
SPOKEN = (
    ("audio in and out, tools", "test_a_person_is_heard_answered_and_served_by_tools"),
    ("each event, in the maker's own types", "test_all_events_are_those_of_the_api"),
    (
        "`speech_started` while it speaks, or plays",
        "test_an_interruption_silences_the_agent_which_knows_what_was_heard",
    ),
    (
        "a commit of the client; silence at the end",
        "test_silence_is_no_turn_and_what_is_left_at_the_end_is_one",
    ),
    ("no turn detection", "test_an_empty_chunk_ends_what_is_said_where_nothing_detects_it"),
    ("a transcription that failed", "test_what_cannot_be_written_down_is_said_to_be_so"),
    ("a lost socket", "test_a_lost_connection_is_made_anew_and_given_what_was_said"),
    (
        "401 and 429 of the handshake",
        "test_a_service_that_refuses_says_why_and_the_key_is_not_shown",
    ),
    (
        "a failed response; an `error` event",
        "test_a_failed_response_is_asked_for_again_and_a_mistake_is_not",
    ),
    ("audio tokens", "test_audio_has_its_own_price"),
    ("the usage of a transcription", "test_writing_down_what_is_heard_has_its_price"),
    (
        "a recording, answered with one",
        "test_a_recording_is_answered_with_a_recording_and_a_text_with_a_text",
    ),
)
"""Shapes of the Realtime API, and the test of each."""
SPOKEN_TESTS = "plugins/axil-openai/tests/test_realtime.py"
TOOL_TEST = "test_a_tool_is_asked_for_as_the_provider_describes_it_or_refused"
TOOLS = {
    "web_search": "web search",
    "code_interpreter": "code",
    "file_search": "files",
    "image_generation": "images",
    "computer": "a computer, whose actions are carried out here",
    "mcp": "MCP servers, which the provider calls",
}
"""Kinds of `provider_tool`."""
ADAPTERS = {"responses": OpenAIResponsesModel, "messages": AnthropicModel, "generate": GeminiModel}


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Providers"
    yield ""
    yield "Made of the profiles in `axil_openai.PROFILES`; `make manifests` writes it."
    yield ""
    yield "All take text and tools. *Structured output*: the forms in the order in which"
    yield "`structured_output: auto` tries them, the next one where the service refuses, as it may"
    yield "for some of its models. *Takes*: what is sent; where a model differs, set `modalities`."
    yield "*Thinking*: where thoughts come. Tests ask the kit's stub, which refuses what is not in"
    yield "the row. Bedrock, Cohere and Vertex AI are asked at their endpoints that speak as OpenAI"
    yield "does; what these do not have (Claude on Bedrock), and other services, through a LiteLLM"
    yield "proxy."
    yield ""
    columns = ("provider", "model in a file", "key", "structured output", "takes")
    yield f"| {' | '.join((*columns, 'thinking', 'cache', 'test'))} |"
    yield f"|{'---|' * 8}"
    for name, native in NATIVE.items():
        yield _row(name, native.title, native.model, native)
    for name, profile in PROFILES.items():
        if name == "openai":
            model = "{type: openai}"
        else:
            model = f"{{type: openai, profile: {name}}}"
        title = profile.title if name != "openai" else "OpenAI, Chat Completions"
        yield _row(name, title, model, profile)
    yield ""
    yield "## Addresses"
    yield ""
    yield "A profile gives the address, unless `base_url` does. Those with words in capitals need"
    yield "`base_url`; a token of Vertex lives an hour, and is given as `api_key`."
    yield ""
    yield "| profile | address |"
    yield "|---|---|"
    for name, profile in PROFILES.items():
        yield f"| `{name}` | `{profile.place or profile.example}` |"
    yield ""
    yield "Without `profile`, a `base_url` at one of the hosts of a provider has its profile."
    yield ""
    yield "## Shapes"
    yield ""
    yield "How the APIs say things, and the test that has a case for each. Thoughts have a"
    yield "[table of their own](../how-to/use-a-real-model.md)."
    yield ""
    yield f"| shape | {' | '.join(APIS.values())} | test |"
    yield f"|{'---|' * (len(APIS) + 2)}"
    for each in SHAPES:
        has = ("yes" if dialect in each.dialects else "" for dialect in APIS)
        yield f"| {each.title} | {' | '.join(has)} | [{each.test}]({_FOLDER}{each.file}) |"
    yield ""
    yield from _failures()
    yield "## The Realtime API"
    yield ""
    yield "`{type: openai_realtime}`, of OpenAI and of servers that speak as it does:"
    yield "[talk with an agent](../how-to/talk-by-voice.md)."
    yield ""
    yield "| shape | test |"
    yield "|---|---|"
    for title, test in SPOKEN:
        yield f"| {title} | [{test}](../../{SPOKEN_TESTS}) |"
    yield ""
    yield "## Tools of providers"
    yield ""
    yield "`{type: provider_tool, config: {kind: web_search}}` among an agent's tools, in Python"
    yield '`ProviderTool("web_search")`: [how](../how-to/use-provider-tools.md). Other models say'
    yield "that they have none (AX984). Test:"
    yield f"`{TOOL_TEST}`"
    yield f"in [test_provider_tools.py]({_FOLDER}test_provider_tools.py), a case for each cell."
    yield ""
    yield f"| `kind` | is | {' | '.join(APIS[dialect] for dialect in ADAPTERS)} |"
    yield f"|{'---|' * (len(ADAPTERS) + 2)}"
    for kind, title in TOOLS.items():
        has = ("yes" if kind in model.provider_tools else "" for model in ADAPTERS.values())
        yield f"| `{kind}` | {title} | {' | '.join(has)} |"


def _failures() -> Iterator[str]:
    yield "## Failures"
    yield ""
    yield "What providers may do wrong, and the test that has a case for each that can:"
    yield ""
    yield "| failure | test |"
    yield "|---|---|"
    for each in FAULTS:
        yield f"| {each.title} | [{each.test}]({_TESTS}) |"
    yield ""
    yield "How each says so. *Waits*: the ways to say how long to wait, besides `retry-after` in"
    yield "seconds and as a date; *spans* are `x-ratelimit-reset-tokens: 1m0s` and the like. *No"
    yield "money*: an error with this status is known to say so, and it is not asked again."
    yield ""
    yield "| provider | its words are in | waits | no money |"
    yield "|---|---|---|---|"
    for name, each in FAILING.items():
        poor = "" if each.poor is None else str(each.poor[0])
        waits = ", ".join(WAITS[way] for way in each.waits)
        yield f"| `{name}` | `{each.shown}` | {waits} | {poor} |"
    yield ""


def _row(name: str, title: str, model: str, has: Profile | Native) -> str:
    takes = OpenAIModel.carried if has.takes is None else has.takes
    cells = (
        title,
        f"`{model}`",
        " or ".join(f"`{key}`" for key in has.keys) or "`api_key`, if any",
        ", ".join(_FORMS[form] for form in has.forms),
        ", ".join(_SENT[each] for each in takes),
        f"`{has.thinking}`" if isinstance(has, Profile) and has.thinking else has.thinking,
        has.caching,
        f"[{name}]({_TESTS})",
    )
    return f"| {' | '.join(cells)} |"
