"""The resource layer: the API with which a module author declares a type and its providers."""

from .attributes import Ensure, Param, Property, State, Value, ensurable
from .commands import Command, Output, execute, which
from .core import Origin, Surroundings, TitlePatterns, Type
from .messages import ABSENT, displayed
from .providers import Confine, Platform, Provider, Providers, fact, feature, program
from .references import Ref

__all__ = [
    "ABSENT",
    "Command",
    "Confine",
    "Ensure",
    "Origin",
    "Output",
    "Param",
    "Platform",
    "Property",
    "Provider",
    "Providers",
    "Ref",
    "State",
    "Surroundings",
    "TitlePatterns",
    "Type",
    "Value",
    "displayed",
    "ensurable",
    "execute",
    "fact",
    "feature",
    "program",
    "which",
]
