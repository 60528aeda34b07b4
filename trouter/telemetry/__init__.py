"""Records: the recorder, what is recorded of connections, links, changes and latencies, and where records go."""
