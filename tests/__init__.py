"""Tests of the project as a whole: of members together, of pages, of the layout, of failures and of
speed.
"""
