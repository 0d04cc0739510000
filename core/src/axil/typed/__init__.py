"""Typed state: schemas from models, what their fields accept, and how fields take writes."""
