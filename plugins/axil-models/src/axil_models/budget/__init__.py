"""Budgets: what a run uses and has reserved, in tokens and money, and what models cost.

The names are those of ``axil.plugin``; nothing is imported here, so that a run that spends nothing
loads nothing of it but its meter.
"""
