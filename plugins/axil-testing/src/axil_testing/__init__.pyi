"""Names of ``axil_testing`` for type checkers; written by ``make manifests``."""

from axil_testing.clock import JumpingClock as JumpingClock, VirtualClock as VirtualClock
from axil_testing.golden import Golden as Golden
from axil_testing.recorder import Recorded as Recorded, Recorder as Recorder
from axil_testing.scripted import ScriptedModel as ScriptedModel
