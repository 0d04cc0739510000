"""n8n's exports."""
