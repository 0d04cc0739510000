"""``make bench``: axil beside others, in fresh processes; see docs/how-to/compare-performance.md.

python benchmarks/run.py [--bench "chain loop"] [--peers "langgraph burr"] [--quick] [--write
yes|no] …
"""

from __future__ import annotations

if __name__ == "__main__":
    from bench.page import main

    main()
