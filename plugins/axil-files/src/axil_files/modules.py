"""A Python file as a module, with an error that names the line that failed."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from axil import ConfigError, Problem


def module_from(file: Path, name: str, shown: str, *, id: str) -> ModuleType:
    """Execute a Python file as the module ``name`` and return it.

    Args:
        shown: what messages call the file.
        id: of the error where it fails.
    Raises: ConfigError, whatever the file raises, ``SystemExit`` included.
    """
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(Problem(id, shown, "it cannot be loaded.", "Give Python files."))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        sys.modules.pop(name, None)
        raise failed_to_load(error, str(file), shown, id=id) from error
    return module


def failed_to_load(error: BaseException, file: str, shown: str, *, id: str) -> ConfigError:
    """Return what is said of a file that failed while it was executed."""
    line = error.lineno if isinstance(error, SyntaxError) else _line_of(error, file)
    cause = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    place = shown.rpartition(":")[0] if line and shown.rpartition(":")[0].endswith(".py") else shown
    where = f"{place}:{line}" if line else place
    hint = "Correct it."
    if isinstance(error, ModuleNotFoundError) and error.name:
        if error.name == shown.partition(":")[0]:
            message = "no module of that name can be imported here."
            hint = "Check the name, or name a file: path/to/file.py:graph."
            return ConfigError(Problem(id, where, message, hint))
        hint = f"Correct the import, or install what has {error.name.partition('.')[0]}."
    return ConfigError(Problem(id, where, f"the file failed to load ({cause}).", hint))


def _line_of(error: BaseException, file: str) -> int | None:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return lines[-1] if lines else None


__all__ = ["failed_to_load", "module_from"]
