"""What `run` and `check` do alike: load configuration and plugins, and tell everything that is wrong with them."""

from __future__ import annotations

import argparse
from pathlib import Path

from trouter import logs
from trouter.config import Configuration, ConfigurationError, RouterEntity, load
from trouter.hooks import ConfigurationRefused, PluginError, Plugins, RouterFacts


class StartError(Exception):
    """The router cannot start; `lines` tell why, one problem each."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def prepare(path: Path | None) -> tuple[Configuration, Plugins]:
    """The configuration in the file, or the built-in one, and the plugins, which know it; StartError if unusable."""
    logs.configure(Configuration(RouterEntity()))  # until the configuration says otherwise
    try:
        configuration = load(path)
        plugins = Plugins.load()
        plugins.configure(facts_of(configuration))
    except ConfigurationError as error:
        raise StartError(*(str(problem) for problem in error.problems)) from error
    except ConfigurationRefused as refusal:
        raise StartError(*(f"{configuration.source}: {problem}" for problem in refusal.problems)) from refusal
    except PluginError as error:
        raise StartError(str(error)) from error
    return configuration, plugins


def facts_of(configuration: Configuration) -> RouterFacts:
    """What plugins are told of the configuration."""
    router = configuration.router
    return RouterFacts(id=router.id, mode=router.mode, sasl_users_file=router.users_file)


def existing_path(text: str) -> Path:
    """A file named on the command line; whether it can be read is found out on loading."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is needed")
    return Path(text)
