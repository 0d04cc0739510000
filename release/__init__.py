"""Tools of the release workflow."""
