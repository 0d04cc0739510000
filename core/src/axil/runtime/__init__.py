"""The driver of runs on an event loop: starts bodies, feeds outcomes back, pauses, cancels, answers
what bodies ask for.
"""
