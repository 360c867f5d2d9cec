"""Settings: puppet.conf and the command line, as typed, frozen objects."""

from .agent import AgentSettings
from .base import (
    SettingOptions,
    Settings,
    canonical,
    flags_of,
    home_directory,
    ignored_setting_texts,
    load,
    package_modules,
    path_names,
    read_conf,
    setting_texts,
    unknown_settings,
)
from .common import CommonSettings
from .conf import Conf, read
from .ignored import IGNORED_SETTINGS, IgnoredSetting
from .master import MasterSettings
from .values import setting_text

__all__ = [
    "IGNORED_SETTINGS",
    "AgentSettings",
    "CommonSettings",
    "Conf",
    "IgnoredSetting",
    "MasterSettings",
    "SettingOptions",
    "Settings",
    "canonical",
    "flags_of",
    "home_directory",
    "ignored_setting_texts",
    "load",
    "package_modules",
    "path_names",
    "read",
    "read_conf",
    "setting_text",
    "setting_texts",
    "unknown_settings",
]
