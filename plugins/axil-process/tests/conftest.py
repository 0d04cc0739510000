"""The components of this distribution and of its neighbours, as they are installed."""
