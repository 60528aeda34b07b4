"""Connections from their first byte to their last, accepted or dialled, with their listeners and connectors."""
