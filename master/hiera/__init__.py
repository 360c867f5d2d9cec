"""Hiera: the data of environments and modules. Source: language reference 18."""

from .layers import Layer
from .lookups import Lookup
from .merging import Merge, merge_of

__all__ = ["Layer", "Lookup", "Merge", "merge_of"]
