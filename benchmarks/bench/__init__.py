"""axil measured beside others; see docs/how-to/compare-performance.md, and ``page`` for the
command.
"""
