"""The providers of the entities of each type: keys, rows for the keys, and lookups."""
