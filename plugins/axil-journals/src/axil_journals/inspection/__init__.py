"""Inspection of recorded runs and of graphs: checks, steps, snapshots, forks, breakpoints."""
