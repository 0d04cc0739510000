"""Formatters: fields as text for a model, and a model's text as fields."""
