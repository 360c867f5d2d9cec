"""Settings: puppet.conf and the command line, as typed, frozen objects."""

from typing import TYPE_CHECKING, Any

from .agent import AgentSettings
from .base import Layers, SettingOptions, Settings, canonical, flags_of, load, path_names, texts_of_unread, unknown
from .common import CommonSettings
from .conf import Conf, parse, read
from .unread import UNREAD, Unread
from .values import printed

if TYPE_CHECKING:
    from .master import MasterSettings

__all__ = [
    "UNREAD",
    "AgentSettings",
    "CommonSettings",
    "Conf",
    "Layers",
    "MasterSettings",
    "SettingOptions",
    "Settings",
    "Unread",
    "canonical",
    "flags_of",
    "load",
    "parse",
    "path_names",
    "printed",
    "read",
    "texts_of_unread",
    "unknown",
]


def __getattr__(name: str) -> Any:
    """MasterSettings is imported by those who use it: building the class costs an agent 20 ms at each start."""
    if name == "MasterSettings":
        from .master import MasterSettings

        return MasterSettings
    raise AttributeError(name)
