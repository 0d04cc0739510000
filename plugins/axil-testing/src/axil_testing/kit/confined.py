"""The law about settings of a stranger's file: a component that is made from them, and asked, does
nothing that needs leave.

    python -m axil_testing.kit.confined acme-shout acme-notes

Each text in the examples of a component, and each setting that may be one, also inside lists,
mappings and parts of settings, is in turn a path outside of the file's folder, a variable of the
environment, a program, an import path; then the component is made while the grants of such a file
are in force, provisioned, and does what it does first when it is used: context gives blocks, a
store its marks, a channel asks, a cipher seals, a node, a wrapper, a hook and an executor have a
part in a run. The interpreter's audit events say what it did. What must not happen is prevented, so
that nothing is harmed. All of it happens in a process of its own, one for any number of
distributions.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import json
import logging
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, cast

from axil import AxilError, ComponentRef, EdgeSpec, GraphSpec, NodeSpec, Question, Workflow
from axil.plugin import (
    CompileOptions,
    Component,
    EdgeInput,
    Grants,
    Registry,
    current_grants,
    default_registry,
    granted,
    hook_manager,
    make_component,
    message,
)
from axil_testing.kit.edges import state_of

CANARY: Final = "AXIL_KIT_CANARY"
"""The variable of the environment, and in lower case the module and the program, that nothing may
use.
"""
_NAME: Final = CANARY.lower()
_TEXT: Final = "canary-77b1-outside"
_DEEPEST: Final = 5
_SECONDS: Final = 5.0
_OF_THE_CALLER: Final = frozenset(
    {"channels", "ciphers", "engines", "executors", "hooks", "journals", "meters", "sandboxes"}
)
"""Kinds that no file chooses: what they do with their examples, and with a ``Path``, is what they
are for. Their texts are texts.
"""
_STARTS: Final = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn"}
)
_SENDS: Final = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto"})
_CHANGES: Final = frozenset(
    {
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.truncate",
        "os.link",
        "os.symlink",
        "os.chmod",
        "os.utime",
        "sqlite3.connect",
    }
)
_READS: Final = frozenset({"os.listdir", "os.scandir"})


class Refused(PermissionError):
    """Something that needs leave was prevented."""


class Guard:
    """The audit of one process: notes and prevents what a stranger's settings must not do."""

    def __init__(self, root: Path) -> None:
        self.root = os.path.realpath(root)
        self.own = os.path.join(self.root, "flows")
        self.kept = os.path.join(self.own, ".axil")
        self.is_watching = self.may_send = False
        self.seen: list[str] = []
        self._read_elsewhere = set[str]()
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_watching:
            return
        fault = self._fault(event, arguments)
        if fault:
            self.seen.append(fault)
        if fault or event in _SENDS:
            raise Refused(fault or "there is no network in this process")

    def _fault(self, event: str, arguments: tuple[Any, ...]) -> str:
        if event in _STARTS:
            return f"starts a program: {arguments[0]!r:.80}"
        if event in _SENDS:
            return "" if self.may_send else f"connects: {arguments[-1]!r:.80}"
        if event == "import":
            return f"imports {arguments[0]}" if str(arguments[0]).startswith(_NAME) else ""
        if event == "open":
            path, mode, flags = (*arguments, None, 0)[:3]
            writes = (isinstance(mode, str) and set(mode) & set("wax+")) or (
                isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
            )
            return self._path(path, "writes" if writes else "reads")
        if event in _CHANGES:
            return self._path(arguments[0], "writes")
        return self._path(arguments[0], "reads") if event in _READS else ""

    def _path(self, path: Any, act: str) -> str:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return ""
        given = os.fsdecode(cast("Any", path))
        if given in (":memory:", os.devnull) or "__pycache__" in given:
            return ""
        if act == "reads" and given in self._read_elsewhere:
            return ""
        self.is_watching = False  # following links is not the component's act
        try:
            real = os.path.realpath(given)
        except (OSError, ValueError):
            return ""
        finally:
            self.is_watching = True
        if act == "reads":
            is_outside = _is_below(real, self.root) and not _is_below(real, self.own)
            if os.path.isabs(given) and not _is_below(real, self.root):
                self._read_elsewhere.add(given)  # metadata and modules, which are read often
        else:
            own = (self.kept, os.path.join(self.root, "tmp"), "/dev")
            is_outside = not any(_is_below(real, each) for each in own)
        return f"{act} {given}" if is_outside else ""

    @contextlib.contextmanager
    def watching(self, *, may_send: bool) -> Generator[None]:
        """Note and prevent what happens within."""
        self.is_watching, self.may_send = True, may_send
        try:
            yield
        finally:
            self.is_watching = False


class _Environment(MutableMapping[str, str]):
    """The environment, which notes that the canary is looked up."""

    def __init__(self, real: MutableMapping[str, str], guard: Guard) -> None:
        self._real, self._guard = real, guard

    def __getitem__(self, name: str) -> str:
        is_noted = name == CANARY and self._guard.is_watching
        if is_noted and not _is_for_proxies(inspect.currentframe()):
            self._guard.seen.append(f"reads the variable {CANARY}")
        return self._real[name]

    def __setitem__(self, name: str, value: str) -> None:
        self._real[name] = value

    def __delitem__(self, name: str) -> None:
        del self._real[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._real)

    def __len__(self) -> int:
        return len(self._real)

    def copy(self) -> dict[str, str]:
        """Return a copy, as that of ``os.environ`` has one."""
        return dict(self._real)


def _is_for_proxies(frame: FrameType | None) -> bool:
    """Return whether ``urllib`` looks through all variables for those of proxies."""
    while frame is not None:
        if frame.f_code.co_name == "getproxies_environment":
            return frame.f_globals.get("__name__") == "urllib.request"
        frame = frame.f_back
    return False


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


# --------------------------------------------------------------------------------------------------


def hostile_values(root: str) -> tuple[Any, ...]:
    """Return the values that a stranger might write where a text is expected."""
    return (
        "../secret.txt",
        f"{root}/secret.txt",
        f"file://{root}/secret.txt",
        "link",
        "link/secret.txt",
        "~/secret.txt",
        CANARY,
        f"${{{CANARY}}}",
        {"env": CANARY},
        _NAME,
        f"{root}/bin/{_NAME}",
        f"{_NAME}:thing",
    )


def variants(
    config: Mapping[str, Any],
    schema: Mapping[str, Any],
    values: Sequence[Any],
    *,
    paths: bool = True,
) -> Iterator[dict[str, Any]]:
    """Yield the config with each of the values at each place where its schema, or what stands there
    now, may be a text; one at a time. Without ``paths``: not where a ``Path`` is expected.
    """
    named = schema.get("$defs", {})
    places = dict.fromkeys((*_places_in(config), *_places(schema, named)))
    for keys in () if paths else _places(schema, named, of="path"):
        places.pop(keys, None)
    for keys in places:
        for value in values:
            with contextlib.suppress(TypeError, IndexError, KeyError):
                yield cast("dict[str, Any]", _put(config, keys, value))


def _places_in(value: Any, depth: int = 0) -> Iterator[tuple[str | int, ...]]:
    """Yield the places of texts in plain data."""
    pairs: Any = ()
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
    elif isinstance(value, (list, tuple)):
        pairs = enumerate(cast("Sequence[Any]", value))
    for key, inner in pairs if depth < _DEEPEST else ():
        if isinstance(inner, str):
            yield (key,)
        for keys in _places_in(inner, depth + 1):
            yield (key, *keys)


def _places(
    schema: Mapping[str, Any], named: Mapping[str, Any], depth: int = 0, of: str = ""
) -> Iterator[tuple[str | int, ...]]:
    """Yield the places where a JSON schema takes a text, or anything: ``0`` is a list's first item,
    ``x`` an entry of a mapping, which may hold anything where nothing else is said. With ``of``:
    only where a text has this format.
    """
    if depth > _DEEPEST:
        return
    if "$ref" in schema:
        schema = named.get(str(schema["$ref"]).rpartition("/")[2], {})
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _places(each, named, depth + 1, of)
    kind = schema.get("type")
    if of:
        if schema.get("format") == of:
            yield ()
    elif kind == "string" or not (kind or "anyOf" in schema or "properties" in schema):
        yield ()
    for name, inner in schema.get("properties", {}).items():
        yield from ((name, *keys) for keys in _places(inner, named, depth + 1, of))
    if kind == "array":
        items: Any = schema.get("items", {})
        yield from ((0, *keys) for keys in _places(items, named, depth + 1, of))
    others: Any = schema.get("additionalProperties", "properties" not in schema)
    if kind == "object" and others is not False:
        inner: Any = {} if others is True else others
        yield from (("x", *keys) for keys in _places(inner, named, depth + 1, of))


def _put(value: Any, keys: tuple[str | int, ...], new: Any) -> Any:
    """Return a copy of plain data with another value at a place, which is made if it is not
    there.
    """
    if not keys:
        return new
    key, *rest = keys
    if isinstance(key, int):
        items = list(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else []
        first = items[key] if key < len(items) else None
        return [*items[:key], _put(first, tuple(rest), new), *items[key + 1 :]]
    pairs = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
    return {**pairs, key: _put(pairs.get(key), tuple(rest), new)}


# --------------------------------------------------------------------------------------------------


def faults(distributions: Sequence[str], folder: Path, registry: Registry) -> dict[str, list[str]]:
    """Return what components of distributions do with a stranger's settings: by component, each
    once. For a process of its own, which it changes.
    """
    guard = _prepared(folder)
    found: dict[str, list[str]] = {}
    names = set(distributions)
    for each in registry.candidates():
        if each.distribution not in names:
            continue
        try:
            component: Any = registry.resolve(each.kind, f"{each.distribution}/{each.name}")
        except AxilError:
            continue  # another law is about that
        guard.seen = []
        if getattr(component, "Config", None) is not None:
            _tried(Subject(component, each, registry), guard)
        if guard.seen:
            found[f"{each.kind}:{each.name}"] = list(dict.fromkeys(guard.seen))
    return found


def _prepared(folder: Path) -> Guard:
    """Lay out the folder, and begin to listen."""
    root = Path(os.path.realpath(folder))
    for name in ("flows", "bin", "modules", "tmp", "elsewhere", "flows/.axil"):
        (root / name).mkdir()
    (root / "secret.txt").write_text(_TEXT)
    (root / "flows/link").symlink_to(root)
    (root / "modules" / f"{_NAME}.py").write_text("thing = print\n")
    program = root / "bin" / _NAME
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    os.environ.update({CANARY: _TEXT, "HOME": str(root), "TMPDIR": str(root / "tmp")})
    os.environ["PATH"] = f"{root / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    tempfile.tempdir = str(root / "tmp")
    sys.path.append(str(root / "modules"))
    importlib.util.find_spec(_NAME)  # lists the folder now: the guard refuses it later
    os.chdir(root / "elsewhere")
    logging.disable()
    platform.processor()  # asks a program, once for the process
    asyncio.sleep = _no_sleep
    guard = Guard(root)
    # of this process only, which starts no other
    os.environ = cast("Any", _Environment(os.environ, guard))  # noqa: B003
    return guard


async def _no_sleep(delay: float, result: Any = None, *, wait: Any = asyncio.sleep) -> Any:
    """Wait for nothing: what a component waits for between two tries, this process refuses."""
    return await wait(min(delay, 0.001), result)


class Subject(NamedTuple):
    """A component that is tried."""

    component: Any
    known: Component
    registry: Registry


def _tried(subject: Subject, guard: Guard) -> None:
    component = subject.component
    try:
        schema: Mapping[str, Any] = component.Config.model_json_schema()
    except Exception:  # noqa: BLE001  # another law is about that
        schema = {}
    grants = Grants(folder=guard.own)
    stated: Any = schema.get("examples") or getattr(component, "examples", None) or ({},)
    usual, is_of_caller = set[str](), subject.known.kind in _OF_THE_CALLER
    values = hostile_values(guard.root)
    for given in cast("Sequence[Mapping[str, Any]]", stated):
        config = {**given}
        seen = list(guard.seen)
        with granted(grants):
            made: Any = None
            with guard.watching(may_send=False), contextlib.suppress(Exception):
                made = make_component(component, config)  # what it imports, it imports now
            if made is not None:
                _used(made, subject, config, guard)
        if is_of_caller:
            usual.update(guard.seen)
        guard.seen = seen
        for variant in variants(config, schema, values, paths=not is_of_caller):
            with granted(grants):
                made: Any = None
                with guard.watching(may_send=False), contextlib.suppress(Exception):
                    made = make_component(component, variant)
                if made is not None:
                    _used(made, subject, variant, guard)
    guard.seen = [each for each in guard.seen if each not in usual]


def _used(made: Any, subject: Subject, config: Mapping[str, Any], guard: Guard) -> None:
    """Provision a component, let it do what it does first, and close it."""
    acts: list[Callable[[], Any]] = []
    if hasattr(made, "provision"):
        acts.append(made.provision)
    if not hasattr(made, "permit"):
        acts += _asking(made, subject, config)
    if hasattr(made, "close"):
        acts.append(made.close)
    if not acts:
        return

    async def all_of() -> None:
        for act in acts:
            with contextlib.suppress(Exception):
                given = act()
                if hasattr(given, "__await__"):
                    await asyncio.wait_for(given, _SECONDS)

    loop = asyncio.new_event_loop()  # its own sockets are made before the guard listens
    try:
        with guard.watching(may_send=True), contextlib.suppress(Exception):
            loop.run_until_complete(all_of())
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _asking(made: Any, subject: Subject, config: Mapping[str, Any]) -> list[Callable[[], Any]]:
    """Return what a component does first, where that needs nothing outside."""
    known, registry = subject.known, subject.registry
    match known.kind:
        case "context" if hasattr(made, "get_blocks"):
            with contextlib.suppress(ImportError):
                from axil_models import ContextQuery

                return [lambda: made.get_blocks(ContextQuery(query_text="canary"))]
        case "conditions" | "processors":
            return [lambda: made(EdgeInput(message("canary"), state_of({})))]
        case "embedders":
            return [lambda: made.embed(["canary"])]
        case "rerankers":
            return [lambda: made.rerank("canary", ["canary"])]
        case "formatters":
            return [lambda: made.parse("canary", ["a"])]
        case "guards":
            return [lambda: made.check("canary", None)]
        case "stores":
            return [lambda: made.marks([])]
        case "tools" if hasattr(made, "tools"):
            return [lambda: made.tools()]
        case "channels":
            return [lambda: made.ask(Question(text="canary"))]
        case "ciphers":
            return [lambda: made.seal(b"canary", b"")]
        case "sandboxes":
            return [lambda: made.problem()]
        case "joins":
            return [lambda: made.fires(1, 0, 1)]
        case "scorers":
            with contextlib.suppress(ImportError):
                from axil_evals import Case, Trial

                case, trial = Case(name="a", inputs="canary"), Trial(status="done", output="canary")
                return [lambda: made.score(case, trial, None)]
        case "hooks":
            return [lambda: _run(registry, hooks=hook_manager([made]))]
        case "executors":
            return [lambda: _run(registry, executor=made)]
        case "nodes":
            return [lambda: _run(registry, made)]
        case "wrappers":
            name = f"{known.distribution}/{known.name}"
            return [lambda: _run(registry, wrapper=ComponentRef(type=name, config=config))]
        case _:
            pass
    return []


def _same(inputs: Any) -> Any:
    return inputs


async def _run(
    registry: Registry,
    body: Any = _same,
    *,
    wrapper: ComponentRef | None = None,
    hooks: Any = None,
    **options: Any,
) -> None:
    """Run one node, as its graph, its caller and the hooks say."""
    node = NodeSpec(id="a", body=body, wrappers=() if wrapper is None else (wrapper,))
    edges = (EdgeSpec(source="@entry", target="a"), EdgeSpec(source="a", target="@exit"))
    grants = current_grants()
    spec = GraphSpec(id="kit", nodes=(node,), edges=edges, extras={"grants": grants})
    shared = CompileOptions(registry=registry, hooks=hooks, grants=grants, environment={})
    async with Workflow(spec, shared) as workflow:
        await workflow.start({"n": "canary"}, hooks=hooks, **options).result()


def confinement_faults(*distributions: str) -> dict[str, list[str]]:
    """Return ``faults``, found out in a process of its own.

    Raises: AssertionError: it cannot be found out.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", __name__, *distributions],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise AssertionError(f"its settings cannot be tried: {last}")
    return cast("dict[str, list[str]]", json.loads(done.stdout.rpartition("\n")[2]))


def main(argv: Sequence[str] | None = None) -> int:
    """Print what ``faults`` returns, as JSON."""
    given = sys.argv[1:] if argv is None else argv
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = faults(given, Path(folder), default_registry())
        os.chdir("/")
    sys.stdout.write("\n" + json.dumps(found))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    code = main()
    os._exit(code)  # threads of components need not end
