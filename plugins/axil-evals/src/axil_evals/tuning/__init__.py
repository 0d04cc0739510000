"""Tuning of workflow files by evaluations. See ``tune``."""
