"""`stage`: a container for classes, ordered before or after others."""

from __future__ import annotations

from ..ral import Param, Type


class Stage(Type, name="stage", providers=False):
    """A run stage; classes are put into it with the metaparameter `stage`. The stage `main` always exists."""

    name = Param(str, namevar=True, doc="What the metaparameter `stage` refers to.")
