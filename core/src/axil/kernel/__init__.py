"""The deciding part: what fires next, with which tokens, from which state, and what follows from an
outcome.

It is sans-IO: no clock, no event loop, no threads, no files, no logging. It imports the pure parts
of the standard library and ``axil.errors``, nothing else of axil, so it can be read, tested and
driven alone.

Theory of operation
-------------------
Read in this order.

``values`` and ``state``: values are immutable by contract; a state remembers the writes since its
frame began, so that paths that meet can be joined: the union of their writes, each once.

``tokens`` and ``outcomes``: what edges carry, what fires, what a firing comes to. A token carries
its state, so a node sees exactly what is upstream of it, whatever was fast.

``plan``: a graph as the kernel sees it, its cycles folded into nodes: integers, tuples and
functions. The compiler makes it (``axil.compiler.folding``).

``joins``: when a node fires. Three are the kernel's own, further ones are plugins.

``machine``, with ``barriers``: one scope, run once. Tokens wait in slots, counts come to zero,
firings are due; nothing is scanned.

``scopes``: what runs inside a node. A cycle is a machine for each round, a graph is a machine.

``events`` and ``scheduler``: one run. Events in, commands out; both lists are closed. A driver does
the rest.

``shortcuts``: ways with fewer steps to the same results. It can be deleted.
"""
