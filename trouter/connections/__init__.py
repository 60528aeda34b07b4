"""Connections from their first octet to their last, accepted or dialled, with their listeners and connectors."""
