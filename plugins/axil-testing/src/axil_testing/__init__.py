"""What a plugin author proves a plugin with: conformance kits, fixtures, a virtual clock."""
