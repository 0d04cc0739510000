"""Graphs as data, before anything in them is resolved: what files say and builders build, the rules
of their structure, and their digests.
"""
