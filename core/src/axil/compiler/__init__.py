"""From a spec to a plan: components resolved, callables adapted to bodies, edges compiled, cycles
folded.
"""
