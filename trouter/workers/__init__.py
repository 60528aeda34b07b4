"""A router of several processes: the parent that starts and joins them, and what each of them asks it for."""
