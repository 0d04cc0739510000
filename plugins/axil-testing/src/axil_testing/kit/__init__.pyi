"""Names of ``axil_testing.kit`` for type checkers; written by ``make manifests``."""

from axil_testing.kit.answers import AnswerKit as AnswerKit
from axil_testing.kit.base import Kit as Kit, claimed as claimed, require as require
from axil_testing.kit.confined import confinement_faults as confinement_faults
from axil_testing.kit.context import ContextKit as ContextKit
from axil_testing.kit.edges import ConditionKit as ConditionKit, ProcessorKit as ProcessorKit
from axil_testing.kit.engines import EngineKit as EngineKit
from axil_testing.kit.formatters import FormatterKit as FormatterKit
from axil_testing.kit.guards import GuardKit as GuardKit
from axil_testing.kit.hooks import HookKit as HookKit
from axil_testing.kit.importers import ImporterKit as ImporterKit
from axil_testing.kit.joins import JoinKit as JoinKit
from axil_testing.kit.journals import JournalKit as JournalKit
from axil_testing.kit.loaders import LoaderKit as LoaderKit
from axil_testing.kit.models import ModelKit as ModelKit
from axil_testing.kit.nodes import NodeKit as NodeKit
from axil_testing.kit.reducers import ReducerKit as ReducerKit
from axil_testing.kit.report import (
    Outcome as Outcome,
    Report as Report,
    check as check,
    laws as laws,
)
from axil_testing.kit.scorers import ScorerKit as ScorerKit
from axil_testing.kit.stores import StoreKit as StoreKit
from axil_testing.kit.talks import TalkKit as TalkKit
from axil_testing.kit.whole import KITS as KITS, kit_of as kit_of, kits_for as kits_for
