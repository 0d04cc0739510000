"""Memory for agents: a file or a store (what was said), a blackboard (what a run shares), facts
(what is known), skills (how things are done).
"""
