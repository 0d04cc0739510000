"""The start of a worker, by the path of this file: with the standard library alone, until it knows
its import path.
"""

from __future__ import annotations

import json
import os
import struct
import sys


def main() -> None:
    """Keep the pipes from the body, take paths and limits, and become a ``Worker``."""
    asked, report = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what a body prints is no message
    os.close(nothing)
    source = os.fdopen(asked, "rb")
    (length,) = struct.unpack(">I", source.read(4))
    hello = json.loads(source.read(length))
    sys.path[:] = hello["path"]
    if hello["memory_bytes"] is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (hello["memory_bytes"], hello["memory_bytes"]))
    from axil_process.worker import Worker

    worker = Worker(source, report, hello["grace_seconds"])
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=worker.forked)
    worker.serve()


if __name__ == "__main__":
    main()
