"""One workflow, run once for each row of a table."""
