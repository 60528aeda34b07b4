"""The cost of the router beside the cost of copying the same bytes: `python -m bench`; see docs/benchmarks.md."""
