"""Fields that conditions read and edges name, held against those that are declared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from axil.errors import Problem, did_you_mean, format_names
from axil.kernel.tokens import ENTRY, EXIT
from axil.spec.graph import EdgeSpec, GraphSpec

_OF_MESSAGES = frozenset({"message", "role", "content", "name", "source", "extra"})


def misread(
    spec: GraphSpec,
    components: Callable[[str], object],
    conditions: Iterable[tuple[EdgeSpec, object]],
    fields: Iterable[str] | None,
) -> Iterator[Problem]:
    """Yield a warning (AX158) for each field that a condition reads and nothing declares.

    What reads has ``reads``, pairs of ``message`` or ``state`` and a name; a node that declares its
    output has ``gives``, the names. ``fields``: those of the state; None: any.
    """
    of_state = None if fields is None else frozenset(fields)
    for edge, condition in conditions:
        if condition is not None and (reads := getattr(condition, "reads", ())):
            where = str(edge.place or f"edge {edge.source}->{edge.target}")
            gives = getattr(components(edge.source), "gives", None)
            known = None if gives is None else frozenset(gives)
            yield from _unknown(reads, where, known, of_state)
    reading = {n.id: n for n in spec.nodes if getattr(components(n.id), "reads", ())}
    incoming: defaultdict[str, list[EdgeSpec]] = defaultdict(list)
    for edge in spec.edges if reading else ():
        incoming[edge.target].append(edge)
    for name, node in reading.items():
        reads: Iterable[tuple[str, str]] = getattr(components(name), "reads", ())
        yield from _unknown(reads, node.where, brought(incoming[name], components), of_state)


def _unknown(
    reads: Iterable[tuple[str, str]],
    where: str,
    of_message: frozenset[str] | None,
    of_state: frozenset[str] | None,
) -> Iterator[Problem]:
    fields = {"message": of_message, "state": of_state}
    for root, name in sorted(reads):
        known = fields.get(root)
        if known is None or name in known or (root == "message" and name in _OF_MESSAGES):
            continue
        message = f"{root}.{name} is read, but the known fields are {format_names(sorted(known))}."
        yield Problem("AX158", where, message, did_you_mean(name, known), severity="warning")


def brought(
    edges: Iterable[EdgeSpec], components: Callable[[str], object]
) -> frozenset[str] | None:
    """Return the fields that edges bring; None: unknown."""
    found = set[str]()
    for edge in edges:
        gives = getattr(components(edge.source), "gives", None)
        carried = gives if edge.keys is None else edge.keys
        if carried is None or edge.process is not None:
            return None
        found.update(carried)
    return frozenset(found)


def undeclared(edges: Sequence[EdgeSpec], taken: object, given: object) -> Iterator[Problem]:
    """Yield a warning (AX983) for each edge at an end of a graph that names fields which the type
    ``taken`` of its inputs, or ``given`` of its outputs, lacks; else for fields of the outputs that
    no edge brings. A type without names says nothing.
    """
    entering = [edge for edge in edges if edge.source == ENTRY]
    leaving = [edge for edge in edges if edge.target == EXIT]
    found = [*_strangers(entering, taken), *_strangers(leaving, given)]
    yield from found
    if found or not leaving or not all(map(_is_plain, leaving)):
        return
    if missing := sorted(_required(given).difference(*(edge.keys or () for edge in leaving))):
        message = f"no edge brings {format_names(missing)} to the exit, which {_name(given)} has."
        hint = "Carry it on an edge to the exit, or declare it as NotRequired."
        yield Problem("AX983", leaving[-1].where, message, hint, severity="warning")


def _strangers(edges: Iterable[EdgeSpec], kind: object) -> Iterator[Problem]:
    if (names := _fields(kind)) is None:
        return
    for edge in filter(_is_plain, edges):
        if strangers := [key for key in edge.keys or () if key not in names]:
            has = format_names(sorted(names)) or "no fields"
            message = (
                f"the edge carries {format_names(strangers)}, which {_name(kind)} does not "
                f"declare: it declares {has}."
            )
            hint = did_you_mean(strangers[0], names) or "Declare it, or change the key."
            yield Problem("AX983", edge.where, message, hint, severity="warning")


def _is_plain(edge: EdgeSpec) -> bool:
    """Return whether an edge carries the fields that it names, and no others."""
    return edge.keys is not None and edge.process is None and edge.carry_data


def _fields(kind: object) -> frozenset[str] | None:
    """Return the fields of a TypedDict, a dataclass or a model of pydantic; None: any."""
    if getattr(kind, "model_config", {}).get("extra") == "allow":
        return None
    if hasattr(kind, "__required_keys__"):
        return frozenset(getattr(kind, "__optional_keys__", ())) | _keys(kind)
    found: Mapping[str, object] | None = getattr(kind, "model_fields", None)
    if found is None:
        found = getattr(kind, "__dataclass_fields__", None)
    if found is None:
        return None
    return frozenset(str(getattr(info, "alias", None) or name) for name, info in found.items())


def _keys(kind: object) -> frozenset[str]:
    return frozenset(getattr(kind, "__required_keys__", ()))


def _required(kind: object) -> frozenset[str]:
    """Return the fields that each value of a TypedDict has."""
    try:
        written: Mapping[str, object] = getattr(kind, "__annotations__", {})
    except NameError:  # a name that only type checkers know
        written = {}
    # those that are text were not read by Python
    return frozenset(n for n in _keys(kind) if "NotRequired[" not in str(written.get(n)))


def _name(kind: object) -> str:
    return str(getattr(kind, "__name__", kind))
