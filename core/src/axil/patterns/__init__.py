"""Regular expressions and JSON Schemas within bounds of size and time."""
