"""
Refuses what web pages send to a listener without TLS: no page is a client of these servers.

A browser lets any page send requests to its own machine and its network, without asking the server, as long as they look like a form.
The page may not read the answers, unless the name of its own host suddenly leads to the server (DNS rebinding).
Source: the Fetch standard (Origin, CORS-safelisted request headers) and Fetch Metadata (Sec-Fetch-Site).
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping

from shared.names import quoted_for_log

_FORMS = ("", "text/plain", "application/x-www-form-urlencoded")  # a form with files (multipart) is left to those that take one
_PORT = re.compile(r":\d*$", re.ASCII)


class RequestOfPage(Exception):
    """A request that a web page may have sent; the text has the reason and a remedy."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def host_names(configured: Iterable[str]) -> frozenset[str]:
    """Return the names of this host, and those that somebody has configured for it, in full and without their domains. Blocks."""
    names = (*configured, socket.gethostname(), socket.getfqdn())
    full = {name.lower().removeprefix("dns:").rstrip(".") for name in names}
    return frozenset({"localhost", *full, *(name.partition(".")[0] for name in full)} - {""})


def check_sender(method: str, headers: Mapping[str, str], names: frozenset[str]) -> None:
    """Raise RequestOfPage for a request to a host of these names that a page of a browser may have sent."""
    host = _PORT.sub("", headers.get("Host", "localhost")).lower().rstrip(".")
    if host not in names and not _is_address(host):
        hint = "Use its address, its certname, or a name in dns_alt_names."
        raise RequestOfPage(421, f"This server is not known as {quoted_for_log(host, 100)} without TLS. {hint}")
    if "Origin" in headers or headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        raise RequestOfPage(403, "Requests of web pages are refused without TLS.")
    if method != "POST":  # a form has GET or POST, and nothing is changed by GET
        return
    content_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if content_type in _FORMS:
        name = f"content type {content_type} not supported" if content_type else "The content type is missing"
        raise RequestOfPage(415, f"{name}: without TLS a request names one that no web page may send, such as application/json.")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
