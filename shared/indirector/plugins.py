"""
Termini and indirections that modules bring in Python: `lib/puppet/indirector/<indirection>/<terminus>.py`.

Such a file defines one subclass of Terminus (`def __init__(self, context)`, see PluginContext) and, for an indirection of its own, a
module-level `INDIRECTION`. The file is code that the administrator put on the module path; it is run in a module space of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import pluginfiles
from ..errors import ConfigError
from .core import Indirection, Terminus


@dataclass(frozen=True, slots=True)
class PluginContext:
    """What a plugged-in terminus may use: plain setting values, and the transport to the master where there is one."""

    settings: Mapping[str, Any]
    transport: Any = None
    indirection: Indirection[Any] | None = None


@dataclass(frozen=True, slots=True)
class Plugin:
    indirection: str
    terminus: str
    path: Path

    def load(self) -> ModuleType:
        """Return the module; ConfigError names the line and what went wrong in it."""
        name = f"puppet_indirector_{self.indirection}_{self.terminus}"
        return pluginfiles.load(self.path, name, f"the terminus {self.terminus} of {self.indirection}")


def find_plugins(directories: Sequence[Path]) -> dict[tuple[str, str], Plugin]:
    """
    Return the plugins below `directories` (each a module's `lib` or the agent's libdir), by (indirection, terminus); the first wins.

    Raises:
        ConfigError: names the directory that may not be read.
    """
    plugins: dict[tuple[str, str], Plugin] = {}
    for directory in directories:
        try:
            files = sorted((directory / "puppet" / "indirector").glob("*/*.py"))
        except PermissionError as err:
            raise ConfigError(
                f"Could not look for plugins in {directory}: {err.strerror}", hint=f"Open it to this account: chmod 0755 {directory}"
            ) from err
        for path in files:
            indirection, terminus = path.parent.name, path.stem
            if indirection.isidentifier() and terminus.isidentifier():
                plugins.setdefault((indirection, terminus), Plugin(indirection, terminus, path))
    return plugins


def terminus_of(plugin: Plugin, context: PluginContext) -> Terminus[Any]:
    """Return the plugin's terminus, made; ConfigError when the file does not define exactly one."""
    cls: Any = pluginfiles.only(plugin.load(), Terminus)
    return cls(context)  # type: ignore[no-any-return]


def indirection_of(plugin: Plugin) -> Indirection[Any] | None:
    """Return the indirection that the file declares as `INDIRECTION`, if it does."""
    declared = getattr(plugin.load(), "INDIRECTION", None)
    if declared is not None and (not isinstance(declared, Indirection) or declared.name != plugin.indirection):
        raise ConfigError(f"INDIRECTION in {plugin.path} must be an Indirection named {plugin.indirection}")
    return declared
