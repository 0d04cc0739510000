"""Random programs of other systems: as axil runs them, and as they do."""
