"""Managed runs: what an engine does with a run beyond starting, cancelling and awaiting it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axil.contract.context import Question
from axil.errors import JournalError
from axil.runtime.run import Run


class ManagedRun(Run):
    """A run of an engine: it can be stored before it begins, and answered while it runs.

    ``workflow.begun(ManagedRun, input, attributes, options)`` makes one; it needs a journal. An
    engine may subclass it. Of a run an engine may use ``id``, ``plan``, ``options``, ``cancel``,
    ``result`` and the members below; attributes with an underscore may change in any version.

    The clock of a managed run may have a method ``rest(seconds, timer)``, which takes the place of
    ``sleep`` for a sleep of a body that the journal knows. It may raise ``Pause(timer)``: then the
    run ends as paused, and asks ``timer``, a question of the kind ``timer`` whose ``data["due"]``
    is the end of the sleep, in seconds since 1970. A resumed run sleeps for what is left.
    """

    async def submit(self) -> bool:
        """Store the run in its journal, and release it there.

        Returns: whether it can be resumed; False: the journal knows it, and it ended or paused.
        Raises: JournalError: the journal did not store it.
        """
        recorder, services = self._recorder, self._shell.services
        assert recorder is not None
        try:
            if recorder.known is None:
                services.progress.started = services.clock.now()
                recorder.begin({})
                await services.kept()
        finally:
            recorder.close()
        return not recorder.has_ended

    async def take(self, answers: Sequence[Any]) -> bool:
        """Add answers while the run is loaded, and wait until they are stored.

        Args:
            answers: as the recorder has them: to a journal, entries of the kind ``answer``.
        Returns: False: the run has ended, or its journal refuses entries; nothing was added.
        """
        services = self._shell.services
        if services.is_closed or self._recorder is None:
            return False
        try:
            services.answers.update(self._recorder.take(answers))
        except JournalError:
            return False
        await services.kept()
        return True

    @property
    def has_begun(self) -> bool:
        """Whether ``result`` was called."""
        return self._begun

    def is_answered(self, questions: Sequence[Question]) -> bool:
        """Return whether any of the questions was answered since they were asked."""
        return any(question.id in self._shell.services.answers for question in questions)

    @property
    def at_work(self) -> int:
        """The number of bodies that run or wait for room, without those that wait for subgraphs."""
        return self._shell.pool.at_work


__all__ = ["ManagedRun"]
