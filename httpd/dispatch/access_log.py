"""The access log: one escaped line for each request."""

from __future__ import annotations

import logging

log = logging.getLogger("puppet.access")

MAX_PATH = 200  # characters; keys of a filebucket hold whole paths


def format_line(*, address: str, name: str, method: str, target: str, status: int, size: int, seconds: float) -> str:
    """Return `<address> <certname or -> "<method> <path>" <status> <bytes> <seconds>`, in printable ASCII, without the query."""
    path = target.partition("?")[0]
    cut = path if len(path) <= MAX_PATH else path[:MAX_PATH] + "..."
    return f'{address or "-"} {name or "-"} "{_escaped(method)} {_escaped(cut)}" {status} {size} {seconds:.3f}'


def _escaped(text: str) -> str:
    return "".join(c if "!" <= c <= "~" and c not in '"\\' else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in text)


def log_request(*, address: str, name: str, method: str, target: str, status: int, size: int, seconds: float) -> None:
    """
    Log a request; destinations that take objects get its parts by name.

    A request without an address came through a Unix socket, mostly from a master to its own store: it is logged for debugging only.
    """
    level = logging.INFO if address else logging.DEBUG
    if not log.isEnabledFor(level):
        return
    text = format_line(address=address, name=name, method=method, target=target, status=status, size=size, seconds=seconds)
    fields = {
        "address": address,
        "certname": name,
        "method": _escaped(method),
        "path": _escaped(target.partition("?")[0][:MAX_PATH]),
        "status": status,
        "bytes": size,
        "seconds": round(seconds, 4),
    }
    log.log(level, "%s", text, extra={"fields": fields})
