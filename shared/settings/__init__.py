"""Settings: puppet.conf and the command line, as typed, frozen objects."""

from typing import TYPE_CHECKING, Any

from .agent import AgentSettings
from .base import Layers, SettingOptions, Settings, canonical, flags_of, ignored_setting_texts, load, path_names, unknown
from .common import CommonSettings
from .conf import Conf, parse, read
from .ignored import IGNORED_SETTINGS, IgnoredSetting
from .values import printed

if TYPE_CHECKING:
    from .master import MasterSettings

__all__ = [
    "IGNORED_SETTINGS",
    "AgentSettings",
    "CommonSettings",
    "Conf",
    "IgnoredSetting",
    "Layers",
    "MasterSettings",
    "SettingOptions",
    "Settings",
    "canonical",
    "flags_of",
    "ignored_setting_texts",
    "load",
    "parse",
    "path_names",
    "printed",
    "read",
    "unknown",
]


def __getattr__(name: str) -> Any:
    """MasterSettings is imported by those who use it: building the class costs an agent 20 ms at each start."""
    if name == "MasterSettings":
        from .master import MasterSettings

        return MasterSettings
    raise AttributeError(name)
