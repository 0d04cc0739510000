"""Drafts of workflow files: from a sentence, or from a text."""
