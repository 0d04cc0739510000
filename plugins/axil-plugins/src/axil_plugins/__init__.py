"""Plugins as a product: what is installed, manifests, locks, slim distributions, and plugins of
one's own.
"""
