"""People as nodes."""
