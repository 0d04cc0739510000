"""Retrieval: keyword, vector and hybrid search over texts, files and folders.

The parts of a retriever of documents are here too: sources, how they are read, and how they are cut
into chunks.
"""
