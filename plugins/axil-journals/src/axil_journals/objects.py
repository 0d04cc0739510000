"""Files of runs in an object storage: a folder, S3, Google Cloud Storage, Azure.

An object is named by the digest of its content, below the name of its run: ``runs/RUN/DIGEST``. So
nothing is ever overwritten, and what a run stored goes when the run is forgotten. The list of the
files of a run is an object, too, and the record of the run names it: a process that lost the run
changes nothing by what it still stores.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote, unquote

from axil import ConfigError, Problem
from axil.plugin import JournalError
from axil_journals.journal import Cipher, Entry, SharedJournal

_DIGITS: Final = 40
_PARTS: Final = 256
"""Objects that are deleted by one request."""
FILES: Final = "files"
"""The key of an entry that names the list of the files at its time."""


class ObjectStore(Protocol):
    """Objects by name; all methods may be called in any thread."""

    def put(self, name: str, data: bytes) -> None:
        """Store an object; one of this name has this content already."""
        ...

    def get(self, name: str) -> bytes:
        """Return an object. Raises: FileNotFoundError."""
        ...

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the names of the objects below ``prefix``, which ends with ``/``."""
        ...

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names right below ``prefix`` that have objects below them."""
        ...

    def delete(self, names: Collection[str]) -> None:
        """Delete objects; those that are not there are passed over."""
        ...


class Bucket:
    """The objects at an address: ``file:///folder``, ``s3://bucket/path``, ``gs://…``, ``az://…``.

    Credentials and endpoints are those of the environment (``AWS_ACCESS_KEY_ID``,
    ``AWS_ENDPOINT_URL``, ``GOOGLE_APPLICATION_CREDENTIALS``, ``AZURE_STORAGE_ACCOUNT_NAME`` …).
    Needs the extra ``objects``.
    """

    def __init__(self, url: str) -> None:
        """Raises: ConfigError (AX998): the address is of no storage, or obstore is missing."""
        self.url = url
        try:
            import obstore
            from obstore.store import LocalStore, from_url
        except ImportError:
            hint = 'pip install "axil-journals[objects]"'
            problem = Problem("AX998", "objects", "obstore is not installed.", hint)
            raise ConfigError(problem) from None
        self._obstore: Any = obstore
        try:
            if url.startswith("file://"):
                folder = Path(unquote(url[7:]))
                folder.mkdir(0o700, parents=True, exist_ok=True)
                self._store: Any = LocalStore(folder, automatic_cleanup=True)
            else:
                self._store = from_url(url)
        except Exception as error:  # noqa: BLE001  # of many classes
            message = f"the objects cannot be kept there: {error}."
            hint = "Name a folder, file:///…, or a bucket: s3://…, gs://…, az://…"
            raise ConfigError(Problem("AX998", "objects", message, hint)) from None

    def put(self, name: str, data: bytes) -> None:
        self._obstore.put(self._store, name, data)

    def get(self, name: str) -> bytes:
        return bytes(self._obstore.get(self._store, name).bytes())

    def names(self, prefix: str) -> Iterator[str]:
        for page in self._obstore.list(self._store, prefix=prefix.rstrip("/")):
            for each in page:
                yield str(each["path"])

    def folders(self, prefix: str) -> Sequence[str]:
        found = self._obstore.list_with_delimiter(self._store, prefix=prefix.rstrip("/"))
        return [str(each).rpartition("/")[2] for each in found["common_prefixes"]]

    def delete(self, names: Collection[str]) -> None:
        some = list(names)
        for at in range(0, len(some), _PARTS):
            with suppress(FileNotFoundError):
                self._obstore.delete(self._store, some[at : at + _PARTS])

    def __repr__(self) -> str:
        return f"Bucket({self.url.partition('?')[0]!r})"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it was when it was stored."""

    mark: tuple[int, int, int]
    digest: str


class RunObjects:
    """The files of runs."""

    def __init__(self, store: ObjectStore, *, cipher: Cipher | None = None) -> None:
        """``cipher``: encrypts contents and names of files; digests depend on its key then."""
        self.store, self.cipher = store, cipher

    def files(self, run_id: str, folder: Path) -> RunFolderObjects:
        """Return the files of one run, whose folder is on this machine."""
        return RunFolderObjects(self, run_id, folder)

    def put(self, run_id: str, data: bytes, known: set[str]) -> str:
        """Store what is not in ``known``; return its digest."""
        digest = self.digest(data)
        if digest not in known:
            name = _name(run_id, digest)
            self.store.put(name, data if self.cipher is None else self._sealed(name, data))
            known.add(digest)
        return digest

    def get(self, run_id: str, digest: str) -> bytes:
        """Return what was stored. Raises: JournalError (AX511): it is gone, or not what it was."""
        name = _name(run_id, digest)
        try:
            data = self.store.get(name)
        except FileNotFoundError:
            raise _damaged(run_id, digest, "it is not there") from None
        if self.cipher is not None:
            data = self.cipher.open(data, name.encode())
        if self.digest(data) != digest:
            raise _damaged(run_id, digest, "it is not what was stored")
        return data

    def forget(self, run_ids: Iterable[str]) -> None:
        """Delete what runs stored."""
        for run_id in run_ids:
            self.store.delete(list(self.store.names(f"runs/{_quoted(run_id)}/")))

    def runs(self) -> Sequence[str]:
        """Return the runs that have stored something."""
        return [unquote(each) for each in self.store.folders("runs/")]

    def sweep(self, journal: SharedJournal, suspected: Collection[str]) -> Collection[str]:
        """Delete what runs stored that the journal did not know at the last call, either.

        Args:
            suspected: what the last call returned: a run stores files before it is known.
        Returns: the runs that it does not know.
        """
        stored, unknown = list(self.runs()), set[str]()
        for at in range(0, len(stored), _PARTS):
            some = stored[at : at + _PARTS]
            unknown |= {*some} - {info.run_id for info in journal.infos(some)}
        gone = unknown.intersection(suspected)
        self.forget(gone)
        return unknown - gone

    def digest(self, data: bytes) -> str:
        """Return the digest of a content."""
        if self.cipher is not None:
            return self.cipher.digest(data).hex()[:_DIGITS]
        return hashlib.sha256(data).hexdigest()[:_DIGITS]

    def _sealed(self, name: str, data: bytes) -> bytes:
        assert self.cipher is not None
        return self.cipher.seal(data, name.encode())


class RunFolderObjects:
    """The files of a run on this machine; its methods wait for a network."""

    def __init__(self, objects: RunObjects, run_id: str, folder: Path) -> None:
        self._objects, self._run_id, self.folder = objects, run_id, folder
        self._seen: dict[str, _Seen] = {}
        self._known: set[str] = set()
        self.list = ""
        """The name of the last list; empty: no file was stored yet."""

    def store(self) -> str:
        """Store what has changed in the folder, and return the name of the list of its files."""
        files: dict[str, tuple[str, int]] = {}
        seen: dict[str, _Seen] = {}
        for path, stat in _files(self.folder):
            name = path.relative_to(self.folder).as_posix()
            mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            known = self._seen.get(name)
            if known is None or known.mark != mark:
                try:
                    data = path.read_bytes()
                except FileNotFoundError:  # a body has just removed it
                    continue
                known = _Seen(mark, self._objects.put(self._run_id, data, self._known))
            seen[name] = known
            files[name] = (known.digest, stat.st_mode & 0o700)
        self._seen = seen
        if files or self.list:
            text = json.dumps(files, sort_keys=True).encode()
            digest = self._objects.put(self._run_id, text, self._known)
            self.list = f"{_quoted(self._run_id)}/{digest}"
        return self.list

    def restore(self, list: str) -> None:
        """Make the folder what it was when the list was stored.

        Raises: JournalError (AX511): something is gone.
        """
        of, _, named = list.partition("/")
        of = unquote(of)  # a fork begins with the files of another run
        files = json.loads(self._objects.get(of, named))
        here = {path.relative_to(self.folder).as_posix(): path for path, _ in _files(self.folder)}
        for name, path in here.items():
            if name not in files:  # of a body that was at work: it begins again
                path.unlink(missing_ok=True)
        root = self.folder.resolve()
        for name, (digest, mode) in files.items():
            path = self.folder / name
            if not path.parent.resolve().is_relative_to(root) or path.is_symlink():
                raise _damaged(self._run_id, digest, "its file would be outside of the folder")
            if name in here and self._objects.digest(path.read_bytes()) == digest:
                continue
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            path.write_bytes(self._objects.get(of, digest))
            path.chmod(mode | 0o600)
        self.list = list
        if of != self._run_id:  # they are stored as this run's, too
            return
        for name, (digest, _) in files.items():
            stat = (self.folder / name).stat()
            self._seen[name] = _Seen((stat.st_mtime_ns, stat.st_size, stat.st_ino), digest)
            self._known.add(digest)
        self._known.add(named)


def list_of(entries: Iterable[Entry]) -> str:
    """Return the name of the list of files that a record names last; empty: none."""
    found = ""
    for entry in entries:
        found = str(entry.data.get(FILES) or found)
    return found


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files below a folder; links are not followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda each: each.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            with suppress(FileNotFoundError):  # a body has just removed it
                yield Path(entry.path), entry.stat(follow_symlinks=False)


def _quoted(run_id: str) -> str:
    return quote(run_id, safe="-_").replace(".", "%2E")


def _name(run_id: str, digest: str) -> str:
    return f"runs/{_quoted(run_id)}/{digest}"


def _damaged(run_id: str, digest: str, how: str) -> JournalError:
    message = f'the object {digest} of the run "{run_id}" cannot be had: {how}.'
    hint = "Restore it from a backup of the object storage, or fork the run from a point before it."
    return JournalError(message, id="AX511", hint=hint)
