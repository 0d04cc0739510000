"""Stories of people who use axil, with the parts that they have."""
