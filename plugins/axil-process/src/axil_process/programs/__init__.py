"""Programs in process groups of their own: ``Child`` for a conversation, ``run`` for one result."""
