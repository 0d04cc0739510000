"""Budgets: what a run uses and has reserved, in tokens and money, and what models cost."""

from axil_budget.ledger import Budget, Ledger, OverBudget, Reservation, Usage
from axil_budget.meter import BudgetMeter
from axil_budget.prices import Estimate, Estimator, Price, Pricing, UnknownPrice

__all__ = [
    "Budget",
    "BudgetMeter",
    "Estimate",
    "Estimator",
    "Ledger",
    "OverBudget",
    "Price",
    "Pricing",
    "Reservation",
    "UnknownPrice",
    "Usage",
]
