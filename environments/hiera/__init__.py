"""Hiera: the data of sites, environments and modules. Source: language reference 18."""

from .data.sources import DataSources
from .data_layers import DataLayers
from .entry_points import detached_context, look_up
from .explanation import Explainer
from .merging import merge_of

__all__ = ["DataLayers", "DataSources", "Explainer", "detached_context", "look_up", "merge_of"]
