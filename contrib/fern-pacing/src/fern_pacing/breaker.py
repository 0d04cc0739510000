"""``circuit_breaker``: what keeps failing is not asked for a while.

A *circuit* stands for a node type, or a lane. It is *closed*: firings start, and failures in a row
are counted. After so many it *opens*: firings are refused. When its time is over it is *half-open*:
one firing may try; if that ends well it closes, if it fails it opens again.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from threading import Lock
from typing import Any, Literal

from axil import Activation, hookimpl
from axil.plugin import Fail, Firing, Outcome, Retry, RunError

_Name = tuple[str, Activation]


class CircuitOpen(RunError):
    """A firing was refused: too many of its kind have failed; ``seconds`` until one may try."""

    def __init__(self, message: str, seconds: float, *, hint: str = "") -> None:
        self.seconds = seconds
        super().__init__(message, hint=hint)


class _Circuit:
    """The firings of one type, or of one lane."""

    __slots__ = ("failures", "last_error", "opened", "trial", "tried")

    def __init__(self) -> None:
        self.failures = 0
        self.opened: float | None = None
        """The time at which it opened, by the run's clock; None: it is closed."""
        self.trial: _Name | None = None
        """The firing that may try."""
        self.tried = 0.0
        """The time at which that firing was admitted."""
        self.last_error = ""
        """The last failure, in words."""

    def open(self, now: float) -> None:
        """Refuse from now on."""
        self.opened, self.trial = now, None

    def close(self) -> None:
        """Count anew."""
        self.failures, self.opened, self.trial = 0, None, None


class CircuitBreaker:
    """``circuit_breaker``: refuses firings of what has failed several times in a row, for a while.

    One object serves all runs of a process, in all threads: they share its circuits, and so should
    have one clock. A run that goes on applies what was recorded, refusals as well.
    """

    def __init__(
        self,
        failures: int = 3,
        seconds: float = 30,
        by: Literal["type", "lane"] = "type",
        instead: Outcome | None = None,
    ) -> None:
        """Make a breaker whose circuits are closed.

        Args:
            failures: so many in a row open the circuit; each time that a body raises is one.
            seconds: so long it is open, by the clock of the runs.
            by: what a circuit stands for: a node type, or a lane; what has no lane is let through.
            instead: the outcome of a firing that is refused; None: it fails with ``CircuitOpen``.
        Raises: ValueError: ``failures``, ``seconds`` or ``by`` are not possible.
        """
        if failures < 1:
            raise ValueError(f"failures is {failures!r}; at least 1 opens a circuit.")
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"seconds is {seconds!r}; a circuit is open for a time, from 0.")
        if by not in ("type", "lane"):
            raise ValueError(f'by is {by!r}; a circuit stands for a "type" or a "lane".')
        self._most, self._seconds, self._by, self._instead = failures, seconds, by, instead
        self._circuits: dict[str, _Circuit] = {}
        self._started: dict[_Name, str] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"CircuitBreaker({self._most}, {self._seconds}, {self._by!r}, {self._instead!r})"

    @property
    def open(self) -> tuple[str, ...]:
        """The types or lanes whose circuits are not closed, those included of which one may try."""
        with self._lock:
            return tuple(name for name, each in self._circuits.items() if each.opened is not None)

    # ------------------------------------------------------------------ deciding

    @hookimpl
    def admit_firing(self, firing: Firing) -> Outcome | None:
        """Refuse what belongs to an open circuit, but for one firing when its time is over."""
        name = self._name(firing)
        with self._lock:
            circuit = None if name is None else self._circuits.get(name)
            if circuit is None or circuit.opened is None:
                return None
            now, me = firing.now, (firing.run_id, firing.activation)
            if now < circuit.opened:  # another clock, which began later
                circuit.opened = now
            left = circuit.opened + self._seconds - now
            if left <= 0:
                is_lost = not 0 <= now - circuit.tried <= self._seconds
                if circuit.trial in (None, me) or is_lost:
                    circuit.trial, circuit.tried = me, now
                    return None
            return self._instead or Fail(self._refusal(str(name), circuit, max(left, 0.0)))

    @hookimpl(wrapper=True)
    def choose_firing(self, due: Sequence[Firing]) -> Generator[None, Any, Any]:
        """Note what starts; others choose."""
        chosen: Firing | None = yield
        firing = due[0] if chosen is None else chosen
        name = self._name(firing)
        if name is not None:
            with self._lock:
                self._started[firing.run_id, firing.activation] = name
        return chosen

    @hookimpl(wrapper=True)
    def firing_failure(
        self, firing: Firing, error: Exception
    ) -> Generator[None, Any, Retry | Outcome | None]:
        """Count a failure; others say what becomes of it."""
        answer: Retry | Outcome | None = yield
        me = firing.run_id, firing.activation
        with self._lock:
            name = self._started.pop(me, None)
            if name is not None:
                circuit = self._circuits.setdefault(name, _Circuit())
                circuit.last_error = f"{type(error).__name__}: {error}"
                self._failed(circuit, me, firing.now)
        return answer

    def _failed(self, circuit: _Circuit, me: _Name, now: float) -> None:
        if circuit.opened is None:
            circuit.failures += 1
            if circuit.failures >= self._most:
                circuit.open(now)
        elif circuit.trial == me:
            circuit.open(now)

    # ------------------------------------------------------------------ listening

    @hookimpl
    def firing_finished(self, activation: Activation, run_id: str) -> None:
        """Close the circuit of the one that was to try; else begin to count anew."""
        me = run_id, activation
        with self._lock:
            circuit = self._circuits.get(self._started.pop(me, ""))
            if circuit is not None and (circuit.opened is None or circuit.trial == me):
                circuit.close()

    @hookimpl
    def firing_failed(self, activation: Activation, run_id: str) -> None:
        """Forget what was cancelled, or ended by something else than its body."""
        self._forget([(run_id, activation)])

    @hookimpl
    def run_finished(self, run_id: str) -> None:
        """Forget what a run has left."""
        with self._lock:
            trials = [each.trial for each in self._circuits.values() if each.trial]
            left = [me for me in (*self._started, *trials) if me[0] == run_id]
        self._forget(left)

    def _forget(self, ended: Sequence[_Name]) -> None:
        """Let another one try where one of these was to."""
        with self._lock:
            for me in ended:
                self._started.pop(me, None)
                for circuit in self._circuits.values():
                    if circuit.trial == me:
                        circuit.trial = None

    # ------------------------------------------------------------------ words

    def _name(self, firing: Firing) -> str | None:
        return firing.type if self._by == "type" else firing.lane

    def _refusal(self, name: str, circuit: _Circuit, seconds: float) -> CircuitOpen:
        failed = f"{circuit.failures} firings in a row failed, the last with {circuit.last_error}"
        then = f"One may try in {seconds:g} seconds." if seconds else "Another one is trying."
        return CircuitOpen(
            f'the circuit of the {self._by} "{name}" is open: {failed}.', seconds, hint=then
        )
