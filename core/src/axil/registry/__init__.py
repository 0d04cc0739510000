"""The registry of installed components, by name."""
