"""Workflow files: a document becomes a ``GraphSpec``, and everything that is wrong with it is said
at once.

The format is the one of DevAll's YAML files with additions; its keys are listed in ``format``.
Nothing is resolved and nothing is imported here but the loader. How what a file says becomes what
the kernel knows:

- ``start`` becomes edges from ``@entry``, before all others. ``end`` becomes edges to ``@exit``
  that carry and do not trigger, so that an end inside a cycle does not end the cycle; behind the
  ends comes the first node without out-edges, for runs in which no end had an output.
- ``keep_message`` and ``clear_…`` become marks on what the edge carries. A node that receives
  marks, or has a ``context_window``, gets the wrapper that the shorthand ``context_window`` gives.
- ``dynamic`` on edges becomes a wrapper of their target, the one that it names; so does a
  ``process`` that names a wrapper, because a processor cannot wait.
- ``is_majority_voting`` replaces the edges: the input goes to all nodes, and their outputs to a
  node that the shorthand ``is_majority_voting`` gives.
- A condition ``true`` is none, a name is the condition of that name (``false`` is one), and so is
  ``{type: function, config: {name: …}}``; processors alike.
- A *shorthand* is a function of what a file says under a key to the component that is meant.
  Plugins provide them, so that no component of another distribution is named here.
- Nodes that ``use`` a template are written out before anything else is looked at (``templates``).
- A node whose type has a *dialect* is handed to it: a function from what was read to the node that
  is meant, for files that were written for something else. It is found by the node's type, so only
  files that have such a node import it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from axil import ComponentRef, ConfigError, GraphSpec, NodeSpec, PluginError, Problem, SpecError
from axil.plugin import (
    FromEnvironment,
    Grants,
    Place,
    PluginContract,
    Registry,
    default_registry,
    format_value,
    granted,
    install_advice,
    make_component,
    noting_wants,
)
from axil_files.documents import (
    MAX_SIZE,
    MAX_VALUES,
    Document,
    KeyPath,
    check_document,
    document_error,
    too_large,
)
from axil_files.format import WHOLE, Shapes, is_version_0
from axil_files.keys import literal_keys
from axil_files.reader import Reader
from axil_files.templates import expand
from axil_files.variables import PLACEHOLDER, resolve

MOST_INCLUDED = 16
"""The depth to which files may include files."""
MOST_FILES = 500
"""The number of files that a workflow includes, a file once for each place that includes it."""


class Tally:
    """The inclusions of one workflow, so that files which include each other many times are
    refused early. An inclusion is the way to it; one that is read again counts once.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[str, ...], int] = {}
        """The values of each file, once they are known."""
        self._total = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally)  # graphs that say the same are equal, however often read

    def __hash__(self) -> int:
        return hash(Tally)

    def begin(self, way: tuple[str, ...], where: str) -> None:
        """Count a file. Raises: SpecError: AX117 it is one too many; AX144 as ``add``."""
        if way not in self._values and len(self._values) >= MOST_FILES:
            message = f"files include more than {MOST_FILES} files, each counted where it is used."
            raise SpecError(Problem("AX117", where, message, "Include fewer, or less often."))
        self._values.setdefault(way, 0)
        self.add(way, self._values[way], where)

    def add(self, way: tuple[str, ...], values: int, where: str) -> None:
        """Count the values of a file. Raises: SpecError (AX144): all together have too many."""
        if way in self._values:
            self._total += values - self._values[way]
            self._values[way] = values
        if self._total > MAX_VALUES:
            message = f"the files that are included have more than {MAX_VALUES} values."
            raise SpecError(Problem("AX144", where, message, "Include fewer, or less often."))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """With what a document is read."""

    vars: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Stronger than the file's own."""
    outer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Weaker than the file's own: those of the graph around this one."""
    environment: Mapping[str, str] | None = None
    """Values for names that are no variables; None: the process's environment."""
    allow_code: bool = False
    """True if types may be import paths."""
    grants: Grants | None = field(default_factory=Grants)
    """The grants of the file; None: all that Python code may do."""
    registry: Registry | None = None
    """None: the process's own."""
    folder: str = ""
    """The folder of the file: what it includes is looked up here, then in ``root``."""
    root: str = ""
    """The first file's folder; nothing outside it is included."""
    trail: tuple[str, ...] = ()
    """The files on the way to this one, itself included."""
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """The texts of workflow files by their paths below ``root``: they are not read from the disk,
    and what is read is added.
    """
    tally: Tally = field(default_factory=Tally)
    """The inclusions of the workflow."""
    way: tuple[str, ...] = ()
    """The way of inclusions to this graph; empty: it is the first."""


def load_spec(
    path: str | os.PathLike[str],
    *,
    vars: Mapping[str, object] | None = None,
    registry: Registry | None = None,
    allow_code: bool = False,
    allow: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    texts: dict[str, str] | None = None,
) -> GraphSpec:
    """Return the graph that a workflow file describes.

    Args:
        vars: values for ``${NAME}``, stronger than the file's own ``vars``; the environment comes
            last.
        registry: where the loader for the file's suffix is found.
        allow_code: the same as ``code`` in ``allow``.
        allow: what the file may do: ``code``, ``env:NAME``, ``read:PATH`` …; see ``Grants``.
        environment: instead of the process's, for servers and tests.
        texts: of the file and of those it includes, by their paths below its folder: they are not
            read from the disk, and what is read is added. Kept, they are the workflow as it was.
    Raises: SpecError with everything that was found. UnknownComponent: there is no loader for the
    suffix.
    """
    given = Grants.of((*allow, "code") if allow_code else allow)
    try:
        name = os.fspath(path)
    except TypeError as error:
        raise TypeError(
            f"path: expected that of a file, found {format_value(path)}. "
            "Write what it says into a file, or make the graph in Python."
        ) from error
    try:
        real = os.path.realpath(name)
        os.fsencode(real)
    except ValueError as error:
        shown = name.encode("utf-8", "backslashreplace").decode()
        raise document_error(
            "AX100", shown, None, "no file can have this name.", "Name a file."
        ) from error
    folder = os.path.dirname(real)
    reading = LoadOptions(
        vars=vars or {},
        environment=environment,
        allow_code=given.allows("code"),
        grants=given,
        registry=registry,
        folder=folder,
        root=folder,
        trail=(real,),
        texts={} if texts is None else texts,
    )
    return spec_from_document(_parsed(name, real, reading), reading)


def include_spec(
    name: str,
    outer: Mapping[str, Any],
    *,
    where: str = "",
    registry: Registry | None = None,
    reading: LoadOptions | None = None,
) -> GraphSpec:
    """Return the graph in a file that another file mentions.

    Args:
        name: its path, from the folder of the mentioning file, or from that of the first one;
            nothing outside the latter.
        outer: ``extras`` of the mentioning graph; its variables are seen, weaker than the file's
            own.
        where: the place that mentions it, for messages.
        reading: environment and allowance for code.
    Raises: SpecError: AX117 a circle, more than 16 levels, more than 500 files in all, or outside
    the folder; AX144 too many values in all; and what ``load`` raises.
    """
    base = reading or LoadOptions()

    def refused(message: str, hint: str) -> SpecError:
        return SpecError(Problem("AX117", where, message, hint))

    if not outer.get("folder"):
        message = f"nothing says where {name} is to be looked up."
        raise refused(message, "Load the workflow from a file.")
    folder = str(outer["folder"])
    root = os.path.realpath(str(outer.get("root") or folder))
    trail = tuple(cast("tuple[str, ...]", outer.get("trail", ())))
    texts: dict[str, str] = outer.get("texts", base.texts)
    real = _included(name, folder, root, (where, texts))
    shown = os.path.relpath(real, os.path.dirname(trail[0])) if trail else name
    if real in trail:
        circle = " → ".join(os.path.basename(each) for each in (*trail[trail.index(real) :], real))
        hint = "A loop is a cycle of edges, not of files."
        raise refused(f"{name} includes itself: {circle}.", hint)
    if len(trail) >= MOST_INCLUDED:
        message = f"{name} would be included at a depth of more than {MOST_INCLUDED}."
        raise refused(message, "Reduce the nesting.")
    tally, way = outer.get("included") or (Tally(), ())
    way = (*way, f"{where} {name}")
    tally.begin(way, where)
    inner = replace(
        base,
        tally=tally,
        way=way,
        grants=outer.get("grants") or base.grants or Grants(),  # a file is always confined
        outer=outer.get("vars", {}),
        registry=registry or base.registry,
        folder=os.path.dirname(real),
        root=root,
        trail=(*trail, real),
        texts=texts,
    )
    return spec_from_document(_parsed(shown, real, inner), inner)


class _LinesBelow(Mapping[KeyPath, int]):
    """The lines of a graph that is a part of a document."""

    def __init__(self, whole: Mapping[KeyPath, int], keys: KeyPath, first: int | None) -> None:
        self._whole, self._keys, self._first = whole, keys, first

    def __getitem__(self, keys: KeyPath) -> int:
        line = self._whole[(*self._keys, *keys[1:])] if keys else self._first
        if line is None:
            raise KeyError(keys)
        return line

    def __iter__(self) -> Iterator[KeyPath]:
        size = len(self._keys)
        return (("graph", *keys[size:]) for keys in self._whole if keys[:size] == self._keys)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True


def inline_spec(
    data: object,
    outer: Mapping[str, Any],
    *,
    place: Place | None = None,
    reading: LoadOptions | None = None,
) -> GraphSpec:
    """Read the graph that is written out in another one's config; ``data`` is as under ``graph``.

    ``outer`` as for ``include``. Raises: SpecError.
    """
    base = reading or LoadOptions()
    lines: Any = {}
    if place is not None:
        lines = _LinesBelow(place.lines, place.keys, place.line) if place.lines else lines
    name = "" if place is None else place.file if lines else f"{place.file} {place.path}".strip()
    around = {key: outer.get(key, "") for key in ("folder", "root")}
    trail, texts = tuple(outer.get("trail", ())), outer.get("texts", base.texts)
    around["grants"] = outer.get("grants")  # without: Python code wrote it
    if "included" in outer:
        tally, way = outer["included"]
        around |= {"tally": tally, "way": (*way, "" if place is None else str(place))}
    inner = replace(base, outer=outer.get("vars", {}), trail=trail, texts=texts, **around)
    root = {"version": outer["version"]} if outer.get("version") is not None else {}
    return spec_from_document(Document(data={**root, "graph": data}, lines=lines, name=name), inner)


def read_inner(
    given: Mapping[str, Any], place: Place, spec: GraphSpec, reading: LoadOptions | None = None
) -> GraphSpec | None:
    """Return the graph that a setting of a node of ``spec`` holds or names; None: it is neither.

    It is read to be looked into: what is included does not count against the bounds again.
    Raises: SpecError.
    """
    outer = spec.extras
    if "included" in outer:
        outer = {**outer, "included": (Tally(), ())}
    if isinstance(given.get("nodes"), list):
        return inline_spec(given, outer, place=place, reading=reading)
    if isinstance(given.get("path"), str):
        return include_spec(given["path"], outer, where=str(place), reading=reading)
    return None


def _unfit(spec: GraphSpec, registry: Registry | None) -> Iterator[Problem]:
    """Report the faults of components that cannot be used, so that one check reports all problems.

    Of settings with a variable that nothing is known for, what may be its doing is left alone.
    """
    found = registry or default_registry()
    lenient = is_version_0(spec.extras.get("version"))
    uses = [("nodes", node.use, node.place) for node in spec.nodes]
    uses += [
        ("wrappers", use, use.place or node.place) for node in spec.nodes for use in node.wrappers
    ]
    uses += [("conditions", edge.condition, edge.place) for edge in spec.edges]
    uses += [("processors", edge.process, edge.place) for edge in spec.edges]
    for kind, use, place in uses:
        if not isinstance(use, ComponentRef) or ":" in use.type:
            continue
        where = str(place or "")
        config = place.at("config") if place and kind == "nodes" else None
        unknown = list(_unknown(use.config))
        try:
            component = found.resolve(kind, use.type, where, requires=spec.requires)
            if config is not None or not unknown:
                # what a text without its value would want is not known
                with noting_wants() if unknown else nullcontext():
                    make_component(component, use.config, config or where, lenient=lenient)
        except PluginError as error:
            yield replace(error.problem, where=error.where or where)
        except (ConfigError, SpecError) as error:
            yield from (
                replace(problem, where=problem.where or where)
                for problem in error.problems
                if config is None or _is_apart(problem, config, unknown)
            )
        except Exception:  # noqa: BLE001
            # a plugin's fault; it is reported when the rest of the file is mended
            continue


def _unknown(value: Any, keys: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the keys of texts with a variable that nothing is known for."""
    if isinstance(value, str):
        if not isinstance(value, FromEnvironment) and PLACEHOLDER.search(value):
            yield keys
    elif isinstance(value, (dict, list)):
        entries: Iterable[tuple[Any, Any]] = (
            cast("dict[str, Any]", value).items()
            if isinstance(value, dict)
            else enumerate(cast("list[Any]", value))
        )
        for key, item in entries:
            yield from _unknown(item, (*keys, key))


def _is_apart(problem: Problem, config: Place, unknown: Iterable[KeyPath]) -> bool:
    """Return whether a problem of a config cannot come of texts whose variables are unknown."""
    around = {str(config.at(*keys[:n])) for keys in unknown for n in range(len(keys) + 1)}
    is_of_keys = problem.id in ("AX130", "AX132")
    return (
        not around
        or is_of_keys
        or not (problem.where in around or PLACEHOLDER.search(problem.message))
    )


def _translated(spec: GraphSpec, registry: Registry | None) -> GraphSpec:
    """Return the graph, with nodes of another origin as what they mean here.

    Raises: PluginError: a dialect cannot be used.
    """
    found = registry or default_registry()
    known = set(found.names("dialects"))

    def meant(node: NodeSpec) -> NodeSpec:
        if node.use is None or node.use.type not in known:
            return node
        given: Any = found.resolve("dialects", node.use.type, str(node.place or ""))(node, spec)
        if not isinstance(given, NodeSpec):
            message = (
                f'the dialect "{node.use.type}" gave {type(given).__name__} instead of a NodeSpec.'
            )
            raise PluginContract(message, where=str(node.place or ""))
        return given

    return replace(spec, nodes=tuple(map(meant, spec.nodes))) if known else spec


def _requirements(spec: GraphSpec, place: Place) -> Iterator[Problem]:
    """Yield, as warnings, the distributions that the file requires and that are missing or too
    old.
    """
    from importlib.metadata import PackageNotFoundError, version

    for name, wanted in spec.requires.items():
        where = str(place.at("requires"))
        try:
            there = version(name)
        except (PackageNotFoundError, ValueError):
            message = f"the file requires {name}, which is not installed."
            hint = f"If you know its publisher: {install_advice(name)}"
            yield Problem("AX119", where, message, hint, "warning")
            continue
        least = re.search(r">=\s*(\d+(?:\.\d+)*)", wanted)
        if least and _numbers(there) < _numbers(least[1]):
            message = f"the file requires {name} {wanted}, and {there} is installed."
            yield Problem("AX119", where, message, install_advice(name, how="upgrade"), "warning")


def _version(spec: GraphSpec, place: Place) -> Iterator[Problem]:
    """Yield a warning of a file whose format this distribution does not know."""
    version = spec.extras.get("version")
    if version is not None and str(version).split(".")[0] not in ("0", "1"):
        message = f"version {version!r} of the format is not known; it is read as version 1."
        hint = "Write version: 1, or install an axil that reads this version."
        yield Problem("AX175", str(place), message, hint, "warning")


def _numbers(version: str) -> tuple[int, ...]:
    """``1.2.0rc1`` → ``(1, 2)``: what tells which version is older."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _included(name: str, folder: str, root: str, at: tuple[str, Mapping[str, str]]) -> str:
    """Return the real path of a file inside ``root``.

    ``at``: who mentions it, and the texts that are known.
    """
    where, texts = at
    is_text = name.encode("utf-8", "replace").decode() == name
    if "\0" in name or "://" in name or not is_text:
        raise SpecError(Problem("AX117", where, "only files can be included.", "Write a path."))
    for start in dict.fromkeys((folder, root)):
        real = os.path.realpath(os.path.join(start, name))
        if os.path.commonpath([real, root]) != root:
            message = f"{name} is outside the workflow's folder."
            hint = "Put it into the folder of the first file, or below."
            raise SpecError(Problem("AX117", where, message, hint))
        if os.path.exists(real) or _below(root, real) in texts:
            return real
    usual = "Paths are relative to the folder of the file that contains them."
    hint = like_file(os.path.join(folder, name), usual)
    raise SpecError(Problem("AX100", where, f"no file {name}.", hint))


def _below(root: str, real: str) -> str:
    return os.path.relpath(real, root).replace(os.sep, "/")


def parse_workflow(name: str, real: str, registry: Registry | None = None) -> Document:
    """Return the document in a file, as it lies on the disk; see ``load`` for what it means.

    Raises: SpecError.
    """
    found = _parsed(name, real, LoadOptions(registry=registry, root=os.path.dirname(real)))
    check_document(found)
    return found


def _parsed(name: str, real: str, reading: LoadOptions) -> Document:
    """Return the document in a file; its data is not measured yet.

    ``name`` is what messages call it, ``real`` its path without links.
    """
    key = _below(reading.root, real)
    if key not in reading.texts and os.path.isdir(real):
        raise document_error(
            "AX100", name, None, "this is a folder.", "Name a workflow file in it."
        )
    suffix = Path(name).suffix.lower().lstrip(".")
    if not suffix:
        message = "a workflow file is known by its suffix, and this one has none."
        raise document_error("AX100", name, None, message, "Call it flow.yaml or flow.json.")
    registry = reading.registry or default_registry()
    if suffix == "py" and suffix not in registry.names("loaders"):
        hint = f"Import its graph; or run it, if it is called graph there: axil run {name}:graph"
        raise document_error("AX100", name, None, "this is Python, and no workflow file.", hint)
    if key not in reading.texts:
        reading.texts[key] = _text(name, real)
    if not reading.texts[key].strip():
        raise _empty(name)
    loader: Any = registry.resolve("loaders", suffix, name)
    document = (loader() if isinstance(loader, type) else loader)(reading.texts[key], name)
    if not isinstance(document, Document):
        raise PluginContract(
            f'the loader "{suffix}" gave {type(document).__name__} instead of a Document.',
            where=name,
        )
    if document.data is None:
        raise _empty(name)
    return document


def _empty(name: str) -> SpecError:
    return document_error("AX103", name, None, "the file is empty.", WHOLE)


def _text(name: str, real: str) -> str:
    try:  # neither a pipe without a writer nor a link put here in the meantime is followed
        descriptor = os.open(
            real, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise document_error("AX100", name, None, "this is not a file.", "Name a file.")
            data = file.read(MAX_SIZE + 1)
    except FileNotFoundError:
        raise document_error("AX100", name, None, "no such file.", like_file(real)) from None
    except OSError as error:
        raise document_error(
            "AX100", name, None, f"it cannot be read: {error.strerror or error}."
        ) from error
    if len(data) > MAX_SIZE:
        raise too_large(Place(file=name), f"larger than {MAX_SIZE} bytes.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise document_error(
            "AX140", name, line, "this is not text in UTF-8.", "Save it as UTF-8."
        ) from error


def like_file(path: str | os.PathLike[str], otherwise: str = "Check the path.") -> str:
    """Return the question whether a file beside a missing one is meant, or ``otherwise``."""
    import difflib

    path = os.fspath(path)
    with suppress(OSError):
        stems = {Path(name).stem: name for name in sorted(os.listdir(os.path.dirname(path) or "."))}
        near = difflib.get_close_matches(Path(path).stem, stems, n=1)
        if near and not os.path.exists(path):
            return f'Did you mean "{stems[near[0]]}"?'
    return otherwise


def spec_from_document(document: Document, reading: LoadOptions | None = None) -> GraphSpec:
    """Return the graph that a document describes. Raises: SpecError with everything that was
    found.
    """
    from axil_files.models import File

    using = reading or LoadOptions()
    values = check_document(document)
    problems: list[Problem] = []
    data = document.data
    own = cast("dict[str, Any]", data).get("vars") if isinstance(data, dict) else None
    declared = cast("dict[str, Any]", own if isinstance(own, dict) else {})
    variables = {**using.outer, **declared, **using.vars}
    environment = os.environ if using.environment is None else using.environment
    grants = using.grants and using.grants.at(using.root or using.folder)
    leave = None if using.environment is not None else grants
    resolved = resolve(document, variables, environment, problems.append, leave)
    if resolved.environment or variables:  # without any, the data is what it was
        values = max(values, check_document(resolved.document))
    using.tally.add(using.way, values, document.name)
    expanded = expand(resolved.document, problems.append)
    if any(problem.id == "AX171" for problem in problems):  # some nodes have no type, then
        raise SpecError(problems)
    shapes = Shapes(expanded, problems.append)
    shapes.fits(expanded.data, File, ())
    spec = Reader(
        expanded,
        shapes,
        allow_code=using.allow_code,
        grants=grants,
        registry=using.registry,
    ).file()
    with granted(grants):
        spec = _translated(spec, using.registry) if spec is not None else None
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors or spec is None:
        with granted(grants):
            unfit = list(_unfit(spec, using.registry)) if spec is not None else []
        raise SpecError(dict.fromkeys([*errors, *unfit]))
    problems.extend(_requirements(spec, document.place()))
    problems.extend(_version(spec, document.place("version")))
    problems.extend(literal_keys(document))
    around = {
        "folder": using.folder,
        "root": using.root,
        "trail": using.trail,
        "texts": using.texts,
        "vars": variables,
        "environment": resolved.environment,
        "secrets": resolved.secrets,
        "included": (using.tally, using.way),
        "read": read_inner,
        "warnings": tuple(problem for problem in problems if problem.severity == "warning"),
    }
    kept = {key: value for key, value in around.items() if value}
    return replace(spec, extras={**spec.extras, **kept, "grants": grants})
