"""Spools for readers on other machines, over Arrow Flight: a server beside the spools, and readers as of a folder.

``protocol`` has what both sides say. `docs/spool.md` is the manual.
"""
