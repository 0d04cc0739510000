"""From a spec to a plan."""
