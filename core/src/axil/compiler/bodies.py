"""Any callable → a body: what it asks for is read from its parameters' names when the plan is made.

A body may ask for ``inputs`` (the live payloads folded into fields), ``messages`` (the payloads as
one list of messages), ``payloads`` (as they are, in edge order), ``state`` (as its schema's kind),
``attributes`` (the state's fields that its pull rules let it see), ``local`` (what the node keeps
for itself), ``ctx``, ``config``, ``node`` and ``task``; a custom node for ``memories``, ``tools``
and ``retrievers``. Unknown names with a default are left alone.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any, NamedTuple, cast

from axil.contract.messages import fold_payloads, gather_messages, is_messages
from axil.contract.node import NodeContract
from axil.contract.views import (
    InstanceView,
    StateView,
    fields_of,
    undeletable,
    values_of,
    without_views,
    writes_of,
)
from axil.errors import BodyError, Problem, SpecError, StateError, did_you_mean, format_names
from axil.kernel.plan import Body, Mode
from axil.kernel.state import State
from axil.kernel.tokens import Changes, Out, Task, new_tuple
from axil.kernel.values import ATOMS, MISSING, isolate, type_of
from axil.signatures import signature_of
from axil.spec.graph import local_field

Supply = Callable[[Task, Any], Any]
Read = Callable[[Any, Task, Any, Any], Out]
"""From a body's result, its task, its context and its attributes to an outcome."""

_NO_CHANGES = Changes()
_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_UNCHECKED: type[dict[str, object]] = dict


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class BodyRules:
    """The rules by which a node meets the state: the keys it pulls and pushes, how results are
    read.
    """

    node: str
    payload: str = "fields"
    """``fields``, ``messages`` or ``state``; as ``GraphSpec.payload``."""
    pull: Mapping[str, str] | None = None
    push: Mapping[str, str] | None = None
    own: Mapping[str, object] | None = None
    """The node's own attributes, with their first values."""
    view: Callable[[State], object] | None = None
    given: Mapping[str, object] = field(default_factory=dict[str, object])
    """Constant parameters: ``config``, ``node``, ``memories`` …"""
    chat: str = ""
    """The field of a typed state that holds the conversation, which ``messages`` are read from and
    written to; empty: none.
    """
    is_free: bool = False
    """True if the state takes any field: nothing is declared."""
    made: dict[Any, Body] = field(default_factory=dict[Any, "Body"])
    """Bodies of functions of the same graph, by what they depend on."""


class Plain:
    """A body made of a callable."""

    __slots__ = (
        "_attributes",
        "_call",
        "_read",
        "_supplies",
        "_views",
        "call",
        "mode",
        "wants_ctx",
    )

    def __init__(
        self,
        call: Callable[..., Any],
        supplies: Mapping[str, Supply],
        read: Read,
        mode: Mode,
        attributes: str = "attributes",
    ):
        """Args: attributes: the parameter that is given the attributes."""
        self._call, self._supplies, self._read = call, tuple(supplies.items()), read
        self._attributes = attributes
        self._views = [name for name, supply in supplies.items() if isinstance(supply, _View)]
        self.mode: Mode = mode
        is_coroutine = mode == "async" and inspect.iscoroutinefunction(call)
        asks = not {"ctx", "local"}.isdisjoint(supplies)
        self.wants_ctx = asks or (mode == "async" and not is_coroutine)
        self.call: Supply = self._awaited if mode == "async" else self._called
        """The body as a function."""
        if len(supplies) == 1 and attributes not in supplies and first_of(call) in supplies:
            (supply,) = supplies.values()
            if mode != "async":
                self.call = _called_with_one(call, supply, read)
            elif is_coroutine:
                self.call = _awaited_with_one(call, supply, read)

    def __call__(self, task: Task, ctx: object, /) -> Any:
        return self.call(task, ctx)

    def _called(self, task: Task, ctx: object) -> Out:
        given = {name: supply(task, ctx) for name, supply in self._supplies}
        result = self._call(**given)
        return self._only_new(self._read(result, task, ctx, self._written(given)), given)

    def _only_new(self, out: Out, given: Mapping[str, object]) -> Out:
        for name in self._views:
            out = _only_new(out, given[name])
        return out

    def _written(self, given: Mapping[str, Any]) -> object:
        """Return the attributes of the body, with what it assigned to its views of the state."""
        attributes = given.get(self._attributes)
        for name in self._views:
            view = given[name]
            if (type(view) is not StateView or view.written) and (writes := writes_of(view)):
                attributes = _assigned(writes, attributes)
        return attributes

    async def _awaited(self, task: Task, ctx: Any) -> Out:
        given = {name: supply(task, ctx) for name, supply in self._supplies}
        result = self._call(**given)
        if inspect.isasyncgen(result):
            last: object = None
            first = True
            async for item in result:
                if not first:
                    ctx.emit(last)
                last, first = item, False
            result = last
        else:
            result = await result
        return self._only_new(self._read(result, task, ctx, self._written(given)), given)


def _only_new(out: Out, view: Any) -> Out:
    """Return an outcome without the messages that its body was shown."""
    kind = type_of(view)
    if kind is not StateView and not issubclass(kind, InstanceView):
        return out
    delta = kind.__axil_only_new__(view, out.delta)
    return out if delta is out.delta else Out(out.output, delta, out.to)


def _called_with_one(call: Callable[[Any], object], supply: Supply, read: Read) -> Supply:
    """Return a body that asks for one thing, the common case, in few calls."""

    def body(task: Task, ctx: object) -> Any:
        return read(call(supply(task, ctx)), task, ctx, None)

    def body_with_view(task: Task, ctx: object) -> Any:
        state = view(task.state)
        result = call(state)
        if type(state) is StateView and not state.written and not state.shown:
            return read(result, task, ctx, None)
        writes = writes_of(state)
        return _only_new(read(result, task, ctx, _assigned(writes) if writes else None), state)

    if not isinstance(supply, _View):
        return body
    view = supply.view
    return body_with_view


def _awaited_with_one(call: Callable[[Any], Any], supply: Supply, read: Read) -> Supply:
    view = supply.view if isinstance(supply, _View) else None

    async def body(task: Task, ctx: Any) -> Out:
        if view is None:
            return read(await call(supply(task, ctx)), task, ctx, None)
        state = view(task.state)
        result = await call(state)
        if type(state) is StateView and not state.written and not state.shown:
            return read(result, task, ctx, None)
        writes = writes_of(state)
        return _only_new(read(result, task, ctx, _assigned(writes) if writes else None), state)

    return body


class _View:
    __slots__ = ("view",)

    def __init__(self, view: Callable[[State], object]) -> None:
        self.view = view

    def __call__(self, task: Task, ctx: object) -> Any:
        return self.view(task.state)


def body_of(node: NodeContract, rules: BodyRules) -> Body:
    """Return the body of a node component. Raises: SpecError: it asks for what there is not."""
    if node.adapted is not None:
        return node.adapted(rules)
    return as_body(node.call, rules, inline=node.inline)


def bind(node: NodeContract, edges: Sequence[object], options: object) -> None:
    """Give a node component its out-edges and the options, if it wants them."""
    if node.bind is not None:
        node.bind(edges, options) if len(parameters_of(node.bind)) > 1 else node.bind(edges)


def as_body(call: Callable[..., object], rules: BodyRules, *, inline: bool | None = None) -> Body:
    """Return the body of a callable.

    Raises: SpecError (AX161): nothing supplies a required parameter.
    """
    names = parameters_of(call)
    supplies: dict[str, Supply] = {}
    problems: list[Problem] = []
    known = supplied(rules)
    for name, required in names.items():
        if name in known:
            supplies[name] = supply_of(name, rules)
        elif required:
            hint = did_you_mean(name, known) or (
                f"A body may ask for {format_names(sorted(known), 20)}; fields are in "
                f'inputs["{name}"].'
            )
            problems.append(
                Problem(
                    "AX161",
                    f'node "{rules.node}"',
                    f'the body asks for "{name}", which nothing supplies.',
                    hint,
                )
            )
    if problems:
        raise SpecError(problems)
    return Plain(call, supplies, result_reader(rules), mode_of(call, bool(inline)))


def as_forward(
    call: Callable[..., object],
    rules: BodyRules,
    places: Sequence[str],
    *,
    without: Collection[str] = (),
    inline: bool = False,
) -> Body:
    """Return the body of a user's function; see ``arranged`` for its parameters.

    Args:
        places: the values by position; in a typed graph the first one is the state.
        without: names that do not count as known.

    Raises: SpecError (AX162, AX163).
    """
    pull = None if rules.pull is None else (*rules.pull,)
    push = None if rules.push is None else (*rules.push,)
    key = (id(call), inline, rules.payload, pull, push, *places, *without, *rules.given)
    if not rules.own and (body := rules.made.get(key)) is not None:
        return body
    known = supplied(rules)
    if without:
        known = [name for name in known if name not in without]
    order = ("state", *places[1:]) if rules.payload == "state" else tuple(places)
    where = f'node "{rules.node}"'
    call, wanted = arranged(call, known, order, where)
    attributes = next((name for name, value in wanted.items() if value == "attributes"), "")
    body = Plain(
        call,
        {name: supply_of(value, rules) for name, value in wanted.items()},
        result_reader(rules),
        mode_of(call, inline),
        attributes or "attributes",
    )
    its_own = rules.own or rules.chat or attributes or rules.given.keys() & wanted.values()
    return body if its_own else rules.made.setdefault(key, body)


class Arranged(NamedTuple):
    """A function to be called by name, and the value of each parameter."""

    call: Callable[..., Any]
    wanted: Mapping[str, str]


def arranged(
    call: Callable[..., object],
    known: Collection[str],
    places: Sequence[str],
    where: str,
    also: Mapping[str, str] | None = None,
) -> Arranged:
    """Return how a user's function is called: which values its parameters are given.

    By name, where all required parameters have ``known`` names; else by position, the value in
    ``places``, and a known name has to stand at its own place. Parameters with defaults are given
    what they name, or nothing; a function without parameters nothing; one that does not say what it
    takes the first value.

    >>> both = ("inputs", "attributes")
    >>> arranged(lambda message, attrs, limit=3: 0, {"attributes"}, both, "here").wanted
    {'message': 'inputs', 'attrs': 'attributes'}

    Args:
        where: the place of the function, for messages.
        also: whose place other known names have: ``{"input": "inputs"}``.

    Raises: SpecError: AX162 a known name out of place, or a name that nothing supplies; AX163 too
    many parameters.
    """
    wanted = parameters_of(call)
    if not wanted and _takes_any(call):
        return Arranged(_of_one(call), {"value": places[0]})
    required = [name for name, is_required in wanted.items() if is_required]
    named = {name: name for name in wanted if name in known}
    strangers = [name for name in required if name not in named]
    if not strangers:
        return Arranged(_by_name(call), named)
    in_place = {
        name
        for name, place in zip(wanted, places, strict=False)
        if name in named and (also or _ALSO).get(name, name) == place
    }
    by_name = [name for name in required if name in named and name not in in_place]
    if by_name or not first_of(call):
        mixed = (
            f"mixes known names ({format_names(by_name)}) with others ({format_names(strangers)})"
            if by_name
            else f"asks by name for {format_names(strangers)}, which nothing supplies"
        )
        hint = did_you_mean(strangers[0], known) or (
            f"Use only names of {format_names(sorted(known), 20)}; or none, and values are "
            f"given by position: {', '.join(places)}."
        )
        raise SpecError(Problem("AX162", where, f"the function {mixed}.", hint))
    if len(required) > len(places):
        message = (
            f"the function takes {len(required)} arguments; by position it is given 1 to "
            f"{len(places)}: {', '.join(places)}."
        )
        raise SpecError(Problem("AX163", where, message))
    positions = dict(zip(required, places, strict=False))
    others = {name: value for name, value in named.items() if name not in required}
    return Arranged(_by_name(call), {**positions, **others})


_ALSO = {"input": "inputs"}


def _takes_any(call: Callable[..., object]) -> bool:
    """Return whether a callable takes ``*args``, or does not say what it takes."""
    try:
        described = signature_of(call).parameters.values()
    except (TypeError, ValueError):  # written in C
        return True
    return any(p.kind is p.VAR_POSITIONAL for p in described)


def _by_name(call: Callable[..., Any]) -> Callable[..., object]:
    """Return a function that takes by name what ``call`` takes by position alone."""
    if (plain := _plain(call)) is not None:
        code = plain[0].__code__
        names: Sequence[str] = code.co_varnames[plain[1] : code.co_posonlyargcount]
    else:
        names = [p.name for p in _described(call) if p.kind is p.POSITIONAL_ONLY]
    if not names:
        return call

    async def awaited(**given: object) -> object:
        return await call(*[given.pop(name) for name in names if name in given], **given)

    def called(**given: object) -> object:
        return call(*[given.pop(name) for name in names if name in given], **given)

    return awaited if is_async(call) else called


def _of_one(call: Callable[..., Any]) -> Callable[..., object]:

    async def awaited(value: object) -> object:
        return await call(value)

    def called(value: object) -> object:
        return call(value)

    return awaited if is_async(call) else called


def mode_of(call: Callable[..., object], inline: bool) -> Mode:
    """Return how a callable is run."""
    return "async" if is_async(call) else "inline" if inline else "thread"


def parameters_of(call: Callable[..., object]) -> dict[str, bool]:
    """Return the parameters of ``call`` that can be given by name, and whether each is required;
    the first positional one is required, too: no name can give it anything.
    """
    if (plain := _plain(call)) is None:
        return {
            p.name: p.default is p.empty or (not number and p.kind is p.POSITIONAL_ONLY)
            for number, p in enumerate(_described(call))
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        }
    function, bound = plain
    code = function.__code__
    many, by_name = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    given = many - len(function.__defaults__ or ())
    found = {name: position < given for position, name in enumerate(code.co_varnames[:many])}
    for name in code.co_varnames[:bound]:  # the object of a method is given
        del found[name]
    for name in code.co_varnames[many:by_name]:
        found[name] = name not in (function.__kwdefaults__ or ())
    return found


def _described(call: Callable[..., object]) -> Collection[inspect.Parameter]:
    try:
        return signature_of(call).parameters.values()
    except (TypeError, ValueError):
        return ()


def _plain(call: Callable[..., object]) -> tuple[FunctionType, int] | None:
    """Return a plain function, or a method's, and how many parameters are bound."""
    # its code is read in a tenth of the time of a signature
    function, bound = (call.__func__, 1) if isinstance(call, MethodType) else (call, 0)
    if type(function) is not FunctionType or function.__code__.co_argcount < bound:
        return None
    marks = vars(function)
    is_plain = not marks or ("__wrapped__" not in marks and "__signature__" not in marks)
    return (function, bound) if is_plain else None


def first_of(call: Callable[..., object]) -> str:
    """Return the first parameter's name, if it can be given by position; else empty."""
    if (plain := _plain(call)) is not None:
        code, bound = plain[0].__code__, plain[1]
        return code.co_varnames[bound] if code.co_argcount > bound else ""
    first = next(iter(_described(call)), None)
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return first.name if first is not None and first.kind in by_position else ""


def is_async(call: Any) -> bool:
    """Return whether calling gives something to await or to iterate asynchronously; of any
    callable.
    """
    while isinstance(call, functools.partial):
        call = cast("Any", call).func
    if (plain := _plain(call)) is not None and not vars(plain[0]):  # nothing marks it otherwise
        return bool(plain[0].__code__.co_flags & _ASYNC)
    if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call):
        return True
    # the question is not whether it can be called, but how
    method = getattr(cast("type[Any]", type(call)), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def is_coroutine_function(body: Body) -> bool:
    """Return whether calling a body only makes a coroutine."""
    if isinstance(body, Plain) or inspect.iscoroutinefunction(body):
        return True
    # the question is not whether it can be called, but how
    return inspect.iscoroutinefunction(getattr(body, "__call__", None))  # noqa: B004


def supplied(rules: BodyRules) -> Collection[str]:
    """Return the parameter names by which a body may ask for something."""
    return [*_SUPPLIES, "state", "attributes", *rules.given]


def supply_of(name: str, rules: BodyRules) -> Supply:
    """Return the function that supplies a name of ``supplied``."""
    if name in rules.given:
        value = rules.given[name]
        return lambda task, ctx: value
    if name == "state":
        return _STATE if rules.view is None else _View(rules.view)
    if name == "attributes":
        return lambda task, ctx: _attributes(rules, task.state)
    if rules.chat and name == "messages":
        return lambda task, ctx: conversation(task.state, rules.chat)
    if rules.chat and name == "payloads":
        return lambda task, ctx: [conversation(task.state, rules.chat)]
    return _SUPPLIES[name]


def inputs_of(task: Task, ctx: object = None) -> dict[str, Any]:
    """Return the live payloads folded into fields; containers are copied when they are touched."""
    tokens = task.tokens
    payload: Any = tokens[0].payload if len(tokens) == 1 else None
    if type_of(payload) is not dict:
        return fields_of(fold_payloads([token.payload for token in tokens]))
    for value in payload.values():
        if type(value) not in ATOMS:
            return fields_of(payload)
    return dict(payload)


_STATE = _View(StateView)
_SUPPLIES: Mapping[str, Supply] = {
    "inputs": inputs_of,
    "input": inputs_of,
    "messages": lambda task, ctx: [isolate(m) for m in gather_messages(task.tokens)],
    "payloads": lambda task, ctx: [isolate(token.payload) for token in task.tokens],
    "local": lambda task, ctx: ctx.local,
    "ctx": lambda task, ctx: ctx,
    "task": lambda task, ctx: task,
}


class Attributes(dict[str, Any]):
    """A node's view of the attributes, to read and to set; what is set becomes part of the result.

    Changing a value in place does not count: write ``attributes["log"] = [*attributes["log"],
    line]``. Deleting one is an error, and so is setting one that the node does not write.
    """

    __slots__ = ("assigned", "written")

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__(values)
        self.written: dict[str, object] = {}
        self.assigned: Mapping[str, object] = {}
        """The fields that the body assigned to its view of the state."""

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(name, value)
        self.written[name] = value

    def update(self, *others: object, **values: object) -> None:
        """As of a dict; every field counts as set."""
        for name, value in dict(*others, **values).items():
            self[name] = value

    def setdefault(self, name: str, default: object = None) -> Any:
        """As of a dict; a field that was not there counts as set."""
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, other: object) -> Attributes:
        self.update(other)
        return self

    def __delitem__(self, name: str) -> None:
        if name in self:
            raise undeletable(name)
        super().__delitem__(name)

    # one signature for dict.pop's overloads
    def pop(self, name: str, *default: object) -> Any:  # type: ignore[override]
        """As of a dict, where there is no such attribute. Raises: StateError: there is one."""
        if name in self:
            raise undeletable(name)
        return super().pop(name, *default)

    def popitem(self) -> tuple[str, Any]:
        """Raise: an attribute is never removed."""
        raise undeletable(next(reversed(self))) if self else KeyError("there are no attributes.")

    def clear(self) -> None:
        """Raise, unless there is none: an attribute is never removed."""
        if self:
            raise undeletable(next(iter(self)))


def _assigned(values: Mapping[str, object], attributes: Attributes | None = None) -> Attributes:
    attributes = Attributes({}) if attributes is None else attributes
    attributes.assigned = {**attributes.assigned, **without_views(dict(values))}
    return attributes


def _attributes(rules: BodyRules, state: State) -> Attributes:
    values = dict(rules.own or {})
    kept = state.get(local_field(rules.node))
    if isinstance(kept, dict):
        values.update(cast("dict[str, Any]", kept).get("attributes", {}))
    outer = (
        [n for n in state if not n.startswith("@")]
        if rules.pull is None
        else [n for n in rules.pull if n in state]
    )
    values.update((name, state[name]) for name in outer)
    return Attributes({name: isolate(value) for name, value in values.items()})


class KnownMessage(dict[str, Any]):
    """A message of the conversation, as a body is given it: sent on, it is not said again."""

    __slots__ = ()


def conversation(state: State, field_name: str) -> list[dict[str, Any]]:
    """Return the messages that a typed state holds, as dicts of the body's own."""
    found: object = state.get(field_name)
    items: Sequence[object] = () if found is MISSING else isolate(found)
    return [KnownMessage(m) for each in items or () if (m := _plain_message(each))]


def _plain_message(given: object) -> dict[str, Any]:
    if isinstance(given, dict):
        return cast("dict[str, Any]", given)
    dump = getattr(given, "model_dump", None)
    if dump is not None:
        return dump(mode="json", exclude_none=True)
    fields = {name: getattr(given, name, None) for name in ("role", "content")}
    return fields if fields["role"] else {}


def _with_messages(rules: BodyRules, out: Out) -> Out:
    output: object = out.output
    if rules.chat in out.delta or not is_messages(output):
        return out
    by = {"source": rules.node}
    new = [
        {**m, **(by if m.get("role") == "assistant" and not m.get("source") else {})}
        for m in cast("Sequence[dict[str, Any]]", output)
        if type(m) is not KnownMessage
    ]
    plain = [dict(m) for m in cast("Sequence[Any]", output)]
    delta = {**out.delta, rules.chat: new} if new else out.delta
    return Out(plain, delta, out.to)


def result_reader(rules: BodyRules) -> Read:
    """Return the function that reads the results of a node's body; equal rules share it."""
    if rules.own or rules.chat:
        return _reader(rules)
    pull = None if rules.pull is None else (*rules.pull,)
    push = None if rules.push is None else (*rules.push,)
    return _shared_reader(rules.payload, pull, push, is_free=rules.is_free)


@functools.lru_cache(maxsize=512)
def _shared_reader(
    payload: str, pull: tuple[str, ...] | None, push: tuple[str, ...] | None, *, is_free: bool
) -> Read:
    names = (None if names is None else dict.fromkeys(names, "") for names in (pull, push))
    return _reader(
        BodyRules(node="", payload=payload, pull=next(names), push=next(names), is_free=is_free)
    )


def _reader(rules: BodyRules) -> Read:
    read = {"state": _read_delta, "messages": _read_any}.get(rules.payload, _read_fields)
    named = rules.pull if rules.push is None else rules.push
    checked = (
        Changes if rules.is_free and all(type(name) is str for name in named or ()) else _UNCHECKED
    )

    def fields(value: Any, task: Task, ctx: Any, attributes: Any) -> Out:
        """As ``result`` with ``_read_fields``, in one call; what is free to be written and cannot
        change is checked by that.
        """
        if type_of(value) is not dict or ctx is not None or attributes is not None:
            return result(value, task, ctx, attributes)
        if not value:
            return new_tuple(Out, ({}, _NO_CHANGES, None))
        kind = checked
        for item in value.values():
            if type(item) not in ATOMS:
                kind = _UNCHECKED
                if without_views(item) is not item:
                    value = without_views(value)
                    break
        if named is None:
            return new_tuple(Out, ({**value}, kind(task.state.among(value)), None))
        delta = kind()
        for name in named:
            if name in value:
                delta[name] = value[name]
        return new_tuple(Out, ({**value}, delta, None))

    def result(value: Any, task: Task, ctx: Any, attributes: Any) -> Out:
        out = value if type(value) is Out else read(rules, value, task, attributes)
        if isinstance(attributes, Attributes):
            if attributes.written:
                out = _with_set(rules, out, task.state, attributes)
            if attributes.assigned:
                out = _with_assigned(rules, out, task.state, attributes.assigned)
        if rules.chat and rules.payload == "messages":
            out = _with_messages(rules, out)
        touched: Mapping[str, Mapping[str, object]] | None = (
            ctx.touched if ctx is not None else None
        )
        return out if touched is None else with_own(out, touched)

    return fields if read is _read_fields and not rules.own else result


def with_own(out: Out, touched: Mapping[str, Mapping[str, object]]) -> Out:
    """Return an outcome that also writes what the node keeps for itself."""
    delta = dict(out.delta)
    for name, own in touched.items():
        before: Mapping[str, object] = delta.get(name) or {}
        delta[name] = {**own, **before}
    return Out(out.output, Changes(delta) if type(out.delta) is Changes else delta, out.to)


def _with_assigned(rules: BodyRules, out: Out, state: State, assigned: Mapping[str, object]) -> Out:
    """Raises: StateError (AX203): the node does not write that field."""
    for name in assigned:
        if not _is_written(rules, name, state):
            raise _unwritten(name, "the state")
    return Out(out.output, {**assigned, **out.delta}, out.to)


def _with_set(rules: BodyRules, out: Out, state: State, attributes: Attributes) -> Out:
    """Raises: StateError (AX203): the node does not write one of the attributes set."""
    written = without_views(attributes.written)
    delta = pushed_fields(rules, written, state)
    for name in written:
        if name not in delta and name not in (rules.own or ()):
            if not _is_written(rules, name, state):
                raise _unwritten(name, "the attributes")
            delta[name] = written[name]
    return Out(out.output, {**delta, **out.delta}, out.to)


def _is_written(rules: BodyRules, name: str, state: State) -> bool:
    named = rules.pull if rules.push is None else rules.push
    if named is not None:
        return name in named
    return rules.payload == "state" or state.schema.closed or name in state


def _unwritten(name: str, where: str) -> StateError:
    return StateError(
        f'the body assigned "{name}" to {where}, and the node does not write it.',
        id="AX203",
        hint="Name it in push_keys.",
    )


def _read_delta(rules: BodyRules, value: object, task: Task, attributes: object) -> Out:
    if value is None:
        return Out({})
    delta = values_of(value, written=True)
    if delta is None:
        raise BodyError(
            f"the body returned {type(value).__name__}; a node of a typed graph returns a "
            "mapping of fields, or None."
        )
    return Out({}, without_views(delta))


def _read_fields(rules: BodyRules, value: Any, task: Task, attributes: object) -> Out:
    if type(value) is not dict and not isinstance(value, Mapping):
        raise BodyError(
            f"the body returned {type(value).__name__}; a node returns a mapping of fields.",
            hint="It is a coroutine: await it."
            if inspect.iscoroutine(value)
            else 'Return {"message": …}, for example.',
        )
    output: dict[str, object] = dict(without_views(value))
    return Out(output, pushed_fields(rules, output, task.state, attributes))


def _read_any(rules: BodyRules, value: Any, task: Task, attributes: Any) -> Out:
    if isinstance(value, str):
        return Out([{"role": "assistant", "content": value}])
    if value is None:
        return Out([])
    if isinstance(value, Mapping) and not (
        {"role", "content"} <= set(cast("Mapping[str, Any]", value))
    ):
        return _read_fields(rules, value, task, attributes)
    if isinstance(value, Mapping):
        return Out([dict(cast("Mapping[str, Any]", value))])
    if is_messages(value):
        return Out(list(value))
    raise BodyError(
        f"the body returned {type(value).__name__}; expected messages, text, fields or an Out."
    )


def pushed_fields(
    rules: BodyRules, output: Mapping[str, object], state: State, attributes: object = None
) -> dict[str, Any]:
    """Return the part of a node's result that its push rules write back to the attributes."""
    written: Mapping[str, object] = (
        {**attributes.written, **output}
        if isinstance(attributes, Attributes) and attributes.written
        else output
    )
    if rules.push is not None:
        delta = {name: written[name] for name in rules.push if name in written}
    elif rules.pull is not None:
        delta = {name: written[name] for name in rules.pull if name in written}
    else:
        delta = dict(state.among(written))
    if rules.own:
        mine = {name: written[name] for name in rules.own if name in written and name not in delta}
        if mine:
            field_name = local_field(rules.node)
            kept = state.get(field_name)
            before = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
            delta[field_name] = {**before, "attributes": {**before.get("attributes", {}), **mine}}
    return delta
