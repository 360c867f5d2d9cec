"""
Environments that are loaded: parsed and compiled.

An environment stays loaded until a file changes that was read for it; its `environment_timeout` says how often that is checked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from language.codegen.codecache import CodeCache
from language.evaluation.runtime import NAMES
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from language.syntax.checker import Diagnostic

from .config_version import version_of
from .directories import Environment, Environments, EnvironmentSettings
from .directory_environment import DirectoryEnvironment, EnvironmentServices
from .files.code_files import MAX_PINS, TrackedFiles
from .files.manifest_access import ManifestAccess
from .module_types.registry import RubyTypeCache
from .ruby import RubyProgram, RubySettings
from .store_questions import AskPuppetDb
from .versions import version_behind

MAX_LOADED = 2  # versions of one environment that differ: the one before serves runs that began with it
TEMPLATES = 4 * 1024 * 1024  # octets of templates, and of what file() returns, that a loaded environment keeps of files that do not change


@dataclass
class LoadedEnvironment:
    """
    An environment with everything that was loaded from it.

    Attributes:
        files: The files whose change makes the environment be loaded again.
        live: The files that are read again for each catalog.
    """

    environment: Environment
    host: DirectoryEnvironment
    loader: Loader
    files: TrackedFiles
    live: TrackedFiles
    checked: float
    _versions: dict[str, int | str] = field(default_factory=dict)

    @property
    def version(self) -> int | str:
        """The configuration version of its catalogs."""
        return self._versions[self.files.pin]

    def use(self, pin: str, now: Callable[[], float]) -> None:
        """Read all files in a version from now on, in which everything that was loaded is the same; ConfigError: config_version fails."""
        if pin not in self._versions:
            if len(self._versions) >= MAX_PINS:
                self._versions.clear()
            self._versions[pin] = version_of(self.environment, folder=pin, now=now)
        if pin != self.files.pin:
            self.host.close()  # Ruby has read the files of the other version
            self.files.pin = self.live.pin = pin

    def begin(self) -> Callable[[], str | None]:
        """
        Begin a compile; return a function to call at its end, which returns a file that has changed since (two versions may be mixed).
        """
        self.live.take_seen()
        # With a timeout, older files may have changed since; only files that this compile reads first can be compared.
        since = 0 if self.environment.environment_timeout == 0 else self.files.count
        settings = self.host.settings()
        folders = (str(settings[name]) for name in ("confdir", "codedir") if name in settings)
        own_folders = [self.environment.root, *self.environment.modulepath, *folders]
        return lambda: self.files.changed(since) or self.live.changed(below=own_folders)


@dataclass(eq=False, repr=False)
class LoadedEnvironments:
    """
    The environments below `environmentpath`, loaded at their first use.

    Args:
        log: Called with warnings about configuration and manifests.
        clock: A monotonic clock, in seconds.
        ask_puppetdb: Has questions of a compilation answered by the site's PuppetDB.
        host_class: What environments become for the compiler.
    """

    settings: EnvironmentSettings
    cache: CodeCache
    _: KW_ONLY
    log: Callable[[str, Diagnostic | str], None]
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    ask_puppetdb: AskPuppetDb | None = None
    host_class: type[DirectoryEnvironment] = DirectoryEnvironment
    _loaded: dict[str, list[LoadedEnvironment]] = field(default_factory=dict, init=False)
    _ruby_types: RubyTypeCache = field(default_factory=RubyTypeCache, init=False)

    def __post_init__(self) -> None:
        self.functions = all_functions()
        self.directories = Environments(self.settings)
        ruby, timeout, answer = self.settings.ruby, self.settings.ruby_timeout, self.settings.ruby_answer
        self._ruby = RubyProgram(RubySettings(ruby, timeout, answer)) if ruby else None

    def get(self, name: str, pin: str = "") -> LoadedEnvironment:
        """
        Return the environment in the present state of its files (or in their last known state, while its timeout allows that).

        An environment that is a link is pinned to the version that the link leads to, which is looked up each time: independent of its
        timeout, a catalog is made from one version, and from the new one as soon as the link leads there. What is loaded serves all
        versions in which it is the same.

        Args:
            pin: The version to use; '': the one that the link leads to now.
        Raises:
            NotFound: There is no such environment.
            ConfigError: Its configuration is wrong, or config_version fails.
        """
        pin = pin or version_behind(self.directories.root_of(name))
        all_loaded = self._loaded.setdefault(name, [])
        for place, loaded in enumerate(all_loaded):
            if self._serves(loaded, pin):
                all_loaded.insert(0, all_loaded.pop(place))
                loaded.use(pin, self.now)
                return loaded
        # Without versions the old files are gone, so that nothing can use the old environment.
        keep = MAX_LOADED - 1 if pin else 0
        for dropped in all_loaded[keep:]:
            dropped.host.close()
        del all_loaded[keep:]
        loaded = self._load(name, pin)
        all_loaded.insert(0, loaded)
        return loaded

    def _serves(self, loaded: LoadedEnvironment, pin: str) -> bool:
        """Return whether the loaded environment is the same as a newly loaded one would be, in a version."""
        if bool(pin) != bool(loaded.files.pin):
            return False
        timeout = loaded.environment.environment_timeout
        # No look at the disk within the timeout, as the setting promises.
        if loaded.files.are_known(pin) and (timeout is None or (timeout > 0 and self.clock() - loaded.checked < timeout)):
            return True
        if not loaded.files.are_unchanged(pin):
            return False
        loaded.checked = self.clock()
        return True

    def forget(self, name: str | None = None) -> None:
        """Discard the cache of one environment, or of all (the environment cache of the admin API)."""
        for loaded_name in [name] if name is not None else list(self._loaded):
            for dropped in self._loaded.pop(loaded_name, ()):
                dropped.host.close()

    def _load(self, name: str, pin: str) -> LoadedEnvironment:
        files = TrackedFiles(self.directories.root_of(name), pin)
        return self.load(self.directories.read(name, files), files, self.host_class)

    def load(
        self, environment: Environment, files: TrackedFiles, host_class: type[DirectoryEnvironment] = DirectoryEnvironment
    ) -> LoadedEnvironment:
        """Return an environment, whose configuration was read from `files`, ready to be compiled; it is not cached. Raise ConfigError."""
        live = TrackedFiles(files.root, files.pin, memory=TEMPLATES)
        settings = {
            **self.settings.compiler,
            "environment": environment.name,
            "manifest": environment.manifest,
            "modulepath": os.pathsep.join(environment.modulepath),
            "config_version": environment.config_version,
        }
        services = EnvironmentServices(
            access=ManifestAccess(self.settings.read_roots, self.settings.hidden, self.settings.programs),
            ruby=self._ruby,
            ruby_types=self._ruby_types,
            note=lambda text: self.log("debug", text),
            ask_puppetdb=self.ask_puppetdb,
            export_keys=self.settings.export_keys,
        )
        host = host_class(environment, files, settings=settings, live=live, services=services)
        loader = Loader(host, NAMES, self.cache, log=self.log, builtins=self.functions)
        loaded = LoadedEnvironment(environment, host, loader, files, live, self.clock())
        loaded.use(files.pin, self.now)
        return loaded
