"""The `axil` command: a front end over the kernel and whatever plugins are installed."""
