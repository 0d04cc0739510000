"""Inspection of recorded runs: steps, moments, differences, forks, breakpoints."""

from axil_inspection.breakpoints import Breakpoints
from axil_inspection.forks import Edit, fork
from axil_inspection.moments import DueFiring, Moment, moment
from axil_inspection.steps import Difference, RunStep, differences, steps

__all__ = [
    "Breakpoints",
    "Difference",
    "DueFiring",
    "Edit",
    "Moment",
    "RunStep",
    "differences",
    "fork",
    "moment",
    "steps",
]
