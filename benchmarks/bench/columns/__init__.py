"""One file for each column of the table; see docs/how-to/compare-performance.md."""
