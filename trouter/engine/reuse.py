"""Reuse the memory of deliveries that are gone, one for each message and link.

The compiled twin takes ``reuse_memory`` from ``reuse.pxd``: a type keeps the memory of a bounded number of deleted
objects for the next ones, as Cython's `freelist` does, which works only for types without a base of their own. A tenth
of the router's time for a small message went to the allocator and the garbage collector's list. The interpreted twin
leaves memory to Python, and so does a build with ``TROUTER_REUSE=0``: a sanitizer sees the use of memory that is free
only if it was given back (`make test-asan`).
"""

from __future__ import annotations


def reuse_memory(kind: type) -> None:
    """Let the objects of a compiled type without subclasses reuse each other's memory; once, when it is defined."""
