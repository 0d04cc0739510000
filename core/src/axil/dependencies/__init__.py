"""The needs of workflows: components, their distributions, and the versions to which a run is
pinned.
"""
