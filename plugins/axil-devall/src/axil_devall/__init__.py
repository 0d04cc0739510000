"""Workflow files of ChatDev 2.0 (DevAll): what is peculiar to them.

Everything else in them is axil's own format.
"""
