"""The Python builder, and the workflow that is made of a spec."""
