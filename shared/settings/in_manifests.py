"""The values of settings that manifests see as `$settings::name`, and modules' Ruby as `Puppet[:name]`. Source: language reference 13."""

from __future__ import annotations

from typing import Any

from .base import ALIASES, Settings
from .declarations import SettingField
from .ignored import IGNORED_SETTINGS, IgnoredSetting
from .values import boolean, setting_text

_LISTS = frozenset(("disable_warnings", "server_list", "supported_checksum_types"))


def values_in_manifests(settings: Settings, *others: type[Settings]) -> dict[str, Any]:
    """
    Return the values of all settings of Puppet and of our own: text, numbers, booleans, undef, and the lists that the reference has.

    Settings that a process does not use itself, those of `others` and unused ones, come from the same puppet.conf and command line. An
    invalid value is its text there; the code that uses it reports the error.
    """
    values = settings.model_dump()
    layers = settings.layers(*others)
    fields = {name: field for cls in (*others, type(settings)) for name, field in cls.model_fields.items()}
    for name in (fields.keys() | IGNORED_SETTINGS.keys()) - values.keys():
        raw = layers.value(name)
        try:
            values[name] = fields[name].value(raw) if name in fields else _ignored(name, raw)
        except ValueError:
            values[name] = raw
    values = {name: _value(name, value, fields.get(name) or IGNORED_SETTINGS[name]) for name, value in values.items()}
    return values | {alias: values[name] for alias, name in ALIASES.items() if name in values}


def _ignored(name: str, raw: Any) -> Any:
    if IGNORED_SETTINGS[name].flag:
        return boolean(raw)
    return int(raw) if str(raw).isdigit() else raw


def _value(name: str, value: Any, declared: SettingField | IgnoredSetting) -> Any:
    if declared.secret or (declared.undefined and value == ""):
        return None
    if name == "server_list":
        return [entry.split(":") for entry in value]
    if name == "color" and value in ("true", "false"):
        return value == "true"
    if name in _LISTS:
        return list(value)
    if name == "environment_timeout" and str(value).isdigit():
        return int(value)
    return value if isinstance(value, bool | int) else setting_text(value)
