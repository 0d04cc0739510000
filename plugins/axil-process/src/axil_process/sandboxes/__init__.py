"""Sandboxes for programs: ``Bubblewrap``, ``Docker``, ``Podman``; and for bodies of nodes: the
executor ``SandboxExecutor`` and the wrapper ``SandboxWrapper``.
"""
