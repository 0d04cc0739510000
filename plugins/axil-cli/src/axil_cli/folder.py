"""The folder of a run: where it is, what was put into it, and what the run made there."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal
from urllib.parse import quote

from axil_cli.command import Session, misuse
from axil_files import like_file

RUNS: Final = "axil-runs"
"""The folder for runs that name none of their own."""
ATTACHMENTS: Final = "attachments"
RECORD: Final = ".axil"
"""The file with the list of attachments."""
_MOST: Final = 1_000
"""Artifacts that are reported."""
_SHOWN: Final = 20
"""Artifacts that are reported to people."""
_CHUNK: Final = 1 << 20
_TICK: Final = 20_000_000
"""Nanoseconds: file systems keep times in ticks of the kernel, which are shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file, as it is recorded."""

    name: str
    """From the folder on, with ``/``."""
    size: int
    """Bytes."""
    media_type: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact(Kept):
    """A file that the run made or changed."""

    change: Literal["made", "changed"]


def folder_name(run_id: str) -> str:
    """Return the name of a run's folder, which is one name whatever the id is.

    >>> folder_name("daily.7"), folder_name("a/b"), folder_name("..")
    ('daily.7', 'a%2Fb', '%2E%2E')
    """
    name = quote(run_id, safe="-_")
    return name if name.strip(".") else name.replace(".", "%2E")


def remove_folder(root: str, run_id: str) -> None:
    """Remove the folder of a run."""
    folder = Path(root) / folder_name(run_id)
    if run_id and not folder.is_symlink():
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


class RunFolder:
    """The folder of one run, made when something is put there; an empty one of the run's own is
    removed at the end.
    """

    def __init__(self, given: str | None, run_id: str) -> None:
        """``given``: the folder that the user named; None: one of the run's own.

        Raises: ConfigError (AX700): it is not a folder.
        """
        self.is_own = given is None
        self.shown = given if given is not None else f"{RUNS}/{folder_name(run_id)}"
        self.path = Path(os.path.realpath(self.shown))
        if self.path.exists() and not self.path.is_dir():
            hint = "Give a folder, or the name of one that is to be made."
            raise misuse("--workspace", f"{self.shown} is not a folder.", hint)
        self._before: dict[str, tuple[int, ...]] = {}
        self.attachments: list[Kept] = []
        self.artifacts: list[Artifact] = []
        """Files that the run made or changed, known when it is over; hidden ones and those of
        caches are left out.
        """

    def attach(self, files: Iterable[str]) -> None:
        """Copy files into it, and record what they are.

        Raises: ConfigError (AX700): one cannot be read, or its name is taken.
        """
        taken: dict[str, str] = {}
        for file in files:
            name = Path(file).name
            if name in taken:
                message = f"{taken[name]} and {file} have the same name."
                raise misuse("--attach", message, "Rename one.")
            taken[name] = file
            self.attachments.append(self._copied(file, name))
        if self.attachments:
            self._record()

    def __enter__(self) -> RunFolder:
        """Remember the files that are there when the run begins."""
        self._before = dict(self._seen())
        age = time.time_ns() - max((changed for *_, changed in self._before.values()), default=0)
        if 0 <= age < _TICK:  # what the run changes within the tick would look as before
            time.sleep((_TICK - age) / 1e9)
        return self

    def __exit__(self, *_: object) -> None:
        """Find the files that the run made; remove the folder if it is the run's own and empty."""
        self.artifacts = list(self._changed())
        if self.is_own:
            for folder in (self.path, self.path.parent):
                with suppress(OSError):
                    folder.rmdir()

    def as_data(self) -> dict[str, Any]:
        """Return the folder for ``--format json``."""
        return {
            "workspace": str(self.path) if self.path.is_dir() else None,
            "attachments": [asdict(each) for each in self.attachments],
            "artifacts": [asdict(each) for each in self.artifacts[:_MOST]],
            "artifacts_left_out": max(0, len(self.artifacts) - _MOST),
        }

    def tell(self, session: Session) -> None:
        """Report the files that the run made, for people, on standard error."""
        if self.artifacts:
            session.tell(f"Files in {self.shown}:")
            for each in self.artifacts[:_SHOWN]:
                session.tell(f"    {each.name}  {each.size} bytes, {each.change}")
            if len(self.artifacts) > _SHOWN:
                session.tell(f"    and {len(self.artifacts) - _SHOWN} more")
        elif self.is_own and self.path.is_dir():
            session.tell(f"The run's files are in {self.shown}.")

    def _changed(self) -> Iterator[Artifact]:
        """Yield the files that were made or changed, by name."""
        for name, seen in self._seen():
            before = self._before.get(name)
            kept = None if before == seen else self._kept(name)
            if kept is not None:
                yield Artifact(**asdict(kept), change="made" if before is None else "changed")

    def _copied(self, file: str, name: str) -> Kept:
        from axil_models import written_below

        whole = f"{ATTACHMENTS}/{name}"
        try:
            if not stat.S_ISREG(os.stat(file).st_mode):
                raise misuse("--attach", f"{file} is no file.", "Attach files one by one.")
            with (
                open(file, "rb") as source,
                written_below(self.path, (ATTACHMENTS, name)) as copy,
            ):
                size, digest = _copy(source, copy)
                new = Kept(name=whole, size=size, media_type=_media_type(name), sha256=digest)
                before = self._kept(whole)
                if before is not None and before != new:
                    message = f"{self.shown} has another file called {whole}."
                    raise misuse("--attach", message, "Rename one, or use another workspace.")
        except OSError as error:
            message = f"{file} cannot be attached: {error.strerror or error}."
            raise misuse("--attach", message, like_file(file)) from error
        return new

    def _record(self) -> None:
        """Write down what was attached, beside what was attached before."""
        from axil_models import written_below

        file = self.path / RECORD / "attachments.json"
        known: dict[str, Any] = {}
        # a record that somebody spoiled is written anew
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            known = {each["name"]: each for each in json.loads(file.read_text("utf-8"))}
        known.update({each.name: asdict(each) for each in self.attachments})
        text = json.dumps(list(known.values()), indent=2) + "\n"
        try:
            with written_below(self.path, (RECORD, file.name)) as new:
                new.write(text.encode())
        except OSError as error:
            message = f"{file} cannot be written: {error.strerror or error}."
            raise misuse("--attach", message) from error

    def _seen(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield every plain file that may be an artifact, with the facts that change when it does.

        Links are not followed.
        """
        for folder, folders, files in os.walk(self.path):
            folders[:] = sorted(
                name for name in folders if not name.startswith(".") and name != "__pycache__"
            )
            for name in sorted(files):
                path = os.path.join(folder, name)
                with suppress(OSError):
                    found = os.lstat(path)
                    if stat.S_ISREG(found.st_mode) and not name.startswith("."):
                        seen = (found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns)
                        yield os.path.relpath(path, self.path).replace(os.sep, "/"), seen

    def _kept(self, name: str) -> Kept | None:
        """Return the facts about a file; None: it cannot be read."""
        from hashlib import file_digest

        try:
            with open(self.path / name, "rb", opener=_opened) as file:
                size = os.fstat(file.fileno()).st_size
                return Kept(
                    name=name,
                    size=size,
                    media_type=_media_type(name),
                    sha256=file_digest(file, "sha256").hexdigest(),
                )
        except OSError:
            return None


def _opened(path: str, flags: int) -> int:
    """Open a file without following a link or waiting for a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _copy(source: IO[bytes], target: IO[bytes]) -> tuple[int, str]:
    from hashlib import sha256

    size, digest = 0, sha256()
    while chunk := source.read(_CHUNK):
        target.write(chunk)
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def _media_type(name: str) -> str:
    import mimetypes

    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def placed(running: dict[str, Any], given: str | None) -> RunFolder:
    """Return the folder of the run that ``running`` describes (fields of ``axil.Options``), where
    its id and workspace are put.

    Raises: ConfigError (AX700): it is not a folder.
    """
    run_id = running["run_id"] = running.get("run_id") or os.urandom(8).hex()
    if given is None and running.get("workspace") is not None:
        given = str(running["workspace"])
    folder = RunFolder(given, run_id)
    running["workspace"] = folder.path
    return folder
