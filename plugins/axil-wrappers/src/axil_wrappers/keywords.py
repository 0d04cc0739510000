"""Settings of ``axil_wrappers`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

from axil.plugin import WritePath
from axil_models import ModelLike
from axil_wrappers.failures import Names
from axil_wrappers.guards.finding import GuardLike
from axil_wrappers.guards.wrapper import Action


class BudgetKeywords(TypedDict, total=False):
    """The settings of ``Budget``; see ``BudgetConfig``."""

    tokens: int | None
    """Model tokens, input and output."""

    cost: float | None
    """Cost, in the currency of the prices."""

    on_limit: Literal["stop_run", "fail_node"]
    """stop_run: the run ends with the status limited; fail_node: the node fails."""

    pricing: Mapping[str, Any] | None
    """{models: {name: {input, output, cached, cache_write}}, unknown, table}; without it, the
    run's.
    """


class CacheKeywords(TypedDict, total=False):
    """The settings of ``Cache``; see ``CacheConfig``."""

    directory: WritePath | None
    """The folder of the stored outcomes; without it they are kept in this process."""

    ttl_seconds: float | None
    """The longest age of a stored outcome, in real time."""

    inputs: Sequence[str] | None
    """The input fields that are part of the key; without it all inputs."""

    attributes: Sequence[str] | None
    """The fields of the state that are part of the key; without it all that the node sees."""

    local: Literal["refuse", "key", "ignore"]
    """What happens with a node that has attributes of its own: it is not cached, or they are part
    of the key, or they are ignored.
    """

    people: bool
    """Also cache answers of people."""

    version: str
    """A part of the key: change it when the node's behaviour changes."""


class CollectKeywords(TypedDict, total=False):
    """The settings of ``Collect``; see ``CollectConfig``."""

    fields: Sequence[str]
    """Fields that become lists; none: all that come in."""


class FallbackKeywords(TypedDict, total=False):
    """The settings of ``Fallback``; see ``FallbackConfig``."""

    on: Names | str | type[Exception] | Collection[str | type[Exception]]
    """Error classes: built-in, axil's, module.Class, or *.Class; subclasses are included."""

    on_status: Sequence[int]
    """HTTP statuses of errors."""

    on_text: Sequence[str]
    """Texts that an error's message contains; upper and lower case are equal."""

    not_on: Names | str | type[Exception] | Collection[str | type[Exception]]
    """Error classes that are excluded, even where another rule matches."""

    value: Any
    """The value: fields, messages or a text."""

    use: Any
    """The node: its type, or {type, config}."""


class FallbackModelKeywords(TypedDict, total=False):
    """The settings of ``FallbackModel``; see ``FallbackModelConfig``."""

    on: Names | str | type[Exception] | Collection[str | type[Exception]]
    """Error classes: built-in, axil's, module.Class, or *.Class; subclasses are included."""

    on_status: Sequence[int]
    """HTTP statuses of errors."""

    on_text: Sequence[str]
    """Texts that an error's message contains; upper and lower case are equal."""

    not_on: Names | str | type[Exception] | Collection[str | type[Exception]]
    """Error classes that are excluded, even where another rule matches."""

    models: Sequence[ModelLike]
    """The models in order: each the name of an installed adapter, or {type, …}."""


class GuardedKeywords(TypedDict, total=False):
    """The settings of ``Guarded``; see ``GuardedConfig``."""

    input: Sequence[GuardLike]
    """Guards of the payloads that a firing begins with."""

    output: Sequence[GuardLike]
    """Guards of what the node gives."""

    tools: Sequence[GuardLike]
    """Guards of the arguments of tool calls."""

    results: Sequence[GuardLike]
    """Guards of the results of tool calls."""

    action: Action
    """What follows, unless a guard has its own: block, mask, ask or repair."""

    tries: int
    """How often the node runs again to repair its output."""

    ahead: bool
    """An async node begins, and calls its model, while guards look at its input; all else that it
    does waits for them.
    """

    feedback: str
    """The input field that has the reason when the node runs again; empty: none."""


class LimitKeywords(TypedDict, total=False):
    """The settings of ``Limit``; see ``LimitConfig``."""

    name: str
    """The limiter's name: nodes and runs of this process with the same name share one limiter;
    empty: a limiter of this node alone.
    """

    concurrency: int | None
    """The largest number of firings at the same time."""

    calls: int | None
    """The largest number of firings that begin in period_seconds."""

    period_seconds: float
    """The length of the period of calls."""

    burst: int | None
    """The largest number of firings that may begin at once after an idle time; the default is
    calls.
    """


class RetryKeywords(TypedDict, total=False):
    """The settings of ``Retry``; see ``RetryConfig``."""

    on: Names | str | type[Exception] | Collection[str | type[Exception]]
    """Error classes: built-in, axil's, module.Class, or *.Class; subclasses are included."""

    on_status: Sequence[int]
    """HTTP statuses of errors."""

    on_text: Sequence[str]
    """Texts that an error's message contains; upper and lower case are equal."""

    not_on: Names | str | type[Exception] | Collection[str | type[Exception]]
    """Error classes that are excluded, even where another rule matches."""

    tries: int
    """The number of attempts, the first one included."""

    wait_seconds: float
    """The wait after the first failure, before jitter."""

    factor: float
    """The factor by which each wait is longer than the one before."""

    min_wait_seconds: float
    """The shortest wait."""

    max_wait_seconds: float
    """The longest wait, unless a server asks for a longer one."""

    jitter: Literal["full", "none"]
    """full: a random wait between the shortest and the computed one; none: the computed one."""

    max_retry_after_seconds: float
    """The longest wait that a server may ask for; after a longer one the node fails."""

    deadline_seconds: float | None
    """The time after the first attempt at which no further attempt begins."""

    seed: int | None
    """A seed that makes the jitter the same in every run; for tests."""


class TimeoutKeywords(TypedDict, total=False):
    """The settings of ``Timeout``; see ``TimeoutConfig``."""

    seconds: float
    """The longest time, by the run's clock."""

    value: Any
    """The output of the node instead of a failure: fields, messages or a text."""

    grace_seconds: float
    """The longest time to wait for a cancelled body to end."""


class WriteKeywords(TypedDict, total=False):
    """The settings of ``Write``; see ``WriteConfig``."""

    fields: Mapping[str, Any]
    """Values by the names of fields of the state."""
