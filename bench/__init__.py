"""What the router costs, against what copying the same octets costs: `python -m bench`; see docs/benchmarks.md."""
