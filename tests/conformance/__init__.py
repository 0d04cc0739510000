"""axil beside what it grew out of: recorded runs of three systems, and the sentences of its own
semantics.
"""
