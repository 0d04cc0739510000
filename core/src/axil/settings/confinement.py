"""Confinement below the settings: an audit hook that refuses what a file's grants do not cover.

Settings are checked where they are decoded. A component may forget to declare one, so the same
grants are enforced a second time, where the interpreter opens a file, connects, starts a program or
imports: while the grants of a file are in force (``current_grants``), whatever acts in that context
is confined to them, in every library. The grants follow tasks, callbacks, and the threads that
confined code starts. ``granted(None)`` is the way out for what axil, or a component, does on its
own account: a journal, a cache of models.

The hook sees what passes through the interpreter. What a library in C opens by itself is confined
by its settings only, as are variables of the environment. With the word ``code`` nothing is
enforced here; code of a module that was granted by ``import:MODULE`` may do what its user can.
"""

from __future__ import annotations

import functools
import opcode
import os
import shutil
import site
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from axil.errors import ConfigError, Problem
from axil.settings.grants import Act, Grants, current_grants, granted

Arguments = tuple[Any, ...]


class Refused(ConfigError, PermissionError):
    """Something that a workflow file has no leave for was prevented: AX137 a path, AX138 others."""


# ------------------------------------------------------------------------------------ what is open

_TREES: Final = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/nix/store")
"""Folders of the system that hold programs and their data, and nothing of a user."""
_SYSTEM: Final = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/gai.conf",
    "/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types",
    "/etc/nsswitch.conf", "/etc/os-release", "/etc/pki", "/etc/protocols", "/etc/resolv.conf",
    "/etc/services", "/etc/ssl", "/etc/timezone", "/dev/null", "/dev/random", "/dev/urandom",
    "/run/systemd/resolve", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm",
)  # fmt: skip
"""Files of the system that libraries read, such as certificates and names of hosts."""
_PROCESS: Final = frozenset({
    "cgroup", "cpuinfo", "filesystems", "loadavg", "maps", "meminfo", "mountinfo", "mounts", "stat",
    "statm", "status", "uptime", "version",
})  # fmt: skip
"""Files below ``/proc`` that may be read: facts about the machine and the process."""


@functools.cache
def _installed() -> tuple[str, ...]:
    """Return the folders of the interpreter and of installed distributions."""
    paths = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    paths |= {*site.getsitepackages(), site.getusersitepackages()}
    paths = {path for path in paths if path not in ("/", os.path.expanduser("~"))}
    return tuple(sorted({os.path.realpath(path) for path in paths}))


@functools.cache
def _temporary() -> str:
    with granted(None):
        return os.path.realpath(tempfile.gettempdir())


def _is_below(path: str, *roots: str) -> bool:
    return any(path == root or path.startswith(f"{root}{os.sep}") for root in roots)


def _is_readable(path: str) -> bool:
    """Return whether a path belongs to the system or to what is installed."""
    if _is_below(path, *_installed(), *_TREES, *_SYSTEM):
        return True
    if path.startswith("/proc/"):
        return os.path.basename(path) in _PROCESS
    variables = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    if _is_below(path, *(os.path.realpath(os.environ[v]) for v in variables if os.environ.get(v))):
        return True
    return _is_of_a_package(path)


def _is_of_a_package(path: str) -> bool:
    """Return whether a file belongs to a package that is imported: its code or its data."""
    for module in list(sys.modules.values()):
        try:
            folders: Any = getattr(module, "__path__", None)
            own = getattr(module, "__file__", None)
            if own is not None and os.path.realpath(own) == path:
                return True
            if folders is not None and _is_below(path, *map(os.path.realpath, folders)):
                return True
        except Exception:  # noqa: BLE001  # a module may be any object
            continue
    return False


def _callers() -> Iterator[tuple[str, str]]:
    """Yield the module and the function of each frame of this thread, the innermost first."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        yield str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
        frame = frame.f_back


_OTHERS: Final = frozenset(
    {"importlib._bootstrap", "importlib._bootstrap_external", "logging", "logging.handlers"}
)
"""Modules of the interpreter that act for somebody else: they import what a distribution contains,
and write the lines that their user wants to see.
"""
_CLEANERS: Final = frozenset({("weakref", "__call__"), ("weakref", "_exitfunc")})


def _is_for_others(grants: Grants) -> bool:
    """Return whether what is done in this thread is not the file's: a module is being imported, a
    line logged, an object finalized; or it is code that the user granted by its module.
    """
    modules = [word.partition(":")[2] for word in grants.words if word.startswith("import:")]
    for module, function in _callers():
        if module in _OTHERS or (module, function) in _CLEANERS or function == "__del__":
            return True
        if any(module == each or module.startswith(f"{each}.") for each in modules):
            return True
    return False


# ------------------------------------------------------------------------------------ what is done


def _refuse(problem: Problem | None, grants: Grants) -> None:
    if problem is not None and not _is_for_others(grants):
        raise Refused(problem)


def _path(given: object, act: Act, grants: Grants) -> None:
    """Refuse a path that the grants do not cover."""
    if not isinstance(given, (str, bytes, os.PathLike)):
        return  # a file that is open already
    if act == "read" and _is_for_others(grants):
        return  # what is imported is most of what is opened
    named = os.path.abspath(os.fsdecode(cast("Any", given)))
    try:
        real = os.path.realpath(named)
    except (OSError, ValueError):
        return  # it cannot be opened, either
    if real == os.devnull or _is_below(real, *grants.declared.folders):
        return
    want = grants.wanted_path(named, real, act)
    if want.problem is None or (act == "read" and _is_readable(real)):
        return
    written = [each[6:] for each in grants.words if each.startswith("write:")]
    if act == "read" and grants.wanted_path(named, real, "write").problem is None:
        return  # what it wrote
    if any(real.startswith((f"{each}.", f"{each}-")) for each in written):
        return  # a lock of a file, its next version, a database's log
    if _is_below(real, _temporary()) and any(name == "tempfile" for name, _ in _callers()):
        grants.declared.folders.add(real)  # a new name, of the interpreter's own choice
        return
    _refuse(want.problem, grants)


def _open(grants: Grants, given: Arguments) -> None:
    path, mode, flags = (*given, None, 0)[:3]
    if _NAMELESS and isinstance(flags, int) and flags & _NAMELESS == _NAMELESS:
        _folder(grants, given)
        return
    writes = bool(set(mode) & set("wax+")) if isinstance(mode, str) else False
    writes = writes or (isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR)))
    _path(path, "write" if writes else "read", grants)


_NAMELESS: Final[int] = getattr(os, "O_TMPFILE", 0)
"""A file without a name, which is gone with its last descriptor."""


def _read(grants: Grants, given: Arguments) -> None:
    _path(given[0] if given and given[0] is not None else ".", "read", grants)


def _write(grants: Grants, given: Arguments) -> None:
    _path(given[0], "write", grants)


def _folder(grants: Grants, given: Arguments) -> None:
    """Refuse a new folder, unless it leads to a place where the file may write."""
    granted_paths = (word[6:] for word in grants.words if word.startswith("write:"))
    folder = os.path.realpath(os.path.abspath(os.fsdecode(given[0])))
    if not any(_is_below(path, folder) for path in (*granted_paths, *grants.declared.folders)):
        _path(given[0], "write", grants)


def _move(grants: Grants, given: Arguments) -> None:
    _path(given[0], "write", grants)
    _path(given[1], "write", grants)


def _link(grants: Grants, given: Arguments) -> None:
    _path(given[0], "read", grants)
    _path(given[1], "write", grants)


def _database(grants: Grants, given: Arguments) -> None:
    name = given[0]
    if isinstance(name, (str, bytes)):
        name = os.fsdecode(name)
        if name.startswith("file:"):
            name = unquote(urlsplit(name).path)
        if name in ("", ":memory:"):
            return
    _path(name, "write", grants)


def _program(grants: Grants, given: Arguments) -> None:
    """Refuse a program, unless it was granted as it is named, or by the name under which ``PATH``
    has it.
    """
    program = given[0]
    if program is None or isinstance(program, (list, tuple)):  # as Popen got it
        program = cast("Any", given[1] if program is None else program)[0]
    given_name = os.fsdecode(program)
    name = os.path.basename(given_name)
    names = {given_name}
    if (found := shutil.which(name)) and os.path.realpath(found) == os.path.realpath(
        shutil.which(given_name) or given_name
    ):
        names.add(name)
    words = [f"{kind}:{each}" for each in names for kind in ("program", "mcp")]
    if not any(grants.allows(word) for word in words):
        shown = name if name in names else given_name
        _refuse(grants.wanted(f"program:{shown}").problem, grants)


def _process(grants: Grants, given: Arguments) -> None:
    """Refuse a copy of this process, or a program that only a shell knows."""
    if not grants.allows("program"):
        _refuse(grants.wanted("program").problem, grants)


def _library(grants: Grants, given: Arguments) -> None:
    if given and given[0] is not None:
        _refuse(grants.wanted("code").problem, grants)


def _host(grants: Grants, host: object) -> None:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str) or not host:
        return
    name = host.lower().rstrip(".").partition("%")[0]
    if name in grants.declared.hosts or name in _proxies() or grants.allows(f"net:{name}"):
        return
    _refuse(grants.wanted(f"net:{name}").problem, grants)


def _proxies() -> set[str]:
    variables = ("http_proxy", "https_proxy", "all_proxy")
    found = (os.environ.get(each) or os.environ.get(each.upper()) for each in variables)
    return {
        urlsplit(each if "//" in each else f"//{each}").hostname or "" for each in found if each
    }


def _resolve(grants: Grants, given: Arguments) -> None:
    _host(grants, given[0])


def _connect(grants: Grants, given: Arguments) -> None:
    address = given[1]
    if isinstance(address, (str, bytes)):  # a socket in the file system
        _path(address, "write", grants)
    elif isinstance(address, tuple) and address[0] not in grants.declared.addresses:
        _host(grants, cast("Any", address[0]))


def _module(grants: Grants, given: Arguments) -> None:
    """Refuse to run a module whose name is a setting of the file, unless code names it, too."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    name = ""
    while frame is not None and (frame.f_globals.get("__name__") or "").startswith("importlib"):
        if not name and frame.f_code.co_name == "exec_module":
            name = frame.f_locals["module"].__name__
        frame = frame.f_back
    if name not in grants.declared.names or grants.allows(f"import:{name}"):
        return
    if frame is None or not _is_chosen(name, frame):
        raise Refused(cast("Problem", grants.wanted(f"import:{name}").problem))


def _is_chosen(name: str, frame: FrameType) -> bool:
    """Return whether code names a module itself: in a statement, or as a text that it holds."""
    code = frame.f_code
    texts = (each for each in code.co_consts if isinstance(each, str))
    return code.co_code[frame.f_lasti] == _IMPORT_STATEMENT or any(
        text == name or text.startswith(f"{name}.") for text in texts
    )


_IMPORT_STATEMENT: Final = opcode.opmap["IMPORT_NAME"]


def _within(grants: Grants, call: Callable[..., object], /, *given: object, **named: object) -> Any:
    with granted(grants):
        return call(*given, **named)


_EVENTS: Final[Mapping[str, Callable[[Grants, Arguments], None]]] = {
    "open": _open,
    **dict.fromkeys(("os.listdir", "os.scandir", "os.chdir", "os.listxattr"), _read),
    **dict.fromkeys(
        ("os.rmdir", "os.remove", "os.truncate", "os.chmod", "os.chown", "os.utime",
         "os.setxattr", "os.removexattr"), _write,
    ),
    "os.mkdir": _folder,
    "os.rename": _move,
    **dict.fromkeys(("os.link", "os.symlink"), _link),
    "sqlite3.connect": _database,
    "subprocess.Popen": _program,
    **dict.fromkeys(("os.exec", "os.posix_spawn", "os.startfile"), _program),
    "os.spawn": lambda grants, given: _program(grants, given[1:]),
    **dict.fromkeys(("os.system", "os.fork", "os.forkpty", "pty.spawn"), _process),
    "ctypes.dlopen": _library,
    "socket.connect": _connect,
    "socket.sendto": _connect,
    **dict.fromkeys(
        ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"), _resolve
    ),
    "exec": _module,
}  # fmt: skip
"""Checks by the event that the interpreter reports, of those that Python's documentation lists in
"Audit events table".
"""


def _hook(
    event: str,
    given: Arguments,
    events: Mapping[str, Any] = _EVENTS,
    current: Callable[[], Grants | None] = current_grants,
    without: Any = granted,
) -> None:
    """Refuse what the grants in force do not cover. The last arguments outlive the module."""
    check = events.get(event)
    if check is None or (grants := current()) is None or "code" in grants.words:
        return
    with without(None):  # what the check does is not the file's
        check(grants, given)


# ------------------------------------------------------------------------------------ installation

_resolving = socket.getaddrinfo
_submitting = ThreadPoolExecutor.submit
_starting = threading.Thread.start


def _resolved(host: Any, *given: Any, **named: Any) -> object:
    """Resolve a host as ``socket.getaddrinfo`` does; a confined caller may connect to the
    addresses.
    """
    found = _resolving(host, *given, **named)
    if (grants := current_grants()) is not None:
        grants.declared.addresses.update(cast("str", each[4][0]) for each in found)
    return found


def _submit(pool: Any, call: Any, /, *given: Any, **named: Any) -> Any:
    """Submit a call to a pool of threads, with the grants in force."""
    if (grants := current_grants()) is not None:
        call = functools.partial(_within, grants, call)
    return _submitting(pool, call, *given, **named)


def _start(self: threading.Thread) -> None:
    """Start a thread, with the grants in force; those of a pool work for many."""
    grants = current_grants()
    target = getattr(self, "_target", None)
    if grants is not None and getattr(target, "__module__", "") != "concurrent.futures.thread":
        self.run = functools.partial(_within, grants, self.run)
    _starting(self)


@functools.cache
def install() -> None:
    """Begin to enforce grants in this process; once, and for good.

    Beside the hook, which cannot be taken out, ``Thread.start`` and ``ThreadPoolExecutor.submit``
    carry the grants along, and ``socket.getaddrinfo`` notes which addresses a granted host has.
    """
    _temporary()  # looked up once, before anything is confined
    _installed()
    threading.Thread.start = _start
    ThreadPoolExecutor.submit = _submit
    socket.getaddrinfo = _resolved
    sys.addaudithook(_hook)
