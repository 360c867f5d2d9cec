"""The context of the CA's commands: the CA of this host, and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TextIO

from certs.files.ssldir import SslDir
from certs.keys import Generator, KeyKind
from shared.clock import utc_now

from .. import audit
from ..authority import CaOptions
from ..storage.store import CaStore


@dataclass(frozen=True)
class CaSite:
    """The place and the rules of the CA: the values of the settings."""

    store: CaStore
    ssldir: SslDir  # of this host; keys that `generate` makes go there
    rules: CaOptions = field(default_factory=CaOptions)
    ca: bool = True
    ca_name: str = "Puppet CA"
    dns_alt_names: Sequence[str] = ()
    generate: Generator = field(default=KeyKind().generate)
    now: Callable[[], datetime] = field(default=utc_now)
    report: audit.Audit = audit.to_log
    by: str = field(default_factory=audit.by_command_line)
    owner: tuple[int, int] | None = None  # (uid, gid) of a CA that is taken over; None: the caller's own


@dataclass
class Console:
    """Messages as Puppet prints them: notices on stdout, errors on stderr."""

    out: TextIO
    err: TextIO

    def show(self, line: str) -> None:
        self.out.write(f"{line}\n")

    def notice(self, message: str) -> None:
        self.show(f"Notice: {message}")

    def warning(self, message: str) -> None:
        self.err.write(f"Warning: {message}\n")

    def error(self, message: str, hint: str = "") -> None:
        self.err.write(f"Error: {message}\n" + (f"  {hint}\n" if hint else ""))
