"""Inspection of graphs and of recorded runs: pictures, checks, steps, moments, differences, forks,
breakpoints.

Each name is imported from its module at its first use: a picture needs no journal.
"""
