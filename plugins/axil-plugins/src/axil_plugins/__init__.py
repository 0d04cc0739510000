"""Plugins as a product: what is installed, manifests, locks, slim distributions, a plugin of your own."""
