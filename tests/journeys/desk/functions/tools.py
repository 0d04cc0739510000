"""Tools of the desk."""

from datetime import date


def count_days(start: str, end: str) -> int:
    """Count the days from one date to another."""
    return (date.fromisoformat(end) - date.fromisoformat(start)).days
