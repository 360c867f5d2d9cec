"""The file termini of keys, requests, certificates and CRLs in a $ssldir."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..models.pem import PemText
from .core import Indirection
from .termini import FilePerKey

P = TypeVar("P", bound=PemText)


class PemFiles(FilePerKey[P]):
    """`<root>/<certname>.pem`, or what `place` says for a key (the one `crl.pem` of all keys)."""

    def __init__(
        self,
        indirection: Indirection[P],
        root: Path,
        *,
        mode: int = 0o644,
        folder_mode: int = 0o755,
        place: Callable[[str], Path] | None = None,
    ) -> None:
        super().__init__(indirection, root, suffix=".pem", mode=mode, folder_mode=folder_mode)
        self.place = place

    def path(self, key: str) -> Path:
        return self.place(key) if self.place else super().path(key)

    def load(self, key: str, body: bytes) -> P:
        return self.indirection.model.named(key, body)
