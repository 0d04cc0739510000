"""EvoFabric's names, on axil: ``import evofabric`` keeps working."""
