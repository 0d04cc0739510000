"""Stores of texts that are found by what they mean."""

from evofabric.core.vectorstore.base import DBBase, VectorDB
from evofabric.core.vectorstore.chroma import ChromaDB

__all__ = ["ChromaDB", "DBBase", "VectorDB"]
