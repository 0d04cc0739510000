"""Managed runs: runs of engines."""

from __future__ import annotations

from collections.abc import Sequence

from axil import Question, Run
from axil.plugin import JournalError


class ManagedRun(Run):
    """A run of an engine: it can be stored before it begins, and answered while it runs.

    ``workflow.begun(ManagedRun, input, attributes, options)`` makes one; it needs a journal. An
    engine may subclass it.

    The clock of a managed run may have a method ``rest(seconds, timer)``, which takes the place of
    ``sleep`` for a sleep of a body that the journal knows. It may raise ``Pause(timer)``: then the
    run ends as paused, and asks ``timer``, a question of the kind ``timer`` whose ``data["due"]``
    is the end of the sleep, in seconds since 1970. A resumed run sleeps for what is left.
    """

    async def submit(self) -> bool:
        """Store the run in its journal, and release it there. Raises: JournalError.

        Returns: False: the journal knows it, and it ended or paused.
        """
        recorder, services = self.recorder, self.services
        assert recorder is not None
        stored = None
        try:
            if recorder.known is None:
                services.progress.started = services.clock.now()
                recorder.begin({})
                stored = recorder.kept()
        finally:
            recorder.close()  # before it is stored, so that one transaction stores and releases it
        if stored is not None:
            await stored
        return not recorder.has_ended

    async def take(self, answers: Sequence[object]) -> bool:
        """Add answers while the run is loaded, and wait until they are stored.

        Args:
            answers: for a journal, entries of the kind ``answer``.
        Returns: False: the run has ended, or its journal refuses entries; nothing was added.
        """
        services = self.services
        if services.is_closed or self.recorder is None:
            return False
        try:
            services.answers.update(self.recorder.take(answers))
        except JournalError:
            return False
        await services.kept()
        return True

    def is_answered(self, questions: Sequence[Question]) -> bool:
        """Return whether any of the questions was answered since they were asked."""
        return any(question.id in self.services.answers for question in questions)
