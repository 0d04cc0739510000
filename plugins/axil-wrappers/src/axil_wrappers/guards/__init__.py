"""Guards of a node's input, output and tool calls; see ``Guarded``."""
