"""The indirector: models, termini and the bindings between them."""

from ..client import Client
from .core import (
    Binding,
    Indirection,
    Indirector,
    Model,
    NotAuthorizedByTerminus,
    Option,
    Request,
    Stream,
    Target,
    Terminus,
    request_for,
)

__all__ = [
    "Binding",
    "Client",
    "Indirection",
    "Indirector",
    "Model",
    "NotAuthorizedByTerminus",
    "Option",
    "Request",
    "Stream",
    "Target",
    "Terminus",
    "request_for",
]
