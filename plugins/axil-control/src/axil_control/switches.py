"""Nodes that choose among their out-edges: by predicates (``LogicSwitch``), by conditions
(``switch``), by a value (``router``).

They send what they received, unchanged; edges that are not chosen die.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard, cast

from pydantic import BaseModel, Field, field_validator

from axil import MISSING, Out, SpecError
from axil.plugin import (
    EXIT,
    Body,
    BodyRules,
    CompileOptions,
    EdgeInput,
    RouteError,
    Task,
    arranged,
    as_body,
    did_you_mean,
    format_names,
    is_async,
    refers_to,
    with_article,
    without_views,
)
from axil_control.conditions import ExpressionText
from axil_control.errors import BindingError
from axil_control.expression import Expression
from axil_control.messages import forwarded
from axil_control.named import as_condition, component

Predicate = Callable[..., object]
EXIT_NAMES = ("exit", "end", "terminate")


def receiver_of(edge: Any) -> str:
    """Return the name of the node that an edge of a builder, or of a plan, leads to."""
    spec = getattr(edge, "spec", None)
    return str(spec.target if spec is not None else edge.receiver)


def resolve_receiver(name: str, receivers: Sequence[str]) -> str:
    """Return a receiver; ``exit`` names a graph's exit, ``<loop>_controller`` a loop's
    controller.
    """
    if name in receivers:
        return name
    if EXIT in receivers and (name in EXIT_NAMES or name.endswith(("_terminate", "_exit"))):
        return EXIT
    return "controller" if name.endswith("_controller") and "controller" in receivers else name


def check_receivers(
    what: str, named: Iterable[str], receivers: Sequence[str], *, all_of_them: bool = False
) -> None:
    """Refuse names that are no receivers (AX611) or, with ``all_of_them``, leave some out (AX612).

    Raises: BindingError.
    """
    names = list(named)
    strangers = [name for name in names if name not in receivers]
    if strangers:
        hint = (
            did_you_mean(strangers[0], receivers)
            or f"Its out-edges lead to {format_names(receivers) or 'nothing'}."
        )
        raise BindingError(
            "AX611", f"{what} names {format_names(strangers)}, to which it has no edge.", hint
        )
    missing = [name for name in receivers if name not in names]
    if all_of_them and missing:
        raise BindingError(
            "AX612",
            f"{what} has no entry for {format_names(missing)}, to which its edges lead.",
            "Add them, or bind edge by edge.",
        )


class LogicSwitch:
    """A switch for graphs made in Python: each out-edge may be bound to a predicate ``(message,
    attributes) -> bool``, a plain function.

    The message is the dict of fields; in a typed graph it is the state. Several predicates may
    match. Once an edge is bound, edges without a binding are never taken; a switch without any
    binding sends to all.

    Args:
        routes: a predicate for every receiver, by its name, instead of ``condition_binding``.
    """

    inline = True

    def __init__(self, routes: Mapping[str, Predicate] | None = None) -> None:
        self.name = ""
        self._routes = {
            name: _asking(predicate, name) for name, predicate in (routes or {}).items()
        }
        self._bound: dict[str, Callable[[object, object], object]] = {}
        self._predicates: Mapping[str, Callable[[object, object], object]] = self._routes

    def condition_binding(self, callback: Predicate, out_edge: Any) -> None:
        """Take ``out_edge`` where ``callback``, given message and perhaps attributes, is true.

        Raises: BindingError (AX610): the edge is bound already or starts at another node; (AX613)
        the callback is async.
        """
        name, sender = receiver_of(out_edge), out_edge.sender
        if sender is not self and not (isinstance(sender, str) and self.name in ("", sender)):
            raise BindingError(
                "AX610",
                f"the edge to {name} does not start at this switch.",
                "Bind edges made with create_edge(switch, …).",
            )
        if self._routes:
            raise BindingError(
                "AX610",
                f"the switch has routes; the edge to {name} cannot be bound as well.",
                "Put it into routes.",
            )
        if name in self._bound:
            raise BindingError(
                "AX610",
                f"the edge to {name} is bound already.",
                "Join the two conditions in one function.",
            )
        self._bound[name] = _asking(callback, name)
        self._predicates = self._bound

    def bind(self, out_edges: list[object]) -> None:
        """Called when the graph is built: every condition belongs to an out-edge.

        Raises: BindingError (AX611, AX612).
        """
        receivers = list(dict.fromkeys(receiver_of(edge) for edge in out_edges))
        self._predicates = {
            resolve_receiver(name, receivers): asks
            for name, asks in (self._routes or self._bound).items()
        }
        what, is_whole = ("routes", True) if self._routes else ("a binding", False)
        check_receivers(what, self._predicates, receivers, all_of_them=is_whole)

    @property
    def forwards(self) -> bool:
        """True if its output is what came in: a subclass may have a body of its own."""
        return type(self).run is LogicSwitch.run

    @property
    def ways(self) -> dict[str, object] | None:
        """The condition of each target, as plain data; others get nothing. None: all get it."""
        if not self.forwards or not self._predicates:
            return None
        return {name: ("?", f"{id(self)} {name}") for name in self._predicates}

    def adapted(self, rules: BodyRules) -> Body:
        """Return the body: in a typed graph the predicates are given the state."""
        is_own = type(self).run is not LogicSwitch.run  # a subclass declares what it takes
        by_state = rules.view is not None and not is_own
        return as_body(self._by_state if by_state else self.run, rules, inline=True)

    def run(self, inputs: dict[str, object], attributes: object) -> Out:
        return Out(without_views(inputs), to=self._taken(inputs, attributes))

    def _by_state(self, inputs: dict[str, object], state: object, attributes: object) -> Out:
        return Out(without_views(inputs), to=self._taken(state, attributes))

    def _taken(self, message: object, attributes: object) -> frozenset[str] | None:
        """Return the targets whose predicate holds; None, which is all, without any binding."""
        if not self._predicates:
            return None
        return frozenset(
            [name for name, asks in self._predicates.items() if asks(message, attributes)]
        )


def _asking(callback: Predicate, name: str) -> Callable[[object, object], object]:
    """Return the callback with two arguments, whatever it takes."""
    if not callable(callback):
        raise BindingError(
            "AX613",
            f"the condition for {name} is {with_article(type(callback).__name__)}; "
            "expected a function.",
        )
    if is_async(callback):
        raise BindingError(
            "AX613",
            f"the condition for {name} is async.",
            "Await in a node, and switch by its output.",
        )
    try:
        call, wanted = arranged(callback, (*_ASKED, *_SAME), _ASKED, name, _SAME)
    except SpecError as error:
        found = error.problems[0]
        text = f"the condition for {name}: {found.message}"
        raise BindingError("AX613", text, found.hint) from None

    def asks(message: object, attributes: object) -> object:
        ways = {"attributes": attributes}
        return call(**{name: ways.get(way, message) for name, way in wanted.items()})

    return asks


_ASKED = ("inputs", "attributes")
_SAME = {"input": "inputs", "message": "inputs"}


def seen_by(payloads: Sequence[object], task: Task) -> EdgeInput:
    """Return all that came, as conditions see it."""
    return EdgeInput(forwarded(payloads), task.state)


class Switch:
    """``switch``: sends its input to each target whose condition holds; where none holds, to
    ``otherwise``, or to none.
    """

    examples = ({"routes": {"short": "len(text) < 100", "long": "len(text) >= 100"}},)
    example_targets = ("short", "long")

    inline = forwards = True
    writes = frozenset[str]()
    model_calls = 0

    class Config(BaseModel, extra="forbid", frozen=True):
        """The conditions."""

        routes: dict[str, Any] = Field(
            min_length=1,
            description="A condition for each target: an expression, true, false, or {type, "
            "config}. Other out-edges are never taken.",
            json_schema_extra=refers_to("conditions", path="/*/type"),
        )
        otherwise: str | None = Field(
            default=None, description="The target where no condition holds; else nothing is sent."
        )

        @field_validator("routes")
        @classmethod
        def _conditions_can_be_read(cls, routes: dict[str, object]) -> dict[str, object]:
            for target, condition in routes.items():
                if isinstance(condition, str):
                    Expression(condition)
                elif not isinstance(condition, bool) and not _is_use(condition):
                    raise ValueError(
                        f"AX614 {target}: expected an expression, true, false or {{type, config}}."
                    )
            return routes

    def __init__(self, config: Config) -> None:
        self.config = config
        self._conditions: dict[str, Callable[[EdgeInput], object]] | None = None
        self.reads = frozenset[tuple[str, str]]().union(
            *(Expression(text).reads for text in config.routes.values() if isinstance(text, str))
        )
        self._otherwise = [] if config.otherwise is None else [config.otherwise]

    def bind(self, out_edges: list[object], setting: CompileOptions | None = None) -> None:
        """Called when the plan is made: targets are known and conditions found.

        Raises: BindingError, and as ``component``.
        """
        receivers = [receiver_of(edge) for edge in out_edges]
        routes = {
            resolve_receiver(target, receivers): given
            for target, given in self.config.routes.items()
        }
        check_receivers("routes", routes, receivers)
        if self.config.otherwise is not None:
            self._otherwise = [resolve_receiver(self.config.otherwise, receivers)]
            check_receivers("otherwise", self._otherwise, receivers)
        self._conditions = {
            target: _condition(given, target, setting) for target, given in routes.items()
        }

    @property
    def ways(self) -> dict[str, object] | None:
        """As of ``LogicSwitch``."""
        if self._conditions is None:
            return None
        given = zip(self._conditions.items(), self.config.routes.values(), strict=True)
        ways = {target: _says(route, condition) for (target, condition), route in given}
        none = ("not", ("or", *ways.values()))
        for target in self._otherwise:
            ways[target] = ("or", ways.get(target, False), none)
        return ways

    def run(self, payloads: list[object], task: Task) -> Out:
        if self._conditions is None:
            self._conditions = {
                target: _condition(given, target) for target, given in self.config.routes.items()
            }
        seen = seen_by(payloads, task)
        taken = [target for target, holds in self._conditions.items() if holds(seen)]
        return Out(seen.payload, to=frozenset(taken or self._otherwise))


def _is_use(given: object) -> bool:
    use = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    return isinstance(use.get("type"), str) and use.keys() <= {"type", "config"}


def _says(given: object, condition: object) -> object:
    """Return a route's condition as plain data."""
    if isinstance(given, bool):
        return given
    if isinstance(given, str):
        return Expression(given).says
    return getattr(condition, "says", ("?", repr(given)))


def _condition(
    given: object, target: str, setting: CompileOptions | None = None
) -> Callable[[EdgeInput], object]:
    if isinstance(given, bool):
        return lambda seen: given
    if isinstance(given, str):
        return Expression(given).holds
    use, where = cast("dict[str, Any]", given), f"routes.{target}"
    return as_condition(
        component("conditions", use["type"], use.get("config"), where=where, setting=setting)
    )


def _is_names(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, (list, tuple)) and all(
        isinstance(each, str) for each in cast("Sequence[object]", value)
    )


class Router:
    """``router``: sends its input to the targets that the value of an expression names: one name
    or a list, which ``names`` may translate. A name that is no target is an error.
    """

    examples = ({"by": "message.next", "otherwise": "done"},)
    example_targets = ("done",)

    inline = forwards = True
    writes = frozenset[str]()
    model_calls = 0

    class Config(BaseModel, extra="forbid", frozen=True):
        """The place of the names."""

        by: ExpressionText = Field(
            description="An expression whose value names targets, for example: message.next"
        )
        names: dict[str, str | list[str]] = Field(
            default_factory=dict[str, "str | list[str]"],
            description="What values stand for: {approve: publisher}. Others stand for themselves.",
        )
        otherwise: str | None = Field(
            default=None,
            description="The target where the value is missing or empty; "
            "without it that is an error.",
        )

    def __init__(self, config: Config) -> None:
        self.config = config
        self._by = Expression(config.by)
        self.reads = self._by.reads
        self._targets: list[str] | None = None

    def bind(self, out_edges: list[object], setting: CompileOptions | None = None) -> None:
        """Called when the plan is made: these are the targets. Raises: BindingError (AX611)."""
        self._targets = list(dict.fromkeys(receiver_of(edge) for edge in out_edges))
        named = [
            name
            for names in self.config.names.values()
            for name in ([names] if isinstance(names, str) else names)
        ]
        named += [self.config.otherwise] if self.config.otherwise else []
        targets = [resolve_receiver(name, self._targets) for name in named]
        check_receivers("the router", targets, self._targets)

    @property
    def ways(self) -> dict[str, object] | None:
        """As of ``LogicSwitch``."""
        says: object = self._by.says
        if self._targets is None or not isinstance(says, tuple) or says[0] != "truth":
            return None
        path: object = cast("tuple[object, ...]", says)[1]
        names, otherwise = self.config.names, self.config.otherwise
        ways: dict[str, object] = {}
        for target in self._targets:
            values = [] if target in names else [target]
            for value, meant in names.items():
                targets = [meant] if isinstance(meant, str) else meant
                if target in (resolve_receiver(each, self._targets) for each in targets):
                    values.append(value)
            ways[target] = ("names", path, tuple(values))
            if otherwise and target == resolve_receiver(otherwise, self._targets):
                ways[target] = ("or", ways[target], ("not", ("truth", path)))
        return ways

    def run(self, payloads: list[object], task: Task) -> Out:
        seen = seen_by(payloads, task)
        return Out(seen.payload, to=frozenset(self._chosen(self._by(seen))))

    def _chosen(self, value: object) -> list[str]:
        config = self.config
        if value is MISSING or value is None or value == "" or value == []:
            if config.otherwise is None:
                raise RouteError(
                    f"the router's {config.by} is {'missing' if value is MISSING else 'empty'}.",
                    hint="Set otherwise, or write the field.",
                )
            return self._known([config.otherwise])
        wanted: object = [value] if isinstance(value, str) else value
        if not _is_names(wanted):
            raise RouteError(
                f"the router's {config.by} is {value!r:.80}; "
                "expected the name of a node, or a list of names."
            )
        chosen: list[str] = []
        for name in wanted:
            stands_for = config.names.get(name.strip(), name.strip())
            chosen.extend([stands_for] if isinstance(stands_for, str) else stands_for)
        return self._known(chosen)

    def _known(self, chosen: Sequence[str]) -> list[str]:
        """Return the names as the plan has them. Raises: RouteError (AX222): one is no target."""
        targets = self._targets
        if targets is None:
            return list(chosen)
        names = [resolve_receiver(name, targets) for name in chosen]
        strangers = [name for name in names if name not in targets]
        if strangers:
            message = (
                f"the router's {self.config.by} names {format_names(strangers)}; "
                f"its targets are {format_names(targets)}."
            )
            raise RouteError(message, hint=did_you_mean(strangers[0], targets))
        return names
