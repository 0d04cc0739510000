"""Plugins as a product: what is installed, what a workflow needs, what is wrong, manifests, locks,
and a plugin of your own.
"""
