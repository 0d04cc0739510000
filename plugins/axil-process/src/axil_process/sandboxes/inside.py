"""The supervisor in a sandbox: the first process there, which runs one program within limits.

A script of its own; it imports the standard library only.

    python -I -S -c TEXT SETTINGS PROGRAM [ARGUMENT …]

When the first process of a sandbox ends, the system kills all others in it, and no signal from
inside reaches it. So it looks a few times a second at what its processes use together, and ends
where that passes a limit. The system holds each process to its own limits, and to a filter of
system calls: those that reach what no namespace keeps apart, and those that programs do not need
and whose faults were ways out of sandboxes.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

_LOOK = 0.02
"""Seconds between two looks at what all processes use."""
_STOPPED = 137
"""The exit code where a limit was passed: that of a program that was killed."""
_NOT_DUMPABLE, _NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 4, 38, 22, 2
"""Numbers of ``prctl``: no tracing by other processes, no new rights, filters of system calls."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_NUMBER, _MACHINE, _FIRST = 0, 4, 16
"""The offsets in the data of a system call of its number, the machine and the first argument."""
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Of a machine: what the system calls it, and the column of its numbers below."""
_NAMESPACES = 0x7E020000
"""The flags of ``clone`` that make namespaces."""
_FAMILIES = (1, 2, 10, 16)
"""Sockets: of the machine, of both versions of IP, of netlink; each namespace has its own. Others,
such as those between a virtual machine and its host, belong to no namespace.
"""
_REFUSED = {
    "memfd_create": (319, 279),  # memory that counts for no process
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "add_key": (248, 217),  # keys of the user's session
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),  # acts that no filter sees
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
}
_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)


def main(settings: Mapping[str, Any], command: Sequence[str]) -> NoReturn:
    """Run ``command`` to its end, and end as it does."""
    try:
        _forbid()
    except OSError as error:
        _end(126, f"the filter of system calls cannot be set: {error}")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        _begin(settings, command)
    _watch(child, settings)


def _forbid() -> None:
    """Take rights from this process and all that it starts: none may trace it, and the filter
    holds for all. Raises: OSError: the system does not filter.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NOT_DUMPABLE, 0, 0, 0, 0)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    text = _rules(platform.machine())
    if not text:
        return
    kept = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("@HP", len(text) // 8, ctypes.addressof(kept))
    if libc.prctl(_SECCOMP, _FILTER, ctypes.c_char_p(program), 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _rules(machine: str) -> bytes:
    """Return the filter for a machine; empty: its numbers are not known."""
    if machine not in _MACHINES:
        return b""
    name, column = _MACHINES[machine]

    def rule(code: int, value: int, then: int = 0, other: int = 0) -> bytes:
        return struct.pack("=HBBI", code, then, other, value)

    def refuse(number: int, error: int) -> bytes:
        return rule(_EQUAL, number, 0, 1) + rule(_RETURN, _ERROR | error)

    families = b"".join(
        rule(_EQUAL, each, len(_FAMILIES) - place) for place, each in enumerate(_FAMILIES)
    )
    return b"".join(
        (
            # programs for another machine have other numbers
            *(rule(_LOAD, _MACHINE), rule(_EQUAL, name, 1), rule(_RETURN, _ERROR | _ENOSYS)),
            *(rule(_LOAD, _NUMBER), rule(_AT_LEAST, 1 << 30, 0, 1)),
            rule(_RETURN, _ERROR | _ENOSYS),
            *(refuse(numbers[column], _EPERM) for numbers in _REFUSED.values()),
            refuse(_CLONE3[column], _ENOSYS),  # its flags lie in memory; ``clone`` is used instead
            *(rule(_EQUAL, _CLONE[column], 0, 4), rule(_LOAD, _FIRST)),
            *(rule(_ANY_BIT, _NAMESPACES, 0, 1), rule(_RETURN, _ERROR | _EPERM)),
            *(rule(_RETURN, _ALLOW), rule(_EQUAL, _SOCKET[column], 0, 2 + len(_FAMILIES))),
            *(rule(_LOAD, _FIRST), families, rule(_RETURN, _ERROR | _EAFNOSUPPORT)),
            rule(_RETURN, _ALLOW),
        )
    )


def _begin(settings: Mapping[str, Any], command: Sequence[str]) -> NoReturn:
    """In the child: become the program."""
    try:
        for kind, most, grace in (
            (resource.RLIMIT_AS, settings["memory_bytes"], 0),
            (resource.RLIMIT_NPROC, settings["user_processes"], 0),
            (resource.RLIMIT_CPU, settings["cpu_seconds"], 1),  # for the signal that says why
            (resource.RLIMIT_FSIZE, settings["file_bytes"], 0),
            (resource.RLIMIT_CORE, 0, 0),
        ):
            if most is not None:
                allowed = resource.getrlimit(kind)[1]
                soft, hard = (
                    each if allowed == resource.RLIM_INFINITY else min(each, allowed)
                    for each in (most, most + grace)
                )
                resource.setrlimit(kind, (soft, hard))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.setsid()  # where the system shares its time among sessions, the supervisor has its own
        os.nice(settings["nice"])
        os.execvp(command[0], list(command))
    except OSError as error:
        _end(127, f'"{command[0]}" cannot be started: {error.strerror}')
    finally:
        os._exit(127)


def _watch(child: int, settings: Mapping[str, Any]) -> NoReturn:
    """Wait for the program's end, or for a reason to end it."""
    seconds = settings["seconds"]
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK)
        code = _reaped(child)
        if code is not None:
            os._exit(code if code >= 0 else 128 - code)
        if until is not None and time.monotonic() > until:
            _end(_STOPPED, f"stopped: it ran longer than {seconds:g} seconds")
        found = [name for name in os.listdir("/proc") if name.isdecimal() and name != "1"]
        if len(found) > settings["processes"]:
            _end(_STOPPED, f"stopped: it started more than {settings['processes']} processes")
        if sum(map(_memory, found)) > settings["memory_bytes"] >> 10:
            _end(_STOPPED, f"stopped: it used more than {settings['memory_bytes']} bytes of memory")


def _reaped(child: int) -> int | None:
    """Wait for those that have ended, orphans included; return the program's exit code, if it is
    among them.
    """
    code = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
    return code


def _memory(pid: str) -> int:
    """Return how many KiB of memory a process holds, files apart."""
    count = 0
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith((b"RssAnon:", b"RssShmem:")):
                count += int(line.split()[1])
    return count


def _end(code: int, message: str) -> NoReturn:
    with suppress(OSError):
        os.set_blocking(2, False)  # a full pipe must not keep what is to be ended alive
        os.write(2, f"axil-process: {message}.\n".encode())
    os._exit(code)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
