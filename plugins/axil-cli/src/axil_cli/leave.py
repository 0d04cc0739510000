"""Leave that is kept with a run: its words, and a code over them and all that they hold for.

A journal can be anybody's: a folder that came with a download, a database that others write to. So
the words in it count only with a code (an HMAC) that was made with a key of the user who gave them.
The key is in a file of the user's, which no workflow file can name; it is made when leave is kept
for the first time. Without a key nothing is kept, and leave is given again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

KEY_FILE: Final = "AXIL_LEAVE_KEY_FILE"
"""The variable with the file of the key, where it is not the usual one."""
_USUAL: Final = "~/.axil/leave.key"
_BYTES: Final = 32
_SEALED: Final = (
    "file",
    "texts",
    "vars",
    "secret_vars",
    "python",
    "folder",
    "digests",
    "functions",
    "function_digests",
    "allow",
    "allow_code",
)
"""The parts of what is kept with a run that leave holds for, and its words."""


def sealed(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept with a run, with the code that makes its leave hold later on."""
    bare = {name: value for name, value in kept.items() if name != "leave"}
    if not (bare.get("allow") or bare.get("allow_code")):
        return bare
    key = _key(is_made=True)
    return bare if key is None else {**bare, "leave": _code(bare, key)}


def is_sealed(kept: Mapping[str, Any]) -> bool:
    """Return whether this user gave the leave that is kept with a run, for what is kept with it."""
    code, key = kept.get("leave"), _key(is_made=False)
    if key is None or not isinstance(code, str):
        return False
    return hmac.compare_digest(code.encode(), _code(kept, key).encode())


def digests_of(folder: str) -> dict[str, str]:
    """Return the Python files of a folder of functions, each with a digest of its text."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in _sources(folder)
    }


def changed_functions(kept: Mapping[str, Any]) -> list[str]:
    """Return the files of a run's functions that are not what they were, are new, or are gone."""
    before: Mapping[str, str] | None = kept.get("function_digests")
    if before is None:
        return []
    now = digests_of(str(kept["functions"]))
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def _sources(folder: str) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name != "__pycache__"
            and not name.startswith(".")
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
        )
        files = (Path(place, name) for name in sorted(names) if name.endswith(".py"))
        yield from (file for file in files if file.is_file())


def _code(kept: Mapping[str, Any], key: bytes) -> str:
    whole = json.dumps([[name, kept.get(name)] for name in _SEALED], sort_keys=True, default=repr)
    return hmac.new(key, b"axil leave 1\0" + whole.encode(), hashlib.sha256).hexdigest()


def _key(*, is_made: bool) -> bytes | None:
    """Return the key of this user; None: there is none, or others can read it or write it."""
    path = Path(os.environ.get(KEY_FILE) or _USUAL).expanduser()
    with suppress(OSError):
        if is_made and not path.exists():
            _make(path)
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            is_own = os.name == "nt" or (
                about.st_uid == os.geteuid() and not stat.S_IMODE(about.st_mode) & 0o077
            )
            key = file.read(_BYTES + 1)
        return key if is_own and len(key) == _BYTES else None
    return None


def _make(path: Path) -> None:
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    begun = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with open(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
        with suppress(FileExistsError):  # another process was faster
            os.link(begun, path)
    finally:
        begun.unlink(missing_ok=True)


__all__ = ["KEY_FILE", "changed_functions", "digests_of", "is_sealed", "sealed"]
