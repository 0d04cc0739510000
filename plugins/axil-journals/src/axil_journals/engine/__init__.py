"""A run engine: starts, unloads, resumes and recovers many runs; see ``LocalEngine``."""
