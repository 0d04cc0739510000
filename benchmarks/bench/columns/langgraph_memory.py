"""LangGraph with its InMemorySaver: a checkpoint after every superstep, kept in memory."""

from __future__ import annotations

from .langgraph import IMPORT, PACKAGE, REQUIRES, Abilities  # noqa: F401

TITLE = "LangGraph, InMemorySaver"
KIND = "peer"


def saver():
    from langgraph.checkpoint.memory import InMemorySaver

    return InMemorySaver()


COLUMN = Abilities(saver)
