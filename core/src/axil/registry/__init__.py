"""Which components are installed, under which names, with which settings, and which of them may be
used.
"""
