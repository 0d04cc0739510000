"""Decisions of plugins about a run's firings, and the four hooks that make them: what starts when
(``admit_firing``, ``choose_firing``), and what follows a failure (``firing_failure``) or a limit
(``limit_reached``).

The first answer that is not None wins; pluggy orders the plugins. When a firing starts never
changes its result. An answer that does change it becomes the outcome of the firing, or of the
round, and is recorded: a resumed run does not ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard

from axil.errors import HookFailed

if TYPE_CHECKING:
    import pluggy

    from axil.errors import LimitReached
    from axil.kernel.tokens import Activation, Effects


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A firing of a body, as deciding hooks see it."""

    run_id: str
    activation: Activation
    type: str
    lane: str | None
    effects: Effects
    tries: int
    """Times that it was started before; 0 at first."""
    now: float = field(default=0.0, compare=False)
    """Seconds, by the run's clock, when the hook is asked."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Start the body again."""

    after: float = 0.0
    """Seconds to wait before, by the run's clock."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Take this as the outcome of the firing."""

    output: Any
    writes: Mapping[str, object] = field(default_factory=dict[str, object])
    """Fields of the state to write."""


@dataclass(frozen=True, slots=True)
class Skip:
    """End the firing without an output."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail the node with this error."""

    error: Exception


Outcome: TypeAlias = Replace | Skip | Fail
"""The outcome of a firing that a plugin decides."""
Admission: TypeAlias = bool | float | Outcome
"""True: the firing may start; False: ask again when another firing of the run has ended (it starts
where none is at work); a number: ask again after so many seconds; else it does not start, and this
is its outcome.
"""

DECIDING_HOOKS = ("admit_firing", "choose_firing", "firing_failure", "limit_reached")
"""Names of the hooks that decide."""


class Deciders:
    """The deciding hooks of one run."""

    __slots__ = ("_admit", "_choose", "_failure", "_limit")

    def __init__(self, hooks: pluggy.PluginManager) -> None:
        calls = [_call(hooks, name) for name in DECIDING_HOOKS]
        self._admit, self._choose, self._failure, self._limit = calls

    @property
    def has_firings(self) -> bool:
        """True if a hook decides about firings."""
        return bool(self._admit or self._choose or self._failure)

    @property
    def has_limits(self) -> bool:
        """True if a hook decides about limits."""
        return self._limit is not None

    def admit(self, firing: Firing) -> Admission:
        """Return whether a firing may start. Raises: HookFailed (AX419)."""
        answer = True if self._admit is None else self._admit(firing=firing)
        if answer is None:
            return True
        if isinstance(answer, (bool, Replace, Skip, Fail)) or _are_seconds(answer):
            return answer
        raise _strange("admit_firing", answer, "True, False, seconds, Replace, Skip or Fail")

    def choose(self, due: Sequence[Firing]) -> int:
        """Return the position of the firing to start next. Raises: HookFailed (AX419)."""
        if self._choose is None:
            return 0
        answer = self._choose(due=due)
        if answer is None:
            return 0
        if answer in due:
            return due.index(answer)
        raise _strange("choose_firing", answer, "one of the firings that are due")

    def failure(self, firing: Firing, error: Exception) -> Retry | Outcome:
        """Return what becomes of a body that raised. Raises: HookFailed (AX419)."""
        answer = None if self._failure is None else self._failure(firing=firing, error=error)
        if answer is None:
            return Fail(error)
        if isinstance(answer, (Replace, Skip, Fail)):
            return answer
        if isinstance(answer, Retry) and _are_seconds(answer.after):
            return answer
        raise _strange("firing_failure", answer, "Retry, Replace, Skip or Fail")

    def limit(self, limit: LimitReached, of: Literal["cycle", "firings"]) -> int | Literal["exit"]:
        """Return what becomes of a limit: 0, it ends the run. Raises: HookFailed (AX419)."""
        answer = None if self._limit is None else self._limit(limit=limit, of=of)
        if answer is None:
            return 0
        if of == "cycle" and answer == "exit":
            return "exit"
        if of == "firings" and type(answer) is int and answer > 0:
            return answer
        wanted = '"exit"' if of == "cycle" else "a number of further firings"
        raise _strange("limit_reached", answer, wanted)


def _call(hooks: pluggy.PluginManager, name: str) -> Callable[..., object] | None:
    """Return a hook as a function whose errors are ``HookFailed``; None: no plugin has it."""
    caller: Any = getattr(hooks.hook, name)
    if not caller.get_hookimpls():
        return None

    def ask(**given: object) -> Any:
        try:
            return caller(**given)
        except Exception as error:
            message = f"the hook {name} raised {type(error).__name__}: {error}"
            hint = "Repair the plugin, or block it in the policy."
            raise HookFailed(message, hint=hint) from error

    return ask


def _are_seconds(given: object) -> TypeGuard[float]:
    return isinstance(given, (int, float)) and 0 <= given < float("inf")


def _strange(name: str, answer: object, wanted: str) -> HookFailed:
    return HookFailed(f"the hook {name} gave {answer!r:.80}; expected {wanted} or None.")
