"""
Termini and indirections of modules in Python: `lib/puppet/indirector/<indirection>/<terminus>.py`.

Such a file defines one subclass of Terminus (`def __init__(self, context)`, see PluginContext). An indirection of a module's own is
declared as `INDIRECTION` in `lib/puppet/model/<indirection>.py`, from which its termini and faces import
(`from puppet_model_<indirection> import …`); the file of a terminus may declare it as well. The files are code that the administrator put
on the module path; each is run in a module space of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import pluginfiles
from ..errors import ConfigError
from .core import Indirection, Terminus
from .paths import plurality

MODEL = "puppet_model_"


@dataclass(frozen=True, slots=True)
class PluginContext:
    """The services for a plugged-in terminus: plain setting values, and the transport to the master where there is one."""

    settings: Mapping[str, Any]
    transport: Any = None
    indirection: Indirection[Any] | None = None


@dataclass(frozen=True, slots=True)
class Plugin:
    indirection: str
    terminus: str
    path: Path

    def load(self) -> ModuleType:
        """Return the module; raise ConfigError with the line and the fault."""
        name = f"puppet_indirector_{self.indirection}_{self.terminus}"
        return pluginfiles.load(self.path, name, f"the terminus {self.terminus} of {self.indirection}")


def find_plugins(directories: Sequence[Path]) -> dict[tuple[str, str], Plugin]:
    """
    Return the plugins below `directories` (each a module's `lib` or the agent's libdir), by (indirection, terminus); the first wins.

    Raises:
        ConfigError: names the directory that may not be read.
    """
    plugins: dict[tuple[str, str], Plugin] = {}
    for path in _files(directories, "indirector/*/*.py"):
        indirection, terminus = path.parent.name, path.stem
        if indirection.isidentifier() and terminus.isidentifier():
            plugins.setdefault((indirection, terminus), Plugin(indirection, terminus, path))
    return plugins


def find_models(directories: Sequence[Path], check: pluginfiles.Check | None = None) -> dict[str, Path]:
    """
    Return the files of models below `directories` by indirection, and let code of modules import them; the first of a name wins.

    Args:
        check: raises an error for a file that must not be imported.
    Raises:
        ConfigError: names the directory that may not be read.
    """
    models: dict[str, Path] = {}
    for path in _files(directories, "model/*.py"):
        if path.stem.isidentifier():
            models.setdefault(path.stem, path)
    pluginfiles.PluginFinder({f"{MODEL}{name}": path for name, path in models.items()}, (MODEL,), check).install()
    return models


def _files(directories: Sequence[Path], pattern: str) -> Iterator[Path]:
    for directory in directories:
        try:
            yield from sorted((directory / "puppet").glob(pattern))
        except PermissionError as err:
            raise ConfigError(
                f"Could not look for plugins in {directory}: {err.strerror}", hint=f"Open it to this account: chmod 0755 {directory}"
            ) from err


def terminus_of(plugin: Plugin, context: PluginContext) -> Terminus[Any]:
    """Return the plugin's terminus, made; ConfigError when the file does not define exactly one."""
    cls: Any = pluginfiles.only(plugin.load(), Terminus)
    return cls(context)  # type: ignore[no-any-return]


def indirection_of(plugin: Plugin) -> Indirection[Any] | None:
    """Return the indirection that the file of a terminus declares as `INDIRECTION`, if it does; ConfigError."""
    declared = getattr(plugin.load(), "INDIRECTION", None)
    return None if declared is None else _checked(declared, plugin.indirection, plugin.path)


def indirection_in(model: Path) -> Indirection[Any]:
    """Return the indirection that the file of a model declares; ConfigError when it cannot be loaded, or declares none of its name."""
    name = f"{MODEL}{model.stem}"
    module = sys.modules.get(name) or pluginfiles.load(model, name, f"the model {model.stem}")
    return _checked(getattr(module, "INDIRECTION", None), model.stem, model)


def _checked(declared: object, name: str, path: Path) -> Indirection[Any]:
    if not isinstance(declared, Indirection) or declared.name != name:
        raise ConfigError(f"INDIRECTION in {path} must be an Indirection named {name}")
    if plurality(name)[1] == "plural":
        raise ConfigError(
            f"An indirection cannot be called {name}: in a URL that is the plural of {plurality(name)[0]} (file: {path})",
            hint="Its name must not end with s or _search.",
        )
    return declared
