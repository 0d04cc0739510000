"""Models, memories, retrievers, tools."""
