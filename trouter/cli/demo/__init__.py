"""`trouter run --demo`: a small network with traffic on this machine, to look at in the web console."""

from .running import run

__all__ = ["run"]
