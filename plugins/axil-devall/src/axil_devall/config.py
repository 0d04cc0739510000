"""The settings of a DevAll agent and of DevAll's memories, as its files write them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from axil.plugin import Secret, refers_to

UNUSED = "Has no effect, as in DevAll."
Stage = Literal["pre_gen_thinking", "gen", "post_gen_thinking", "finished"]


class Strict(BaseModel):
    """Settings: an unknown key is an error, or in files of version 0 a warning."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# --------------------------------------------------------------------------------------------------


class Named(Strict):
    """A function."""

    name: str = Field(
        min_length=1,
        description="The name of a function, or MODULE:All for all functions of a module.",
    )


class FunctionTools(Strict):
    """The functions to offer."""

    tools: list[Named] = Field(
        default_factory=list[Named],
        description="The functions; {name: MODULE:All} means all functions of a module.",
    )
    timeout: float | None = Field(None, description=UNUSED)
    auto_load: bool = Field(True, description=UNUSED)


class RemoteServer(Strict):
    """An MCP server that is reached over HTTP."""

    server: str = Field(min_length=1, description="Its address.")
    headers: dict[str, str] | None = Field(None, description="Sent with every request.")
    timeout: float | None = Field(
        None, gt=0, description="Seconds to wait for an answer; the default is 10."
    )
    cache_ttl: float | None = Field(None, description=UNUSED)
    tool_sources: list[str] | None = Field(None, description=UNUSED)


class LocalServer(Strict):
    """An MCP server that is started here and reached over its standard input and output."""

    command: str = Field(min_length=1, description="The program.")
    args: list[str] = Field(default_factory=list[str], description="Its arguments.")
    cwd: str | None = Field(None, description="The folder it runs in.")
    env: dict[str, str] | None = Field(None, description="Additional environment variables.")
    inherit_env: bool = Field(
        True,
        description="Has no effect: the server gets env and the variables that it needs to start.",
    )
    startup_timeout: float | None = Field(None, description=UNUSED)
    wait_for_log: str | None = Field(None, description=UNUSED)
    cache_ttl: float | None = Field(None, description=UNUSED)


class _Tooling(Strict):
    prefix: str | None = Field(
        None, description="A prefix of the tools' names, followed by an underscore."
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

    reflection_prompt: str = Field(
        min_length=1, description="The instruction by which the model revises its reply."
    )


class Thinking(Strict):
    """The steps of the agent between its reply and its message."""

    type: Literal["reflection"]
    config: ReflectionPrompt


class Attachment(Strict):
    """The use that an agent makes of a memory of its graph."""

    name: str = Field(min_length=1, description="The memory.")
    retrieve_stage: list[Stage] = Field(
        default_factory=lambda: ["gen"], description="The stages at which the memory is read."
    )
    top_k: int = Field(3, ge=1, description="The largest number of items that are read.")
    similarity_threshold: float = Field(
        -1.0,
        description="The lowest similarity of an item that is read; a negative number reads all "
        "items.",
    )
    read: bool = Field(True, description="Whether the memory is read.")
    write: bool = Field(True, description="Whether replies are written to the memory.")

    @field_validator("retrieve_stage", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return ["gen"] if value is None else [value] if isinstance(value, str) else value


class Skills(Strict):
    """The skills that the agent may use."""

    enabled: bool = Field(False, description="Whether the agent has skills.")
    allow: list[Named] = Field(
        default_factory=list[Named],
        description="The names of the skills; empty: all that are found.",
    )


class Retry(Strict):
    """The rules for repeating a failed call to a model."""

    enabled: bool = Field(True, description="Whether failed calls are repeated.")
    max_attempts: int = Field(5, ge=1, description="The number of calls, the first one included.")
    min_wait_seconds: float = Field(1.0, ge=0, description="The shortest wait.")
    max_wait_seconds: float = Field(6.0, ge=0, description="The longest wait.")
    retry_on_status_codes: list[int] | None = Field(
        None,
        description="HTTP statuses after which a call is repeated; empty: after temporary "
        "failures.",
    )
    retry_on_exception_types: list[str] | None = Field(
        None, description="Classes of errors after which a call is repeated."
    )
    non_retry_exception_types: list[str] | None = Field(
        None, description="Classes of errors after which a call is never repeated."
    )
    retry_on_error_substrings: list[str] | None = Field(
        None, description="Texts of error messages after which a call is repeated."
    )


class AgentConfig(Strict):
    """The settings of a DevAll agent."""

    provider: str = Field(
        min_length=1,
        description="The model's adapter: openai, gemini, or any that is installed.",
        json_schema_extra=refers_to("models"),
    )
    name: str = Field(min_length=1, description="The model.")
    role: str | None = Field(None, description="The system message; braces in it are plain text.")
    base_url: str | None = Field(
        None, description="The URL of the model's service; empty: the adapter's default."
    )
    api_key: Secret | None = Field(
        None, description="The service's key, as ${NAME}.", json_schema_extra={"x-axil-usual": True}
    )
    params: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description="Passed to the model: temperature, max_tokens, …",
    )
    input_mode: Literal["messages", "prompt"] = Field(
        "messages", description="prompt: all inputs are one user message, in blocks."
    )
    tooling: list[Tooling] = Field(default_factory=list[Tooling], description="Its tools.")
    thinking: Thinking | None = Field(
        None, description="How the agent revises its reply before the reply is sent."
    )
    memories: list[Attachment] = Field(
        default_factory=list[Attachment],
        description="The memories of the graph that the agent uses.",
    )
    skills: Skills | None = Field(None, description="Its skills.")
    retry: Retry | None = Field(
        None,
        description="When a failed call of the model is repeated; the default is the adapter's "
        "rule.",
    )


# --------------------------------------------------------------------------------------------------


class Embedding(Strict):
    """The embedder by which texts of a memory are compared."""

    provider: str = Field(
        min_length=1, description="The embedder: openai, or any that is installed."
    )
    model: str | None = Field(default=None, description="Its model.")
    base_url: str | None = Field(default=None, description="The URL of the embedder's service.")
    api_key: Secret | None = Field(
        default=None,
        description="The service's key, as ${NAME}.",
        json_schema_extra={"x-axil-usual": True},
    )
    params: dict[str, Any] = Field(default_factory=dict[str, Any], description="Without effect.")


class SimpleConfig(Strict):
    """``simple``: what agents said, found by likeness."""

    memory_path: str | None = Field(
        None,
        description="The file of the memory, shared by all runs; empty or auto: the run's state.",
    )
    embedding: Embedding | None = Field(
        None,
        description="The embedder by which texts are compared; without it texts are compared by "
        "their words.",
    )


class Source(Strict):
    """Files that are searched."""

    path: str = Field(
        min_length=1, description="A file or a folder, inside the workflow file's folder."
    )
    file_types: list[str] | None = Field(
        None, description="Suffixes of files: [.md, .txt]; without it all text files."
    )
    recursive: bool = Field(True, description="Whether subfolders are searched.")
    encoding: str = Field("utf-8", description="The encoding of the files.")


class FileConfig(Strict):
    """``file``: files, found by likeness; read only."""

    file_sources: list[Source] = Field(
        min_length=1, description="The files and folders that are searched."
    )
    index_path: str | None = Field(
        None, description="The file of the computed vectors, so that each is computed once."
    )
    embedding: Embedding | None = Field(
        None,
        description="The embedder by which texts are compared; without it texts are compared by "
        "their words.",
    )


class BlackboardConfig(Strict):
    """``blackboard``: what agents said, the newest."""

    memory_path: str | None = Field(
        None,
        description="The file of the memory, shared by all runs; empty or auto: the run's state.",
    )
    max_items: int = Field(1000, ge=1, description="The number of newest notes that are used.")


class Mem0Config(Strict):
    """``mem0``: a memory that the service Mem0 keeps."""

    api_key: Secret = Field(description="The service's key, as ${NAME}.")
    org_id: str | None = Field(None, description="The organisation.")
    project_id: str | None = Field(None, description="The project.")
    user_id: str | None = Field(None, description="The id of the user of the memories.")
    agent_id: str | None = Field(None, description="The id of the agent of the memories.")
