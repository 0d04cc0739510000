"""Models of a workflow file: its keys, their types, and what they mean.

They check documents (``format.Shapes``) and become the JSON Schema for editors. An optional key
that is null is a key that is not there.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(gt=0)]
Money = Annotated[float, Field(ge=0)]
Names = dict[str, str] | list[str]
Mapping = dict[str, Any]
NodeIds = str | list[Text]


def optional(description: str) -> Any:
    """Return a field that may be left out or be null."""
    return Field(default=None, description=description)


class Part(BaseModel):
    """A mapping of a file; other keys than those of its fields are problems."""

    # Within a whole file each model is built once.
    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)


def names_of(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys of a model, as files have them."""
    return tuple(info.alias or name for name, info in model.model_fields.items())


class Named(Part):
    """A component that is named with its settings."""

    type: Text = Field(description="The component's name.")
    config: Mapping | None = optional("The settings of the component.")


class Join(Named):
    """A join that is named with its settings."""


class Split(Named):
    """A way to split messages that is named with its settings."""


class Wrapper(Named):
    """A wrapper that is named with its settings."""


class Condition(Named):
    """A condition that is named with its settings."""


class Processor(Named):
    """A processor that is named with its settings."""


class Settings(Part):
    """The keys of a node beside its name and its type."""

    config: Mapping | None = optional("The settings of the node type.")
    description: str | None = None
    join: Text | Join | None = optional(
        "When the node fires: gate, all, each, or a join that a plugin provides."
    )
    lane: str | None = optional("Nodes of one lane share a limit of concurrency.")
    resources: dict[Text, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = optional(
        "What the body needs of the machine that executes it: gpus, cpus, memory in bytes …"
    )
    effects: Literal["none", "idempotent", "external"] | None = optional(
        "What running the node once more may do to the world; external: a resumed run asks first."
    )
    wrappers: list[Text | Wrapper] | None = optional(
        "Around the body, outermost first: retry, timeout …"
    )
    pull: Names | None = optional("State fields the node sees.")
    push: Names | None = optional("Output fields written to the state.")
    pull_keys: Names | None = optional("The same as pull.")
    push_keys: Names | None = optional("The same as push.")
    attributes: Mapping | None = optional("The node's own attributes.")
    context_window: Annotated[int, Field(ge=-1)] | None = optional(
        "Messages kept for the next firing; 0 none, -1 all."
    )
    log_output: bool | None = optional("False hides the output in logs.")
    input: list[Any] | None = optional("Messages that are there from the start.")
    output: list[Any] | None = None
    dynamic: Any = optional("Ignored: it belongs on the edge.")


class Rule(Settings):
    """Settings for nodes that use templates, and for those inside them."""

    path: Text | None = optional(
        'Names of nodes, from the outermost one, with ">" between; * one name, ** any number.'
    )
    type: Text | None = optional("The type of the nodes.")
    template: Text | None = optional("A template that the nodes use.")


class Template(Settings):
    """A node without a name, for nodes that use it."""

    type: Text | None = optional("The node type.")
    use: Text | None = optional("Another template, whose settings it has.")
    overrides: list[Rule] | None = optional("Settings for nodes inside.")


class Node(Settings):
    """A node of the graph."""

    id: Text = Field(description="The node's name, unique in the graph.")
    type: Text = Field(description="The node type.")
    use: Text | None = optional("Instead of a type: the name of a template.")
    overrides: list[Rule] | None = optional("With use: settings for nodes inside.")


class Parts(Part):
    """The number of parts, how many of them are at work together, and the size of a group."""

    max_parallel: Count | None = None
    max_items: Count | None = None
    group_size: Annotated[int, Field(ge=2)] | None = None


class Dynamic(Part):
    """A target that runs once for each part of what an edge carries."""

    type: Text = Field(
        description="The wrapper that runs the target for parts; plugins provide it."
    )
    split: Text | Split | None = optional("How messages become parts.")
    over: Text | None = optional("The field with a list of parts, where fields are carried.")
    item: Text | None = optional("The field in which the target gets its part; none: the same.")
    config: Parts | None = None


class Edge(Part):
    """An edge of the graph."""

    source: Text = Field(alias="from", description='A node, or "@entry".')
    to: Text = Field(description='A node, or "@exit".')
    trigger: bool | None = optional("False: carries data and never makes the target fire.")
    condition: bool | Text | Condition | None = optional("When the edge is taken.")
    keys: Names | None = optional("Fields to carry; none: the whole output.")
    process: Text | Processor | None = optional("What is carried instead of the output.")
    group: str | None = optional("In-edges of one group join by themselves.")
    carry_data: bool | None = optional("False: only the trigger.")
    keep_message: bool | None = optional("What is carried stays with the target.")
    clear_context: bool | None = optional(
        "What the target has is dropped first, unless it is kept."
    )
    clear_kept_context: bool | None = optional(
        "What is kept with the target is dropped first, and nothing else."
    )
    dynamic: Dynamic | None = optional("The target runs once for each part of what is carried.")
    description: str | None = None


class CycleLimits(Part):
    """The number of rounds that a cycle may turn."""

    rounds: Count | Literal["unlimited"] | None = optional(
        "How often the cycle may turn, or unlimited."
    )
    at_limit: Literal["limited", "exit"] | None = optional("What that means.")


class Cost(Part):
    """Money for a million tokens."""

    input: Money
    output: Money
    cached: Money | None = None
    cache_write: Money | None = None
    audio_input: Money | None = None
    audio_output: Money | None = None
    audio_cached: Money | None = None
    audio_hour: Money | None = None


class Prices(Part):
    """The prices of models."""

    models: dict[str, Cost] | None = optional("Money for a million tokens, by model.")
    unknown: Literal["refuse", "ignore"] | Cost | None = optional("refuse, ignore, or a price.")
    table: Literal["genai_prices"] | None = optional("Where other models are looked up.")


class Estimation(Part):
    """The expected number of tokens of a call."""

    characters_per_token: Amount | None = None
    output_tokens: Annotated[int, Field(ge=0)] | None = None


class RunLimits(Part):
    """Limits of a run."""

    firings: Count | None = None
    seconds: Amount | None = None
    concurrency: Count | None = None
    lanes: dict[str, Count] | None = None
    tokens: Count | None = None
    cost: Amount | None = None
    pricing: Prices | None = optional("What models cost.")
    estimate: Estimation | None = None


class StateField(Part):
    """A field of the state."""

    type: str = Field(description="str, int, float, bool, list, dict, any, list[str] …")
    strategy: str | None = None
    default: Any = None
    description: str | None = None


class Store(Part):
    """A memory that nodes of the graph share."""

    name: Text = Field(description="Unique.")
    type: str
    config: Mapping


class Graph(Part):
    """The graph of a file, or one in the settings of a node."""

    id: str | None = None
    description: str | None = None
    nodes: list[Node]
    edges: list[Edge] | None = None
    start: NodeIds | None = optional("The nodes that receive the input.")
    end: NodeIds | None = optional("The nodes whose output is the result, in order of preference.")
    state: Mapping | None = optional(
        "Attributes with their first values, or fields: {name: {type, strategy, default}}."
    )
    attributes: Mapping | None = optional("Attributes with their first values.")
    state_version: Count | None = optional("Of the shape of the state; see migrations.")
    migrations: Mapping | None = optional(
        "By the version it begins at, the import path of what leads to the next: module:function."
    )
    payload: Literal["messages", "fields", "state"] | None = optional("What edges carry.")
    cycles: Literal["allow", "forbid"] | None = None
    loop: str | None = optional("The controller, if the graph is a loop.")
    cycle_limits: dict[str, CycleLimits] | None = optional('By the node of entry; "*": all others.')
    limits: RunLimits | None = None
    node_wrappers: dict[str, list[Text | Wrapper]] | None = optional(
        'Around nodes, outside their own wrappers, by node type; "*": all.'
    )
    is_majority_voting: bool | None = optional(
        "All nodes answer the input; the most frequent answer wins; edges are ignored."
    )
    memory: list[Store] | None = None
    initial_instruction: str | None = None
    organization: str | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] | None = None
    args: Any = None


class File(Part):
    """A workflow file."""

    version: str | int | float | None = None
    vars: Mapping | None = optional("Values for ${NAME}.")
    requires: Names | None = optional(
        "Distributions the workflow needs: {name: version} or [name>=version]."
    )
    templates: dict[str, Template] | None = optional("Nodes without a name, for nodes to use.")
    defaults: list[Rule] | None = optional("Settings that are weaker than those of templates.")
    overrides: list[Rule] | None = optional("Settings that are stronger than those of nodes.")
    graph: Graph
