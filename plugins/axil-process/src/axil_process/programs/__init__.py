"""Programs in process groups of their own: ``Child`` for a conversation, ``run_program`` for one
result.
"""
