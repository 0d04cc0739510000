"""``bubblewrap``: a sandbox for programs; see ``Bubblewrap``."""

from axil_sandbox.bubblewrap import Bubblewrap

__all__ = ["Bubblewrap"]
