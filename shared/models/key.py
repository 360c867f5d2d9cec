"""A private key; it never leaves its host."""

from __future__ import annotations

from ..indirector.core import Indirection
from .pem import PemText


class Key(PemText):
    """The PEM of a private key; not shown in any text form."""


KEY = Indirection(name="key", model=Key, formats=("s",), remote=False, doc="Private keys, local only.")
