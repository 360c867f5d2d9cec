"""Settings: puppet.conf and the command line, as typed, frozen objects."""

from .agent import AgentSettings
from .base import Layers, Settings, canonical, flags_of, load, unknown
from .common import CommonSettings
from .conf import Conf, parse, read
from .master import MasterSettings
from .values import printed

__all__ = [
    "AgentSettings",
    "CommonSettings",
    "Conf",
    "Layers",
    "MasterSettings",
    "Settings",
    "canonical",
    "flags_of",
    "load",
    "parse",
    "printed",
    "read",
    "unknown",
]
