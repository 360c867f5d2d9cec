"""Print and change settings. Source: command line reference 2.11."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, NotFound
from shared.filesystem.files import make_directory, write_atomic
from shared.process.cli import text
from shared.process.command import CommandSpec
from shared.settings import (
    IGNORED_SETTINGS,
    AgentSettings,
    CommonSettings,
    MasterSettings,
    canonical,
    conf,
    ignored_setting_texts,
    load,
    setting_text,
)
from shared.settings.base import ENVIRONMENTS_OWN
from shared.settings.store import SERVING_DEFAULTS
from shared.suggestions import did_you_mean

from ..faces import JsonFaceOptions


@dataclass(frozen=True, slots=True)
class ConfigOptions(JsonFaceOptions):
    """The command line of `puppet config`."""

    section: str = text("SECTION", "main (the default), agent, master or user", default="main")


@CommandSpec(
    "config",
    ConfigOptions,
    actions={
        "print [all | NAME...]": "print the values of settings in a section",
        "set NAME VALUE": "change a setting in puppet.conf",
        "delete NAME": "remove a setting from puppet.conf",
    },
    notes="Example: puppet config print ssldir --confdir /etc/puppet",
).main
def main(options: ConfigOptions, flags: dict[str, Any]) -> int:
    section = options.section
    if section not in conf.SECTIONS:
        raise ConfigError(f"There is no section {section}", hint=f"Sections are {', '.join(sorted(conf.SECTIONS))}.")
    section = "master" if section == "server" else section
    action = options.arguments[0] if options.arguments else "print"
    if action == "print":
        return print_settings(options.names, section, flags, as_json=options.as_json)
    if action == "set":
        name, value = options.exactly(2)
        return set_setting(section, name, value, flags)
    if action == "delete":
        return delete_setting(section, options.exactly(1)[0], flags)
    raise options.unknown_action(main.action_docs)


def in_force(section: str, flags: dict[str, Any]) -> dict[str, str]:
    """Return all settings as text, by name, sorted; the agent's where master and agent differ, but in the master's section."""
    texts: dict[str, str] = {}
    classes: list[type[CommonSettings]] = [MasterSettings, AgentSettings]
    for cls in classes if section != "master" else reversed(classes):
        settings = load(cls, section=section, flags=flags, application=SERVING_DEFAULTS if section == "master" else None)
        texts |= {name: setting_text(getattr(settings, name)) for name in cls.model_fields}
    texts |= ignored_setting_texts(MasterSettings, section=section, flags=flags)
    texts |= of_environment(load(MasterSettings, section=section, flags=flags))
    return dict(sorted(texts.items()))


def of_environment(settings: MasterSettings) -> dict[str, str]:
    """Return the current environment's own settings; empty values when it does not exist."""
    from environments.directories import Environments, EnvironmentSettings  # what reads them is only needed here

    try:
        environment = Environments(EnvironmentSettings.of(settings)).read(settings.environment)
    except NotFound:
        if settings.environment != "production":
            return {"manifest": "", "modulepath": ""}
        return {"manifest": "no_manifest", "modulepath": setting_text(settings.basemodulepath)}  # nobody needs to make that one
    return {
        "config_version": environment.config_version,
        "manifest": str(environment.manifest or "no_manifest"),
        "modulepath": os.pathsep.join(environment.modulepath),
    }


def print_settings(names: Sequence[str], section: str, flags: dict[str, Any], *, as_json: bool) -> int:
    """Print the bare value of one name, or `name = value` for several or all. An unknown name has an empty value, as in Puppet."""
    values = in_force(section, flags)
    for name in names if tuple(names) != ("all",) else ():
        _warn_of_misspelled(name, values)
    chosen = values if tuple(names) in ((), ("all",)) else {name: values.get(canonical(name), "") for name in names}
    if as_json:
        sys.stdout.buffer.write(dumps_pretty(chosen))
    elif len(names) == 1 and names[0] != "all":
        print(chosen[names[0]])
    else:
        print("\n".join(f"{name} = {value}" for name, value in sorted(chosen.items())))
    return 0


def _warn_of_misspelled(name: str, known: Collection[str]) -> None:
    """Warn of a name that no setting has but one is close to; others may be settings of Puppet's that nothing here reads."""
    if canonical(name) not in known and (hint := did_you_mean(canonical(name), known)):
        print(f"Warning: Unknown setting {name}. {hint}", file=sys.stderr)


def _file(section: str, flags: dict[str, Any]) -> Path:
    return load(CommonSettings, section=section, flags=flags).config


def set_setting(section: str, name: str, value: str, flags: dict[str, Any]) -> int:
    """Change one setting in puppet.conf; a known one must be valid with the new value."""
    setting = canonical(name)
    for cls in (AgentSettings, MasterSettings):
        if setting in cls.model_fields:
            load(cls, section=section, flags={**flags, setting: value})
    if setting in IGNORED_SETTINGS:  # what is in [main] is the master's too
        load(MasterSettings, section="master" if section == "main" else section, flags={**flags, setting: value})
    _warn_of_misspelled(setting, {*AgentSettings.model_fields, *MasterSettings.model_fields, *IGNORED_SETTINGS, *ENVIRONMENTS_OWN})
    path = _file(section, flags)
    text = path.read_text("utf-8") if path.exists() else ""
    make_directory(path.parent)
    write_atomic(path, conf.with_setting(text, section, setting, value).encode())
    return 0


def delete_setting(section: str, name: str, flags: dict[str, Any]) -> int:
    """Take one setting out of puppet.conf; one that is not there is only warned about."""
    path = _file(section, flags)
    text, removed_line = conf.without_setting(path.read_text("utf-8") if path.exists() else "", section, canonical(name))
    if removed_line is None:
        print(f"Warning: No setting found in configuration file for section '{section}' setting name '{name}'", file=sys.stderr)
        return 0
    write_atomic(path, text.encode())
    print(f"Deleted setting from '{section}': '{removed_line}'")
    return 0
