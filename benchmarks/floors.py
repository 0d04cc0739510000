"""Lower bounds, written by hand, where a target is not reached; see
docs/explanation/performance/notes.md.

python benchmarks/floors.py [NAME ...] [--quick]
"""

from __future__ import annotations

if __name__ == "__main__":
    from bench.floors import main

    main()
