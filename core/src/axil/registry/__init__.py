"""The registry of components: those installed, their names and settings, and the policy on which
may be used.
"""
