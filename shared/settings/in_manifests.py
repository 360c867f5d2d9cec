"""The values of settings that manifests see as `$settings::name`, and modules' Ruby as `Puppet[:name]`. Source: language reference 13."""

from __future__ import annotations

from typing import Any

from .base import ALIASES, Settings
from .ignored import IGNORED_SETTINGS
from .values import boolean, setting_text

_LISTS = frozenset(("disable_warnings", "http_extra_headers", "server_list", "supported_checksum_types"))
_UNDEFINED = frozenset(
    (
        "binder_config",
        "ca_fingerprint",
        "catalog_cache_terminus",
        "crl_refresh_interval",
        "environment_data_provider",
        "logdest",
        "module_groups",
        "node_cache_terminus",
        "priority",
        "sourceaddress",
        "srv_domain",
        "ssl_trust_store",
        "trusted_external_command",
    )
)
"""What is undef, not an empty text, when nobody has set it."""
_SECRET = frozenset(("deploy_repository", "forge_authorization", "http_proxy_password", "ldappassword", "store"))
"""What is a password or may hold one, which catalogs must not get: always undef."""


def values_in_manifests(settings: Settings, *others: type[Settings]) -> dict[str, Any]:
    """
    Return the values of all settings of Puppet and of our own: text, numbers, booleans, undef, and the lists that the reference has.

    What a process does not use itself, settings of `others` and those that nothing reads, comes from the same puppet.conf and command
    line. A value that is none is its text there: whoever uses it says what is wrong with it.
    """
    values = {name: _value(name, value) for name, value in settings.model_dump().items()}
    layers = settings.layers(*others)
    fields = {name: field for other in others for name, field in other.model_fields.items()}
    for name in (fields.keys() | IGNORED_SETTINGS.keys()) - values.keys():
        raw = layers.value(name)
        try:
            value = fields[name].value(raw) if name in fields else _ignored(name, raw)
        except ValueError:
            value = raw
        values[name] = _value(name, value)
    return values | {alias: values[name] for alias, name in ALIASES.items() if name in values}


def _ignored(name: str, raw: Any) -> Any:
    if IGNORED_SETTINGS[name].flag:
        return boolean(raw)
    return int(raw) if str(raw).isdigit() else raw


def _value(name: str, value: Any) -> Any:
    if name in _SECRET:
        return None
    if name == "server_list":
        return [entry.split(":") for entry in value]
    if name == "color" and value in ("true", "false"):
        return value == "true"
    if name in _LISTS:
        return list(value)
    if name in _UNDEFINED and value in ("", None):
        return None
    if name == "environment_timeout" and str(value).isdigit():
        return int(value)
    return value if isinstance(value, bool | int) else setting_text(value)
