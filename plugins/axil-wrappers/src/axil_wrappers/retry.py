"""``retry``: a node that failed is tried again, after waits that grow.

Theory of operation
-------------------
Each try is a part of the activation (``Context.part``): what a failed one kept in ``local`` is
dropped, its steps and sub-runs are not taken for those of the next. The failure of a try and the
wait after it are recorded as a step: a resumed run continues with the try at which it stood, and
waits only for the rest.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

from pydantic import Field, model_validator

from axil import ComponentRef, Context, Out
from axil.plugin import Body, NodeInfo, Task, Uncertain
from axil_models import OverBudget
from axil_wrappers.failures import Failures, chain, describe_failure, retry_after_of
from axil_wrappers.inside import Around, Wrapper

if TYPE_CHECKING:
    from axil_wrappers.keywords import RetryKeywords


class RetryConfig(Failures):
    """The failures to try again, the number of tries, and the waits."""

    tries: int = Field(3, ge=1, description="The number of attempts, the first one included.")
    wait_seconds: float = Field(
        1.0, ge=0, description="The wait after the first failure, before jitter."
    )
    factor: float = Field(
        2.0, ge=1, description="The factor by which each wait is longer than the one before."
    )
    min_wait_seconds: float = Field(0.0, ge=0, description="The shortest wait.")
    max_wait_seconds: float = Field(
        60.0, ge=0, description="The longest wait, unless a server asks for a longer one."
    )
    jitter: Literal["full", "none"] = Field(
        "full",
        description="full: a random wait between the shortest and the computed one; none: the "
        "computed one.",
    )
    max_retry_after_seconds: float = Field(
        300.0,
        ge=0,
        description="The longest wait that a server may ask for; after a longer one the node "
        "fails.",
    )
    deadline_seconds: float | None = Field(
        None,
        gt=0,
        description="The time after the first attempt at which no further attempt begins.",
    )
    seed: int | None = Field(
        None, description="A seed that makes the jitter the same in every run; for tests."
    )

    @model_validator(mode="after")
    def _in_order(self) -> RetryConfig:
        if self.min_wait_seconds > self.max_wait_seconds:
            raise ValueError("min_wait_seconds is longer than max_wait_seconds")
        return self

    def wait(self, failed: int, name: str) -> float:
        """Return seconds to wait after the ``failed``-th failure of the activation ``name``."""
        try:
            grown = self.wait_seconds * self.factor ** (failed - 1)
        except OverflowError:
            grown = self.max_wait_seconds
        longest = max(self.min_wait_seconds, min(self.max_wait_seconds, grown))
        if self.jitter == "none":
            return longest
        seed = None if self.seed is None else f"{self.seed}:{name}:{failed}"
        chance = random.Random(seed).random()
        return self.min_wait_seconds + chance * (longest - self.min_wait_seconds)


class Retry(Wrapper[RetryConfig]):
    """The wrapper ``retry``: tries a node again that failed."""

    type = "retry"
    Config = RetryConfig

    def __init__(
        self,
        config: RetryConfig | Mapping[str, object] | None = None,
        /,
        *,
        when: Callable[[BaseException], bool] | None = None,
        **settings: Unpack[RetryKeywords],
    ) -> None:
        """``when``: asked of each failure that the config selects; Python only.

        Raises: ConfigError.
        """
        super().__init__(config, **settings)
        self.when = when
        self.repeats = self.config.tries

    def use(self) -> ComponentRef:
        plain = super().use()
        if self.when is None:
            return plain
        return ComponentRef(type=self.type, config={**plain.config, "when": self.when})

    def selects(self, error: BaseException) -> bool:
        """Return whether another try follows a failure."""
        # an empty budget stays empty, and a person said no
        if any(isinstance(each, (OverBudget, Uncertain)) for each in chain(error)):
            return False
        usual = None if self.when is None else True
        return self.config.selects(error, usual) and (self.when is None or bool(self.when(error)))

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        return _Tried(body, node, self)


class _Tried(Around):
    """A body that is tried again."""

    def __init__(self, body: Body, node: NodeInfo, retry: Retry) -> None:
        super().__init__(body, node)
        self._retry, self._config = retry, retry.config

    async def run(self, task: Task, ctx: Context) -> Out:
        config = self._config
        began = ctx.now() if config.deadline_seconds is not None else 0.0
        number = 0
        while True:
            number += 1
            part = ctx.part(f"try:{number}")

            async def attempt(number: int = number, part: Context = part) -> dict[str, Any]:
                try:
                    out = await self.inside(task, part)
                except Exception as error:  # noqa: BLE001
                    # raised again by _wait, unless there is another try
                    late = config.deadline_seconds is not None
                    wait = self._wait(error, number, ctx, part.now() - began if late else 0.0)
                    return {"error": describe_failure(error), "wait_seconds": wait}
                raise _Done(out)

            try:
                failed = await ctx.step(f"try:{number}", attempt)
            except _Done as done:
                return done.out
            self.take_back(part, ctx)
            ctx.note({"kind": "retry", "try": number + 1, "of": config.tries, **failed})
            await part.sleep(failed["wait_seconds"])

    def _wait(self, error: Exception, number: int, ctx: Context, spent: float) -> float:
        """Return seconds to wait before the next try. Raises: the error, if there is none."""
        config = self._config
        if not self._retry.selects(error):
            raise error
        wait = config.wait(number, str(ctx.activation))
        asked = retry_after_of(error)
        if asked is not None:
            wait = max(wait, asked)
        reason = ""
        if number >= config.tries:
            reason = f"tried {number} time{'s' if number > 1 else ''}"
        elif asked is not None and asked > config.max_retry_after_seconds:
            reason = (
                f"tried {number}×; the server asks to wait {asked:g} seconds, "
                "more than max_retry_after_seconds"
            )
        elif config.deadline_seconds is not None and spent + wait > config.deadline_seconds:
            reason = (
                f"tried {number}×; another attempt would begin after the deadline of "
                f"{config.deadline_seconds:g} seconds"
            )
        if reason:
            if config.tries > 1:
                error.add_note(reason)
            raise error
        return wait


class _Done(Exception):
    """The exit from the step of a try that ended well, which is not recorded as a step."""

    def __init__(self, out: Out) -> None:
        super().__init__()
        self.out = out
