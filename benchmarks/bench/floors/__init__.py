"""Floors: how low one can get where a target is not reached.

Each module is one small experiment by hand, without axil, and one table.

python benchmarks/floors.py [NAME ...] [--quick]
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from .measure import sentence

FLOORS = tuple(
    sorted(
        file.stem
        for file in Path(__file__).parent.glob("[a-z]*.py")
        if file.stem not in ("hands", "measure")
    )
)


def floor(name: str, *, quick: bool = False) -> str:
    """Return the table of one experiment, under its sentence; ``quick``: whether it works, not how
    low one gets.
    """
    module = importlib.import_module(f".{name}", __package__)
    return f"{sentence(module)}\n\n{module.table(module.QUICK if quick else module.SIZES)}"


def main() -> None:
    """Print what was asked for, or everything."""
    parser = argparse.ArgumentParser(prog="floors", description="How low one can get by hand.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(FLOORS)}; all of them if none is given",
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes: whether it works")
    said = parser.parse_args()
    if strangers := sorted(set(said.names) - set(FLOORS)):
        parser.error(f"there is no floor {strangers[0]}; there are {', '.join(FLOORS)}")
    for name in said.names or FLOORS:
        sys.stdout.write(f"{name}: {floor(name, quick=said.quick)}\n\n")
        sys.stdout.flush()
