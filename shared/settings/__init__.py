"""Settings: puppet.conf and the command line, as typed, frozen objects."""

from typing import TYPE_CHECKING, Any

from .agent import AgentSettings
from .base import SettingOptions, Settings, canonical, flags_of, ignored_setting_texts, load, path_names, unknown_settings
from .common import CommonSettings
from .conf import Conf, read
from .ignored import IGNORED_SETTINGS, IgnoredSetting
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
    "ignored_setting_texts",
    "load",
    "path_names",
    "read",
    "setting_text",
    "unknown_settings",
]


def _late_attribute(name: str) -> Any:
    """Return MasterSettings to those who use it: building the class costs an agent 20 ms at each start."""
    if name == "MasterSettings":
        from .master import MasterSettings

        return MasterSettings
    raise AttributeError(name)


if TYPE_CHECKING:
    from .master import MasterSettings
else:
    __getattr__ = _late_attribute  # type checkers shall know which names there are
