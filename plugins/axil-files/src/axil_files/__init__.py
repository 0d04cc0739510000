"""Workflow files: their format, a reader that tells every problem at once, and a writer."""
