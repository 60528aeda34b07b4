"""Where the entities of each type come from: keys to list them by, rows for the keys, and lookups."""
