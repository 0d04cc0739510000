"""The contract with plugin authors: contexts of bodies, views of states, messages, hooks,
observers.
"""
