"""Networks of router processes and real clients."""
