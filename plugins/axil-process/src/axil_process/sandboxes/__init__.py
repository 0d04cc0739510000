"""Sandboxes for programs, and for bodies of nodes."""
