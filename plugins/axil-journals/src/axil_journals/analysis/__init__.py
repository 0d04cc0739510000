"""Proofs about a plan before anything runs: what never happens, what is missing, what it costs."""
