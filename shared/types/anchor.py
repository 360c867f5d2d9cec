"""`anchor`: a point in the order of a run. Of the module stdlib."""

from __future__ import annotations

from ..ral import Param, Type


class Anchor(Type, name="anchor", refreshable=True, providers=False):
    """Does nothing; relationships lead to it and from it."""

    name = Param(str, namevar=True, doc="What the anchor is called.")
