"""Pictures of graphs: as text, mermaid and SVG, and live in a notebook."""
