"""Slim distributions: from workflow files to exactly the distributions that they need, locked,
assembled and proved.
"""
