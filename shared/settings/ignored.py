"""
Settings of Puppet 7 that this program does not use but a puppet.conf may contain: their values are stored for `$name` and `config print`.

A refused one may only have its default, so that a site which needs another value learns it at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .values import boolean


@dataclass(frozen=True, slots=True)
class IgnoredSetting:
    """
    One such setting.

    Attributes:
        default: As Puppet has it; may name other settings.
        why: A sentence: why it has no effect here, or the alternative to a refused value.
        refused: The run modes (sections) in which only the default is allowed.
        secret, undefined: As of a SettingField.
    """

    default: str
    why: str
    refused: tuple[str, ...] = ()
    secret: bool = False
    undefined: bool = False

    @property
    def flag(self) -> bool:
        """True if the command line writes it as --name and --no-name."""
        return self.default in ("true", "false")

    def is_default(self, value: Any, default: Any) -> bool:
        """Return whether a value is the default, however it is written."""
        try:
            return value == default or (self.flag and boolean(value) == boolean(default))
        except ValueError:
            return False


_DEVICE = "There is no `puppet device` here."
_IN_CADIR = "The CA's files have fixed places below cadir: set that, and remove this setting."
_MASTER = ("master",)
_ANYBODY = ("agent", "master", "user")

IGNORED_SETTINGS: Mapping[str, IgnoredSetting] = {
    "always_retry_plugins": IgnoredSetting("true", "Types and providers are looked for once in each run."),
    "autoflush": IgnoredSetting("true", "Log files are always written at once."),
    "binder_config": IgnoredSetting("", "Puppet 7 does not read it either: bindings were removed in Puppet 4.", undefined=True),
    "cacert": IgnoredSetting("$cadir/ca_crt.pem", _IN_CADIR, _MASTER),
    "cacrl": IgnoredSetting("$cadir/ca_crl.pem", _IN_CADIR, _MASTER),
    "cakey": IgnoredSetting("$cadir/ca_key.pem", _IN_CADIR, _MASTER),
    "capub": IgnoredSetting("$cadir/ca_pub.pem", _IN_CADIR, _MASTER),
    "cert_inventory": IgnoredSetting("$cadir/inventory.txt", _IN_CADIR, _MASTER),
    "code": IgnoredSetting("", "Give code by `puppet apply -e CODE`, or write a manifest.", _ANYBODY),
    "configprint": IgnoredSetting("", "Use `puppet config print NAME`.", _ANYBODY),
    "csrdir": IgnoredSetting("$cadir/requests", _IN_CADIR, _MASTER),
    "deviceconfdir": IgnoredSetting("$confdir/devices", _DEVICE),
    "deviceconfig": IgnoredSetting("$confdir/device.conf", _DEVICE),
    "devicedir": IgnoredSetting("$vardir/devices", _DEVICE),
    "document_all": IgnoredSetting("false", "`puppet doc` writes references of types, functions and settings, not of manifests."),
    "freeze_main": IgnoredSetting("false", "Files of modules must contain only definitions, whatever its value is."),
    "genconfig": IgnoredSetting("false", "Use `puppet config print all` or `puppet doc --reference configuration`.", _ANYBODY),
    "genmanifest": IgnoredSetting("false", "Directories are made when they are needed; there is no manifest of them.", _ANYBODY),
    "http_debug": IgnoredSetting("false", "Requests are not printed; the master's access log has them (accesslog)."),
    "location_trusted": IgnoredSetting("false", "A redirect to another host never gets a password."),
    "manage_internal_file_permissions": IgnoredSetting(
        "true", "Keys and state are private whatever its value is; existing files are not changed."
    ),
    "max_deprecations": IgnoredSetting("10", "All that are found are logged."),
    "max_errors": IgnoredSetting("10", "All that are found are logged."),
    "max_warnings": IgnoredSetting("10", "All that are found are logged."),
    "maximum_uid": IgnoredSetting("4294967290", "Linux has no larger ones, and no negative ones."),
    "mkusers": IgnoredSetting("false", "The account comes from the package, or from the administrator."),
    "module_working_dir": IgnoredSetting("$vardir/puppet-module", "Archives are unpacked in the target directory of the modules."),
    "name": IgnoredSetting("", "It is the command's own name."),
    "passfile": IgnoredSetting("$privatedir/password", "Private keys are stored without a password."),
    "preferred_serialization_format": IgnoredSetting("json", "Both sides agree on a format that both can; that is JSON from Puppet 5 on."),
    "preview_outputdir": IgnoredSetting("$vardir/preview", "`puppet preview` prints its result here, or writes a page with --html."),
    "privatedir": IgnoredSetting("$ssldir/private", "Nothing is stored there."),
    "puppet_trace": IgnoredSetting("false", "The setting trace shows where an error came from."),
    "puppetdlog": IgnoredSetting(
        "$logdir/puppetd.log", "Syslog is there on every system that is supported; Puppet does not write it there either."
    ),
    "serial": IgnoredSetting("$cadir/serial", _IN_CADIR, _MASTER),
    "settings_catalog": IgnoredSetting("true", "Directories are made when they are needed."),
    "signeddir": IgnoredSetting("$cadir/signed", _IN_CADIR, _MASTER),
    "tasks": IgnoredSetting("false", "Plans and tasks are run by Bolt, which contains its own Puppet."),
    "vendormoduledir": IgnoredSetting(
        "/opt/puppetlabs/puppet/vendor_modules", "The types and providers of Puppet's vendored modules are built in."
    ),
    "versioned_environment_dirs": IgnoredSetting("false", "Environments may be links, and a catalog is made of one version of the code."),
}
