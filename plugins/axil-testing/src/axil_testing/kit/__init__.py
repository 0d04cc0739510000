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

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axil_testing.kit.answers import AnswerKit
    from axil_testing.kit.base import Kit, claimed, require
    from axil_testing.kit.context import ContextKit
    from axil_testing.kit.edges import ConditionKit, ProcessorKit
    from axil_testing.kit.engines import EngineKit
    from axil_testing.kit.formatters import FormatterKit
    from axil_testing.kit.guards import GuardKit
    from axil_testing.kit.hooks import HookKit
    from axil_testing.kit.joins import JoinKit
    from axil_testing.kit.journals import JournalKit
    from axil_testing.kit.loaders import LoaderKit
    from axil_testing.kit.models import ModelKit
    from axil_testing.kit.nodes import NodeKit
    from axil_testing.kit.reducers import ReducerKit
    from axil_testing.kit.report import Outcome, Report, check
    from axil_testing.kit.scorers import ScorerKit
    from axil_testing.kit.stores import StoreKit

__all__ = [
    "AnswerKit",
    "ConditionKit",
    "ContextKit",
    "EngineKit",
    "FormatterKit",
    "GuardKit",
    "HookKit",
    "JoinKit",
    "JournalKit",
    "Kit",
    "LoaderKit",
    "ModelKit",
    "NodeKit",
    "Outcome",
    "ProcessorKit",
    "ReducerKit",
    "Report",
    "ScorerKit",
    "StoreKit",
    "check",
    "claimed",
    "require",
]

_FOUND_IN = {
    "AnswerKit": "answers",
    "ConditionKit": "edges",
    "ContextKit": "context",
    "EngineKit": "engines",
    "FormatterKit": "formatters",
    "GuardKit": "guards",
    "HookKit": "hooks",
    "JoinKit": "joins",
    "JournalKit": "journals",
    "Kit": "base",
    "LoaderKit": "loaders",
    "ModelKit": "models",
    "NodeKit": "nodes",
    "Outcome": "report",
    "ProcessorKit": "edges",
    "ReducerKit": "reducers",
    "Report": "report",
    "ScorerKit": "scorers",
    "StoreKit": "stores",
    "check": "report",
    "claimed": "base",
    "require": "base",
}


def __getattr__(name: str) -> Any:
    module = _FOUND_IN.get(name)
    if module is None:
        raise AttributeError(f"module 'axil_testing.kit' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"axil_testing.kit.{module}"), name)
