"""Embedders and rerankers of services, by plain HTTP."""
