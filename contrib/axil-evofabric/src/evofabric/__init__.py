"""EvoFabric's names, on axil: ``import evofabric`` keeps working."""

__version__ = "0.1.4"
"""The version of EvoFabric whose names these are."""
