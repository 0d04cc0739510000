"""The driver of runs on an event loop."""
