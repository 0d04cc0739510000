"""A writer that stores the files of a run before the entries that come after they were written.

What is appended waits until the files are stored that the folder of the run has by then. So the
record of a run never knows of a firing whose files are not in the object storage, and a worker that
takes the run over elsewhere has them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace

from axil_journals.journal import Entry, JournalWriter
from axil_journals.objects import FILES, RunFolderObjects


class FilingWriter:
    """The ``JournalWriter`` of a run with files."""

    def __init__(self, writer: JournalWriter, files: RunFolderObjects) -> None:
        self._writer, self._files = writer, files
        self._waiting: list[Entry] = []
        self._storing: asyncio.Task[None] | None = None
        self._fault: BaseException | None = None
        self._is_closing = False

    @property
    def entries(self) -> Sequence[Entry]:
        return self._writer.entries

    def append(self, entry: Entry) -> None:
        if self._fault is not None:
            raise self._fault
        if self._storing is None and not self._has_files():
            self._writer.append(entry)
            return
        self._waiting.append(entry)
        if self._storing is None:
            self._storing = asyncio.ensure_future(self._store())

    def _has_files(self) -> bool:
        return bool(self._files.list) or self._files.folder.exists()

    async def _store(self) -> None:
        try:
            while self._waiting:
                now, self._waiting = self._waiting, []
                found = await asyncio.to_thread(self._files.store)
                for entry in now:
                    named = replace(entry, data={**entry.data, FILES: found}) if found else entry
                    self._writer.append(named)
        except BaseException as error:
            self._fault = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._storing = None
            if self._is_closing:
                self._writer.close()

    def kept(self) -> Awaitable[None] | None:
        if self._fault is not None:
            raise self._fault
        return self._writer.kept() if self._storing is None else self._all_kept(self._storing)

    async def _all_kept(self, storing: asyncio.Task[None]) -> None:
        await asyncio.wait({storing})
        if self._fault is not None:
            raise self._fault
        if (stored := self._writer.kept()) is not None:
            await stored

    async def settle(self) -> None:
        """Wait until nothing is being stored."""
        if self._storing is not None:
            await asyncio.wait({self._storing})

    def close(self) -> None:
        self._is_closing = True
        if self._storing is None:
            self._writer.close()
