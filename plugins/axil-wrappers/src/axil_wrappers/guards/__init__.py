"""Guards: what goes into a node, what comes out of it, and which tools it calls. See
``Guarded``.
"""
