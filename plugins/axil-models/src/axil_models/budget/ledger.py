"""Tokens and money: reserved before they are spent, in every budget that they count for or in none.

Theory of operation
-------------------
A ledger has an account for the run, and one for every node with a budget, which counts for the node
and everything inside it. A *reservation* keeps what a call may need at most, in all its accounts at
once, until it is settled with what was really used, or released. An account's limit bounds what is
spent and held together, so calls that pass it only together do not both start.

A reservation that would fit if others used less than they reserved waits, in order: a later firing
that needs the same scarce account does not overtake. Others are refused, and so is a firing that
holds something, itself or around itself, so there is no circle of waiters.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from axil import Activation, LimitReached
from axil.driver import inner_frame
from axil.plugin import RunError, RunUsage
from axil_models.budget.prices import Estimate, Estimator, Pricing

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger("axil_models")

_ESTIMATOR = Estimator()
_ROUNDING = 1e-9  # money is counted in floats: a part in a billion is not a limit that was passed


class OverBudget(RunError):
    """A node's budget is used up, and the node has failed with it."""

    id = "AX417"
    transient = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The resources that may be used at one place; None: no limit."""

    tokens: int | None = None
    cost: float | None = None
    at_limit: Literal["stop_run", "fail_node"] = "stop_run"
    """``stop_run``: the run ends as ``limited``; ``fail_node``: the node fails (``OverBudget``)."""
    pricing: Pricing | None = None
    """None: that of the place around it."""

    @property
    def is_limited(self) -> bool:
        """True if the budget limits anything."""
        return self.tokens is not None or self.cost is not None

    def passed(self, tokens: int, cost: float) -> str:
        """Return the limit that this much would pass: ``tokens``, ``cost`` or an empty text."""
        if self.tokens is not None and tokens > self.tokens:
            return "tokens"
        if self.cost is not None and cost > self.cost * (1 + _ROUNDING):
            return "cost"
        return ""


class Account:
    """The resources spent and held at one place."""

    __slots__ = ("budgets", "place", "reservations", "usage")

    def __init__(self, place: str, usage: RunUsage) -> None:
        self.place, self.usage = place, usage
        """``place``: a node's path through graphs; empty: the run."""
        self.budgets: tuple[Budget, ...] = ()
        self.reservations: dict[Reservation, None] = {}  # in order; small while it is empty

    def sums(self, tokens: int, cost: float, *, held: bool) -> tuple[int, float]:
        """Return tokens and money spent, and held if so asked, with so much on top."""
        total = sum(self.usage.tokens.values()) + tokens
        money = [self.usage.cost, cost]
        if held:
            total += sum(reservation.tokens for reservation in self.reservations)
            money += [reservation.cost for reservation in self.reservations]
        return total, math.fsum(money)

    def refusal(self, tokens: int, cost: float, *, held: bool) -> tuple[Budget, str] | None:
        """Return the budget that would be passed, and how; None: it fits."""
        if not self.is_limited:
            return None
        sums = self.sums(tokens, cost, held=held)
        passed = ((budget, what) for budget in self.budgets if (what := budget.passed(*sums)))
        return next(passed, None)

    @property
    def where(self) -> str:
        """The owner, for messages."""
        return f'node "{self.place}"' if self.place else ""

    def check(self, budget: Budget) -> None:
        """Raises: OverBudget: more was used than a budget that fails its node allows."""
        what = budget.passed(*self.sums(0, 0.0, held=False))
        if what and budget.at_limit == "fail_node":
            raise _passed(self, budget, what)

    @property
    def is_limited(self) -> bool:
        """True if anything is limited here."""
        return any(budget.is_limited for budget in self.budgets)

    @property
    def has_costs(self) -> bool:
        """True if money is limited here."""
        return any(budget.cost is not None for budget in self.budgets)


class Reservation:
    """Reserved tokens and money. A ``with`` releases it at its end, unless it was settled."""

    __slots__ = ("_ledger", "accounts", "cost", "names", "tokens", "who")

    def __init__(
        self, ledger: Ledger, who: Activation, names: tuple[str, ...], tokens: int, cost: float
    ) -> None:
        self._ledger, self.who, self.names = ledger, who, names
        self.tokens, self.cost = tokens, cost
        self.accounts: tuple[Account, ...] = ()

    def settle(
        self,
        *,
        model: str = "",
        cached_tokens: int = 0,
        cache_write_tokens: int = 0,
        audio_tokens: tuple[int, int, int] = (0, 0, 0),
        audio_seconds: float = 0.0,
        discount: float = 0.0,
        cost: float = 0.0,
        **tokens: int,
    ) -> None:
        """Replace the reservation by what was really used: ``settle(input_tokens=812,
        output_tokens=40)``.

        ``cost``: what the provider says it is; 0, or no such number: as the prices of the place
        say, for ``model`` or the model it was held for. ``cached_tokens``, ``cache_write_tokens``:
        of the input.
        ``audio_tokens``: of the input, the output and what was cached. ``audio_seconds``: of audio
        that was heard.
        ``discount``: the share of that price that is not asked for.
        """
        used = {kind: number for kind, number in tokens.items() if number}
        special = (cached_tokens, cache_write_tokens, audio_tokens, audio_seconds)
        self._ledger.settle(self, model, used, special, cost, discount)

    def release(self) -> None:
        """End the reservation; nothing was used."""
        self._ledger.release(self)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class Ledger:
    """All accounts of one run."""

    __slots__ = (
        *("_accounts", "_is_free", "_known", "_run", "_stop", "_waiting"),
        *("estimator", "usage"),
    )

    def __init__(
        self,
        usage: RunUsage,
        budget: Budget | None = None,
        estimator: Estimator | None = None,
        stop: Callable[[LimitReached], None] | None = None,
    ) -> None:
        """``budget``: the run's; ``stop``: ends the run; without it the limit is raised."""
        self.usage, self.estimator, self._stop = usage, estimator or _ESTIMATOR, stop or _raised
        self._run = Account("", usage)
        self._is_free = False  # money is limited, and a call was seen that cost none
        if budget is not None:
            self._run.budgets = (budget,)
        self._accounts: dict[str, Account] = {}
        self._known: dict[str, RunUsage] = {}
        self._waiting: Sequence[tuple[Reservation, asyncio.Future[None]]] = ()

    def close(self) -> None:
        """End the run's account: later usage, of threads, is counted and stops nothing."""
        self._stop = _ignored

    def open(self, place: str, budget: Budget) -> Account:
        """Return the account of a node, held to ``budget`` from now on; what was used there before
        a resume counts.
        """
        account = self._accounts.get(place)
        if account is None:
            usage = self._known.pop(place, None) or RunUsage()
            account = self._accounts[place] = Account(place, usage)
        if budget not in account.budgets:
            account.budgets = (*account.budgets, budget)
        return account

    def accounts(self, who: Activation) -> tuple[Account, ...]:
        """Return the accounts that an activation counts for, outermost first."""
        if not self._accounts:
            return (self._run,)
        parts = who.path.split("/")
        places = ("/".join(parts[: n + 1]) for n in range(len(parts)))
        return (self._run, *(self._accounts[place] for place in places if place in self._accounts))

    @property
    def held(self) -> int:
        """The number of open reservations."""
        return len(self._run.reservations)

    @property
    def waiting(self) -> int:
        """The number of firings that wait for a reservation."""
        return len(self._waiting)

    @property
    def has_accounts(self) -> bool:
        """True if nodes have accounts of their own."""
        return bool(self._known or self._accounts)

    def as_data(self) -> dict[str, object]:
        """Return the usage of the nodes' accounts, for a journal."""
        usages = self._known | {place: each.usage for place, each in self._accounts.items()}
        return {place: [dict(usage.tokens), usage.cost] for place, usage in usages.items()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Count on from what a journal says."""
        self._known = {
            place: RunUsage(tokens=dict(tokens), cost=cost)
            for place, (tokens, cost) in data.items()
        }

    async def reserve(self, who: Activation, estimate: Estimate) -> Reservation:
        """Return a reservation of the expected usage, in all accounts that it counts for.

        Raises: OverBudget: a budget that fails its node would be passed; UnknownPrice. Where the
        run is stopped, the firing is cancelled.
        """
        import asyncio

        accounts = self.accounts(who)
        tokens, cost, is_limited = 0, 0.0, any(account.is_limited for account in accounts)
        if is_limited:
            given, wanted = estimate.tokens(self.estimator)
            tokens = given + wanted
            cost = self._max_cost(accounts, estimate, given, wanted)
        reservation = Reservation(self, who, estimate.models, tokens, cost)
        reservation.accounts = accounts
        if not is_limited:
            return reservation
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting = [*self._waiting, (reservation, granted)]
        self._look()
        try:
            await granted
        except asyncio.CancelledError:
            self._waiting = [each for each in self._waiting if each[0] is not reservation]
            self.release(reservation)
            raise
        except LimitReached as limit:
            self._stop(limit)
            # until the run, which ends, cancels us
            await asyncio.get_running_loop().create_future()
        return reservation

    def _look(self) -> None:
        """Grant and refuse, in order, what can be granted or has to be refused."""
        if not self._waiting:
            return
        scarce: set[Account] = set()
        still: list[tuple[Reservation, asyncio.Future[None]]] = []
        for reservation, granted in self._waiting:
            if granted.done():
                continue
            amounts = reservation.tokens, reservation.cost
            accounts = reservation.accounts
            lacking = [a for a in accounts if a.refusal(*amounts, held=True) is not None]
            open_ones = self._run.reservations
            is_inside = any(_is_within(reservation.who, other.who) for other in open_ones)
            if not lacking and (is_inside or scarce.isdisjoint(reservation.accounts)):
                for account in reservation.accounts:
                    account.reservations[reservation] = None
                granted.set_result(None)
                continue
            hopeless = [a for a in lacking if a.refusal(*amounts, held=False) is not None]
            if hopeless or (lacking and is_inside):
                refused = _refused((hopeless or lacking)[0], reservation, held=not hopeless)
                granted.set_exception(refused)
                continue
            scarce.update(lacking)
            still.append((reservation, granted))
        self._waiting = still

    def settle(
        self,
        reservation: Reservation,
        model: str,
        tokens: Mapping[str, int],
        special: tuple[int, int, tuple[int, int, int], float],
        cost: float,
        discount: float,
    ) -> None:
        """See ``Reservation.settle``; what was not reserved, or was released, is counted too."""
        for account in reservation.accounts:
            account.reservations.pop(reservation, None)
        pricing = self._pricing(reservation.accounts)
        cost = cost if 0 <= cost < math.inf else 0.0  # no sum with it could be compared
        if not cost and pricing is not None:
            given, answered = tokens.get("input_tokens", 0), tokens.get("output_tokens", 0)
            names = [[each for each in (model, name) if each] for name in _of(model, reservation)]
            prices = [pricing.price(each) for each in names]
            cost = max((p.of(given, answered, *special) for p in prices if p), default=0.0)
            cost *= 1 - discount
        elif not cost and tokens and not self._is_free:
            self._is_free = any(account.has_costs for account in reservation.accounts)
            if self._is_free:
                name = next(filter(None, (model, *reservation.names)), "a model")
                log.warning("%s has no price, so no limit of its cost holds: give pricing.", name)
        self.charge(reservation.who, {**tokens, "cost": cost})

    def release(self, reservation: Reservation) -> None:
        """See ``Reservation.release``."""
        for account in reservation.accounts:
            account.reservations.pop(reservation, None)
        self._look()

    def charge(self, who: Activation, amounts: Mapping[str, float]) -> None:
        """Count what was used, by name; a budget that stops the run and is passed now stops it."""
        for account in self.accounts(who):
            account.usage.add(amounts)
            for budget in account.budgets:
                if budget.at_limit == "stop_run" and (
                    what := budget.passed(*account.sums(0, 0.0, held=False))
                ):
                    limit = _passed(account, budget, what)
                    assert isinstance(limit, LimitReached)
                    self._stop(limit)
        self._look()

    def _pricing(self, accounts: Sequence[Account]) -> Pricing | None:
        # of the innermost place that has one
        given = (budget.pricing for account in reversed(accounts) for budget in account.budgets)
        return next((pricing for pricing in given if pricing is not None), None)

    def _max_cost(
        self, accounts: Sequence[Account], estimate: Estimate, given: int, wanted: int
    ) -> float:
        """Return the most that a call may cost."""
        pricing = self._pricing(accounts)
        has_costs = any(account.has_costs for account in accounts)
        if pricing is None or not has_costs or not given + wanted:
            return 0.0
        prices = [pricing.needed((name,)) for name in estimate.models] or [pricing.needed(())]
        heard = (estimate.audio_tokens, 0, 0), estimate.audio_seconds
        ways = (0, given - estimate.audio_tokens)  # all of the rest may be written to a cache
        costs = [p.of(given, wanted, 0, written, *heard) for p in prices if p for written in ways]
        return max(costs, default=0.0)


def _of(model: str, reservation: Reservation) -> Sequence[str]:
    """Return the names, of those that the reservation was for, of the model that answered: the one
    that it is a version of; else all, and the dearest counts.
    """
    names = reservation.names or ("",)
    versions = [name for name in names if name and model.startswith(name)]
    return [max(versions, key=len)] if versions else names


def _raised(limit: LimitReached) -> None:
    raise limit


def _ignored(limit: LimitReached) -> None:
    pass


def _is_within(who: Activation, holder: Activation) -> bool:
    """Return whether one activation is another, or inside it."""
    inner = inner_frame(holder.frame, holder.node, holder.ordinal)
    return who == holder or who.frame[: len(inner)] == inner


def _amount(value: float, what: str) -> str:
    return f"{value:g}" if what == "cost" else str(value)


def _refused(
    account: Account, reservation: Reservation, *, held: bool
) -> LimitReached | OverBudget:
    """Return the error, as its budget defines it, for a reservation that is refused."""
    refusal = account.refusal(reservation.tokens, reservation.cost, held=held)
    assert refusal is not None
    budget, what = refusal
    spent = account.sums(0, 0.0, held=False)
    reserved = account.sums(0, 0.0, held=True)
    at = 0 if what == "tokens" else 1
    unit = " tokens" if what == "tokens" else ""
    used, kept = spent[at], reserved[at] - spent[at]
    also = f", {_amount(kept, what)} reserved" if held and kept else ""
    asked = reservation.tokens if what == "tokens" else reservation.cost
    limit: object = budget.tokens if what == "tokens" else budget.cost
    whose = f'the budget of "{account.place}"' if account.place else "the run's limit"
    needed = f"a call may need {_amount(asked, what)} more."
    message = f"{whose} is {limit}{unit}: {_amount(used, what)} used{also}, and {needed}"
    return _error(account, budget, what, message)


def _passed(account: Account, budget: Budget, what: str) -> LimitReached | OverBudget:
    limit = f"{budget.cost}" if what == "cost" else f"{budget.tokens} model tokens"
    verb = "used" if what == "tokens" else "cost"
    who = f'"{account.place}"' if account.place else "the run"
    return _error(account, budget, what, f"{who} {verb} more than {limit}, which is its limit.")


def _error(account: Account, budget: Budget, what: str, data: str) -> LimitReached | OverBudget:
    where, hint = account.where, f"Raise {what} in the limits, or ask for less."
    if budget.at_limit == "fail_node":
        return OverBudget(data, where=where, hint=hint)
    of_run = "AX413" if what == "tokens" else "AX414"
    id = "AX416" if account.place else of_run
    return LimitReached(data, where=where, id=id, hint=hint)
