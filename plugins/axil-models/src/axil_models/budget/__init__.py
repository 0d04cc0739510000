"""Budgets: what a run uses and has reserved, in tokens and money, and what models cost."""
