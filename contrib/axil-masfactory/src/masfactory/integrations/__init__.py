"""Systems whose client is given as a function."""
