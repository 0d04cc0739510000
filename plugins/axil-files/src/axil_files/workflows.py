"""Workflows in files, ready to run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Unpack, cast

from axil import Workflow
from axil.plugin import CompileOptions, Grants, Registry, default_registry
from axil_files.loading import load_spec

if TYPE_CHECKING:
    from axil_files.options import ReadingOptions


def load(
    path: str | os.PathLike[str],
    *,
    registry: Registry | None = None,
    hooks: Any = None,
    functions: str | os.PathLike[str] | None = None,
    **options: Unpack[ReadingOptions],
) -> Workflow[Any]:
    """Return the workflow in a file, ready to run and not yet compiled:
    ``axil_files.load("flow.yaml").invoke("topic")``.

    Args:
        functions: a folder whose Python files hold tools, conditions and processors of one's own;
            they are executed.
        options: those of ``axil_files.load_spec``, which raises SpecError.
    Raises: ConfigError: AX700, AX884 the functions cannot be had.
    """
    if functions is not None:
        from axil_files.functions import with_functions

        registry = with_functions(registry or default_registry(), functions)
    spec = load_spec(path, registry=registry, **options)
    for problem in spec.extras.get("warnings", ()):
        if problem.id == "AX178":  # a key that stands in the file, of which it is told at once
            (registry or default_registry()).warn(problem)
    given_options = cast("dict[str, Any]", options)
    shared = {n: given_options[n] for n in ("environment", "allow_code") if n in options}
    allow = frozenset(options.get("allow", ()))
    given = Grants.of(allow | {"code"} if shared.get("allow_code") else allow)
    if given.allows("code"):
        shared["allow_code"] = True
    folder = os.path.dirname(os.path.realpath(path))
    shared["grants"] = given.at(folder)
    return Workflow(spec, CompileOptions(registry=registry, hooks=hooks, folder=folder, **shared))
