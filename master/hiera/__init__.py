"""Hiera: the data of sites, environments and modules. Source: language reference 18."""

from .explaining import Explainer
from .lookups import Lookups
from .merging import Merge, merge_of
from .sources import Sources

__all__ = ["Explainer", "Lookups", "Merge", "Sources", "merge_of"]
