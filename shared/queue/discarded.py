"""The commands that cannot be carried out, stored for troubleshooting."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

from ..filesystem.files import make_directory, owner_in, write_atomic

log = logging.getLogger("puppet.queue")


@dataclass(frozen=True, slots=True)
class DiscardedLimits:
    """The limits of discarded commands, in number and bytes; new ones replace the oldest."""

    commands: int = 10_000
    bytes: int = 256 * 2**20


@dataclass(slots=True)
class DiscardedCommands:
    """
    A folder with the payload of each discarded command, and a file with the ending `.reason`, a JSON text with the command and the
    reason. Names begin with the time of receipt, so that the oldest come first.
    """

    folder: Path
    limits: DiscardedLimits
    _sizes: dict[str, int] | None = field(default=None, init=False)

    def keep(self, name: str, payload: bytes, about: dict[str, str | int]) -> None:
        """Store a payload with a description; both survive a power loss. Raise OSError when the disk is full. Blocks."""
        self._make_room(name, len(payload))
        self._write_reason(name, about)
        write_atomic(self.folder / name, payload, mode=0o600, owner=owner_in(self.folder))

    def keep_file(self, path: Path, name: str, about: dict[str, str | int]) -> None:
        """Move a file here. It needs no space on the disk except for the reason. Blocks."""
        self._make_room(name, path.stat().st_size)
        path.rename(self.folder / name)
        self._write_reason(name, about)

    def _write_reason(self, name: str, about: dict[str, str | int]) -> None:
        text = json.dumps(about, indent=2, ensure_ascii=False).encode() + b"\n"
        write_atomic(self.folder / f"{name}.reason", text, mode=0o600, owner=owner_in(self.folder))

    def _make_room(self, name: str, length: int) -> None:
        """Remove the oldest commands where there are too many, and count the new one."""
        if self._sizes is None:
            make_directory(self.folder, mode=0o700, inherit=True)
            self._sizes = {path.name: path.stat().st_size for path in sorted(self.folder.iterdir()) if path.suffix != ".reason"}
        while self._sizes and (len(self._sizes) >= self.limits.commands or sum(self._sizes.values()) + length > self.limits.bytes):
            oldest = next(iter(self._sizes))
            log.warning("Removing the discarded command %s: there are too many of them", oldest)
            (self.folder / oldest).unlink(missing_ok=True)
            (self.folder / f"{oldest}.reason").unlink(missing_ok=True)
            del self._sizes[oldest]
        self._sizes[name] = length
