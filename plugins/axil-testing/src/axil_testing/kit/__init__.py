"""Conformance kits: what a component of each kind promises, as tests that its author inherits.

    from axil_testing.kit import NodeKit

    class TestShout(NodeKit):
        def make(self):
            return Shout(Shout.Config(marks=2))

Or ``component = Shout`` and ``config = {"marks": 2}`` instead of ``make``. What is not true of
every component of a kind is a claim: a class attribute such as ``deterministic`` or ``durable``,
which adds tests when it is set. ``axil plugins test DIST`` runs the same tests on everything that a
distribution registers, without a line of code; ``check`` runs those of one kit and gives a
``Report``.
"""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Kits of components": {
        "answers": "AnswerKit",
        "base": "Kit claimed require",
        "context": "ContextKit",
        "edges": "ConditionKit ProcessorKit",
        "engines": "EngineKit",
        "formatters": "FormatterKit",
        "guards": "GuardKit",
        "hooks": "HookKit",
        "importers": "ImporterKit",
        "joins": "JoinKit",
        "journals": "JournalKit",
        "loaders": "LoaderKit",
        "models": "ModelKit",
        "nodes": "NodeKit",
        "reducers": "ReducerKit",
        "scorers": "ScorerKit",
        "stores": "StoreKit",
        "talks": "TalkKit",
    },
    "Reports": {
        "report": "Outcome Report check laws",
        "whole": "KITS kit_of kits_for",
    },
    "Tools of kits": {
        "confined": "confinement_faults",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)
