"""The settings of a DevAll agent and of DevAll's memories, as its files write them.

What has no effect there has none here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from axil.plugin import Secret, refers_to

UNUSED = "Without effect, in DevAll too."
Stage = Literal["pre_gen_thinking", "gen", "post_gen_thinking", "finished"]


class Strict(BaseModel):
    """Settings: an unknown key is an error, or in files of version 0 a warning."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# --------------------------------------------------------------------------------------------------


class Named(Strict):
    """A function."""

    name: str = Field(min_length=1, description="The function, or MODULE:All for all of a module.")


class FunctionTools(Strict):
    """The functions to offer."""

    tools: list[Named] = Field(
        default_factory=list[Named],
        description="Functions; {name: MODULE:All} stands for all of a module.",
    )
    timeout: float | None = Field(None, description=UNUSED)
    auto_load: bool = Field(True, description=UNUSED)


class RemoteServer(Strict):
    """An MCP server that is reached over HTTP."""

    server: str = Field(min_length=1, description="Its address.")
    headers: dict[str, str] | None = Field(None, description="Sent with every request.")
    timeout: float | None = Field(
        None, gt=0, description="Seconds to wait for an answer; without it, 10."
    )
    cache_ttl: float | None = Field(None, description=UNUSED)
    tool_sources: list[str] | None = Field(None, description=UNUSED)


class LocalServer(Strict):
    """An MCP server that is started here and spoken to over its standard input and output."""

    command: str = Field(min_length=1, description="The program.")
    args: list[str] = Field(default_factory=list[str], description="Its arguments.")
    cwd: str | None = Field(None, description="The folder it runs in.")
    env: dict[str, str] | None = Field(None, description="Further environment variables.")
    inherit_env: bool = Field(
        True, description="Without effect: it sees what it needs to start, and env."
    )
    startup_timeout: float | None = Field(None, description=UNUSED)
    wait_for_log: str | None = Field(None, description=UNUSED)
    cache_ttl: float | None = Field(None, description=UNUSED)


class _Tooling(Strict):
    prefix: str | None = Field(
        None, description="Put before the names of the tools, with an underscore."
    )


class Functions(_Tooling):
    """Functions of the process."""

    type: Literal["function"]
    config: FunctionTools


class Remote(_Tooling):
    """The tools of an MCP server that is reached over HTTP."""

    type: Literal["mcp_remote"]
    config: RemoteServer


class Local(_Tooling):
    """The tools of an MCP server that is started here."""

    type: Literal["mcp_local"]
    config: LocalServer


Tooling = Annotated[Functions | Remote | Local, Field(discriminator="type")]

# --------------------------------------------------------------------------------------------------


class ReflectionPrompt(Strict):
    """The question of a reflection."""

    reflection_prompt: str = Field(min_length=1, description="What is to be done with the reply.")


class Thinking(Strict):
    """The steps of the agent between its reply and its message."""

    type: Literal["reflection"]
    config: ReflectionPrompt


class Attachment(Strict):
    """The use that an agent makes of a memory of its graph."""

    name: str = Field(min_length=1, description="The memory.")
    retrieve_stage: list[Stage] = Field(
        default_factory=lambda: ["gen"], description="When it is read."
    )
    top_k: int = Field(3, ge=1, description="How many items are read.")
    similarity_threshold: float = Field(
        -1.0, description="Less similar items are not read; negative: all are."
    )
    read: bool = Field(True, description="Whether it is read.")
    write: bool = Field(True, description="Whether replies are put into it.")

    @field_validator("retrieve_stage", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return ["gen"] if value is None else [value] if isinstance(value, str) else value


class Skills(Strict):
    """The skills that the agent may use."""

    enabled: bool = Field(False, description="Whether it has any.")
    allow: list[Named] = Field(
        default_factory=list[Named], description="Which; none named: all that are found."
    )


class Retry(Strict):
    """The rules for repeating a failed call to a model."""

    enabled: bool = Field(True, description="Whether it is.")
    max_attempts: int = Field(5, ge=1, description="Calls in all.")
    min_wait_seconds: float = Field(1.0, ge=0, description="The shortest wait.")
    max_wait_seconds: float = Field(6.0, ge=0, description="The longest wait.")
    retry_on_status_codes: list[int] | None = Field(
        None, description="After these HTTP statuses; empty: after failures that may pass."
    )
    retry_on_exception_types: list[str] | None = Field(
        None, description="After errors of these classes."
    )
    non_retry_exception_types: list[str] | None = Field(
        None, description="Never after errors of these classes."
    )
    retry_on_error_substrings: list[str] | None = Field(
        None, description="After errors with this text."
    )


class AgentConfig(Strict):
    """The settings of a DevAll agent."""

    provider: str = Field(
        min_length=1,
        description="The model's adapter: openai, gemini, or any that is installed.",
        json_schema_extra=refers_to("models"),
    )
    name: str = Field(min_length=1, description="The model.")
    role: str | None = Field(None, description="The system's message; braces in it are text.")
    base_url: str | None = Field(
        None, description="Where the model is; empty: where the adapter thinks it is."
    )
    api_key: Secret | None = Field(
        None, description="Its key, as ${NAME}.", json_schema_extra={"x-axil-usual": True}
    )
    params: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description="Passed to the model: temperature, max_tokens, …",
    )
    input_mode: Literal["messages", "prompt"] = Field(
        "messages", description="prompt: all that comes in as one user message, in blocks."
    )
    tooling: list[Tooling] = Field(default_factory=list[Tooling], description="Its tools.")
    thinking: Thinking | None = Field(
        None, description="What it does with its reply before it is sent."
    )
    memories: list[Attachment] = Field(
        default_factory=list[Attachment], description="The memories of the graph that it uses."
    )
    skills: Skills | None = Field(None, description="Its skills.")
    retry: Retry | None = Field(
        None,
        description="When a model that failed is asked again; without it: as the adapter does.",
    )


# --------------------------------------------------------------------------------------------------


class Embedding(Strict):
    """The embedder by which texts of a memory are compared."""

    provider: str = Field(
        min_length=1, description="The embedder: openai, or any that is installed."
    )
    model: str | None = Field(default=None, description="Its model.")
    base_url: str | None = Field(default=None, description="Where it is.")
    api_key: Secret | None = Field(
        default=None,
        description="Its key, as ${NAME}.",
        json_schema_extra={"x-axil-usual": True},
    )
    params: dict[str, Any] = Field(default_factory=dict[str, Any], description="Without effect.")


class SimpleConfig(Strict):
    """``simple``: what agents said, found by likeness."""

    memory_path: str | None = Field(
        None, description="The file it is kept in, for all runs; empty or auto: in the run's state."
    )
    embedding: Embedding | None = Field(
        None, description="How texts are compared; without it: by their words."
    )


class Source(Strict):
    """Files that are searched."""

    path: str = Field(min_length=1, description="A file or a folder, below the workflow's.")
    file_types: list[str] | None = Field(
        None, description="Suffixes: [.md, .txt]; without it, all files that are text."
    )
    recursive: bool = Field(True, description="Whether folders inside are searched.")
    encoding: str = Field("utf-8", description="Of the files.")


class FileConfig(Strict):
    """``file``: files, found by likeness; read only."""

    file_sources: list[Source] = Field(min_length=1, description="What is searched.")
    index_path: str | None = Field(
        None, description="Where vectors are kept, so that they are made once."
    )
    embedding: Embedding | None = Field(
        None, description="How texts are compared; without it: by their words."
    )


class BlackboardConfig(Strict):
    """``blackboard``: what agents said, the newest."""

    memory_path: str | None = Field(
        None, description="The file it is kept in, for all runs; empty or auto: in the run's state."
    )
    max_items: int = Field(1000, ge=1, description="How many count, the newest.")


class Mem0Config(Strict):
    """``mem0``: a memory that the service Mem0 keeps."""

    api_key: Secret = Field(description="Its key, as ${NAME}.")
    org_id: str | None = Field(None, description="The organisation.")
    project_id: str | None = Field(None, description="The project.")
    user_id: str | None = Field(None, description="Whose memories: a user's …")
    agent_id: str | None = Field(None, description="… or an agent's.")
