"""
Settings: declared once as fields of a class, read from puppet.conf and the command line, then an argument like any other.

Defaults may name other settings (`$vardir/state`). Precedence, highest first: command line, the run mode's section, `[main]`, the
application's own defaults, the field's default. Source: command line reference 5.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

from ..errors import ConfigError, Location
from ..suggestions import did_you_mean
from .conf import Conf, read
from .declarations import DeclaredSettings, InvalidSetting, SettingField
from .ignored import IGNORED_SETTINGS
from .values import setting_text

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
ALIASES = {"serverport": "masterport"}
PACKAGE_MODULES = "/usr/share/puppet/modules:/opt/puppetlabs/puppet/modules"
"""The folders of modules in Debian's and Puppet's packages, among them the types that left Puppet: cron, host, mount."""


@dataclass(frozen=True, slots=True)
class SettingSource:
    """A setting's text, variables not expanded, and its place: a line of puppet.conf, or None for the command line."""

    value: Any
    where: Location | None


class Settings(DeclaredSettings):
    """Frozen; a field is a setting. `name` of a field with an alias in Puppet is the older one (`masterport`)."""

    _sources: Mapping[str, SettingSource] = MappingProxyType({})
    _layers: Layers | None = None

    def text_in(self, section: str, name: str) -> str:
        """Return a setting's text for a process of another section of the same puppet.conf; raise ConfigError."""
        options = self._layers.layers[0] if self._layers else {}
        return setting_texts(type(self), [name], section=section, flags=options)[0]

    def layers(self, *others: type[Settings]) -> Layers:
        """Return the layers of these settings, with the defaults of other classes."""
        own = self._layers or Layers([self.model_dump()], run_mode="user")
        defaults = {name: setting.default for name, setting in IGNORED_SETTINGS.items()}
        for other in others:
            defaults |= _defaults(other)
        return Layers([*own.layers, defaults], run_mode=own.run_mode, paths=path_names(type(self), *others))

    def given(self, name: str) -> Any:
        """Return the value of a setting that somebody has set, None where it is a default."""
        return getattr(self, name) if name in self._sources else None

    def source_of(self, name: str) -> SettingSource | None:
        """Return the explicit value of a setting, and its place; None where it is a default."""
        return self._sources.get(name)

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """Return the same settings with other values, which are not checked."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, **update)
        return copy


Texts = Mapping[str, Any]
S = TypeVar("S", bound=Settings)


def canonical(name: str) -> str:
    """Return a setting's field name: `-` as `_`, newer aliases as the older name."""
    plain = name.replace("-", "_")
    return ALIASES.get(plain, plain)


def is_flag(field: SettingField) -> bool:
    """Return whether a setting is a plain boolean, which the command line writes as --x and --no-x."""
    return field.annotation is bool


def path_names(*classes: type[Settings]) -> set[str]:
    """Return the names of the settings that are a path or a list of paths."""
    return {name for cls in classes for name, field in cls.model_fields.items() if field.annotation in (Path, tuple[Path, ...])}


def absolute_paths(text: str) -> str:
    """
    Return the paths in `text`, which colons separate, as absolute ones: relative ones are below the working directory.

    Parts that are empty or begin with a `$name` stay.
    """
    parts = text.split(os.pathsep)
    if all(part.startswith("/") for part in parts):
        return text
    return os.pathsep.join(
        part if not part or part.startswith(("/", "$")) else os.path.abspath(os.path.expanduser(part))  # noqa: PTH100, PTH111
        for part in parts
    )


def default_certname() -> str:
    """Return this host's full name in lower case."""
    name = socket.getfqdn().lower().rstrip(".")
    return name if name and not name.startswith("localhost") else socket.gethostname().lower()


def home_directory() -> Path:
    """Return the home directory of this process's account; `/` where neither HOME nor an entry of passwd names one."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def directories(*, root: bool, home: Path) -> dict[str, str]:
    """Return the base directories: of the system for root, below the home directory for other users."""
    if root:
        return {"confdir": "/etc/puppet", "vardir": "/var/lib/puppet", "logdir": "/var/log/puppet", "rundir": "/var/run/puppet"}
    base = str(home / ".puppet")
    return {"confdir": base, "vardir": f"{base}/var", "logdir": f"{base}/var/log", "rundir": f"{base}/var/run"}


def package_modules() -> list[str]:
    """Return the folders of PACKAGE_MODULES that are there; BUNRAKU_PACKAGE_MODULES in the environment names others."""
    folders = os.environ.get("BUNRAKU_PACKAGE_MODULES", PACKAGE_MODULES).split(os.pathsep)
    return [folder for folder in folders if folder and Path(folder).is_dir()]


class Layers:
    """
    The raw texts of all settings, by precedence, and their expanded values.

    Args:
        paths: names of the settings that are paths: their values are absolute, and so is every `$name` of one.
    """

    def __init__(self, layers: Iterable[Mapping[str, Any]], *, run_mode: str, paths: Collection[str] = ()) -> None:
        self.layers = list(layers)
        self.run_mode = run_mode
        self.paths = paths

    def raw(self, name: str) -> Any:
        for layer in self.layers:
            if name in layer:
                return layer[name]
        raise KeyError(name)

    def value(self, name: str, open_: tuple[str, ...] = ()) -> Any:
        """Return the setting with every `$other` in it expanded; ConfigError for unknown names and reference cycles."""
        if name in open_:
            raise ConfigError(f"The setting {name} refers to itself: {' → '.join([*open_, name])}")
        text = self.raw(name)
        if not isinstance(text, str) or "$" not in text:
            return self._absolute(name, text)

        def expand(match: re.Match[str]) -> str:
            other = canonical(match[1] or match[2])
            if other == "run_mode":
                return self.run_mode
            if other == "environment" and name == "config_version":
                return match[0]
            try:
                return str(self.value(other, (*open_, name)))
            except KeyError:
                raise ConfigError(
                    f"Could not find value for ${other} in the setting {name}", hint=did_you_mean(other, self.names())
                ) from None

        return self._absolute(name, _VARIABLE.sub(expand, text))

    def _absolute(self, name: str, value: Any) -> Any:
        return absolute_paths(value) if name in self.paths and isinstance(value, str) else value

    def names(self) -> set[str]:
        return {name for layer in self.layers for name in layer}


ENVIRONMENTS_OWN = ("config_version", "manifest", "modulepath")


def _defaults(cls: type[Settings]) -> dict[str, Any]:
    return {name: field.default for name, field in cls.model_fields.items()}


def load(
    cls: type[S],
    *,
    section: str,
    flags: Mapping[str, Any] | None = None,
    application: Mapping[str, Any] | None = None,
    conf: Conf | None = None,
    root: bool | None = None,
    home: Path | None = None,
) -> S:
    """
    Return the settings of one process.

    Args:
        section: of puppet.conf: `agent`, `master` or `user`; it is also the run mode.
        flags: from the command line; those of other processes do not count. application: the application's own defaults.
        conf: already read; by default `$confdir/puppet.conf` is.
    Raises:
        ConfigError: an unparsable file, a bad value (names setting, file and line), a `$name` that is unknown, a setting that
            only an environment may have, a value that is refused.
    """
    conf, layers = _layered(cls, section, flags or {}, application or {}, conf, root, home)
    _refuse_environments_own(conf)
    _refuse_ignored(conf, layers)
    values = {name: layers.value(name) for name in cls.model_fields}
    sources = _sources(conf, layers)
    try:
        settings: S = cls.model_validate(values)
    except InvalidSetting as err:
        if not err.name:  # it is about several
            raise ConfigError(err.message) from err
        raise ConfigError(f"Could not set {err.name}: {err.message}{_place(sources, err.name)}") from err
    settings.__dict__.update(_sources=sources, _layers=layers)
    return settings


def read_conf(cls: type[Settings], *, section: str, flags: Mapping[str, Any]) -> Conf:
    """Return `$confdir/puppet.conf`, which the command line may place elsewhere; ConfigError for an unparsable file."""
    return _layered(cls, section, flags, {}, None, None, None)[0]


def setting_texts(cls: type[Settings], names: Iterable[str], *, section: str, flags: Mapping[str, Any]) -> list[str]:
    """Return the texts of a few settings, without checking any, which takes most of the time of `load`; ConfigError as for `read_conf`."""
    _, layers = _layered(cls, section, flags, {}, None, None, None)
    return [str(layers.value(name)) for name in names]


def ignored_setting_texts(cls: type[Settings], *, section: str, flags: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of the settings that nothing reads, by name; `cls` has the settings that they may name."""
    _, layers = _layered(cls, section, flags, {}, None, None, None)
    return {name: str(layers.value(name)) for name in IGNORED_SETTINGS}


def _layered(
    cls: type[Settings], section: str, flags: Texts, application: Texts, conf: Conf | None, root: bool | None, home: Path | None
) -> tuple[Conf, Layers]:
    """Return the file, and all texts that settings are made of."""
    options, paths = {canonical(name): value for name, value in flags.items()}, path_names(cls)
    base = directories(root=os.geteuid() == 0 if root is None else root, home=home or home_directory())
    defaults = {**{name: setting.default for name, setting in IGNORED_SETTINGS.items()}, **_defaults(cls), **base}
    defaults["basemodulepath"] = os.pathsep.join(["$codedir/modules", *package_modules()])
    if conf is None:
        first = Layers([options, application, defaults], run_mode=section, paths=paths)
        conf = read(Path(str(first.value("config"))))
    own = {canonical(k): v for k, v in conf.section(section).items()}
    main = {canonical(k): v for k, v in conf.section("main").items()}
    if not any("certname" in layer for layer in (options, own, main, application)):
        defaults["certname"] = default_certname()
    return conf, Layers([options, own, main, application, defaults], run_mode=section, paths=paths)


def _sources(conf: Conf, layers: Layers) -> dict[str, SettingSource]:
    """Return the texts of the command line and the file, by setting; of several sources the one that has precedence."""
    sources = {
        canonical(name): SettingSource(entry.value, Location(str(conf.path) if conf.path else None, entry.line))
        for section in ("main", layers.run_mode)
        for name, entry in conf.sections.get(section, {}).items()
    }
    return sources | {name: SettingSource(value, None) for name, value in layers.layers[0].items()}


def _place(sources: Mapping[str, SettingSource], name: str) -> str:
    """Return the file and line that set a value, in brackets, after a blank; '' when the value comes from elsewhere."""
    source = sources.get(name)
    return f" {source.where}" if source is not None and source.where is not None else ""


def _refuse_ignored(conf: Conf, layers: Layers) -> None:
    """A setting that nothing reads, with another value than its default, where somebody relies on it."""
    sources = _sources(conf, layers)
    for name, setting in IGNORED_SETTINGS.items():
        if layers.run_mode not in setting.refused or layers.raw(name) == setting.default:
            continue
        value, default = layers.value(name), Layers([{name: setting.default}, *layers.layers], run_mode=layers.run_mode).value(name)
        if not setting.is_default(value, default):
            text = f"'{setting_text(value)}'"
            raise ConfigError(f"Could not set {name} to {text}: that is not supported here{_place(sources, name)}", hint=setting.why)


def _refuse_environments_own(conf: Conf) -> None:
    """Puppet starts with none of them in the file either: they would count for all environments, or for none."""
    for section, entries in conf.sections.items():
        for name, entry in entries.items():
            if canonical(name) in ENVIRONMENTS_OWN:
                raise ConfigError(
                    f"Cannot set {name} settings in puppet.conf: it is in [{section}] (file: {conf.path}, line: {entry.line})",
                    hint="Set it in the environment.conf of each environment, or as an option of one command.",
                )


def unknown_settings(conf: Conf, *classes: type[Settings], also: Iterable[str] = ()) -> list[str]:
    """Return one sentence for each setting of a file that nothing here reads, with a hint where a name is close to a known one."""
    known = {name for cls in classes for name in cls.model_fields} | set(also) | set(IGNORED_SETTINGS)
    return [
        f"Unknown setting {name} in [{section}] (file: {conf.path}, line: {entry.line}). {did_you_mean(name, known)}".rstrip()
        for section, entries in conf.sections.items()
        for name, entry in entries.items()
        if canonical(name) not in known
    ]


class SettingOptions:
    """
    The settings among the words of a command line.

    `--name VALUE`, `--name=VALUE`; booleans `--name` and `--no-name` only, as Puppet has it. Later words win.

    Args:
        without: names of settings that are not options here.
    """

    def __init__(self, *classes: type[Settings], without: Collection[str] = ()) -> None:
        self._paths = path_names(*classes)
        self._is_flag = {name: setting.flag for name, setting in IGNORED_SETTINGS.items()} if classes else {}
        self._is_flag |= {name: is_flag(field) for cls in classes for name, field in cls.model_fields.items()}
        for name in without:
            self._is_flag.pop(name, None)
        self.values: dict[str, Any] = {}

    def is_flag(self, name: str) -> bool | None:
        """Return whether a setting is a plain boolean; None for a name that is not a setting."""
        return self._is_flag.get(canonical(name))

    def take(self, word: str, following: list[str]) -> bool:
        """
        Return whether `word` is a setting; its value, where that is the next word, is taken out of `following`.

        Paths are made absolute here: a daemon leaves the directory that they are relative to.

        Raises:
            ConfigError: a value is missing, or given to a boolean.
        """
        name, equals, value = word[2:].partition("=") if word.startswith("--") else ("", "", "")
        setting = canonical(name)
        if setting not in self._is_flag:
            negated = canonical(name[3:]) if name.startswith(("no-", "no_")) else ""
            if self._is_flag.get(negated):
                self.values[negated] = False
                return True
            return False
        if self._is_flag[setting]:
            if equals:
                raise ConfigError(f"needless argument: {word}", hint=f"Write --{name} for true, --no-{name} for false.")
            self.values[setting] = True
            return True
        if not equals and not following:
            raise ConfigError(f"missing argument: --{name}")
        text = value if equals else following.pop(0)
        self.values[setting] = absolute_paths(text) if setting in self._paths else text
        return True


def flags_of(argv: Iterable[str], *classes: type[Settings], without: Collection[str] = ()) -> tuple[dict[str, Any], list[str]]:
    """
    Return the settings given as options, and the remaining arguments, in order.

    Options that are not settings are left. After `--` nothing is an option; it is left as well, so that the caller can tell.

    Args:
        without: names of settings that are not options here.
    Raises:
        ConfigError: a value is missing, or given to a boolean.
    """
    settings, arguments, pending = SettingOptions(*classes, without=without), list[str](), list(argv)
    while pending:
        word = pending.pop(0)
        if word == "--":
            arguments += [word, *pending]
            break
        if not settings.take(word, pending):
            arguments.append(word)
    return settings.values, arguments
