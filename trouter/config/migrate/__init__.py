"""Old configuration files to the files of today: what `trouter migrate` changes in a text, and why."""

from trouter.config.migrate.changes import Edit, Migrated, migrated

__all__ = ["Edit", "Migrated", "migrated"]
