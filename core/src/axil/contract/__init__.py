"""The contract with plugin authors: contexts, views, messages, hooks, observers."""
