"""Configuration: text to frozen entities, with every error, its file, line and key, in one run."""

from trouter.config.entities import AddressEntity, ListenerEntity, LogEntity, RouterEntity
from trouter.config.load import DEFAULT_TEXT, Configuration, load
from trouter.config.problems import ConfigurationError, Place, Problem
from trouter.config.texts import FailoverUrl

__all__ = [
    "DEFAULT_TEXT",
    "AddressEntity",
    "Configuration",
    "ConfigurationError",
    "FailoverUrl",
    "ListenerEntity",
    "LogEntity",
    "Place",
    "Problem",
    "RouterEntity",
    "load",
]
