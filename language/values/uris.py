"""URI values: they are parsed once, compared by their parts, and joined by RFC 3986."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shared.errors import EvaluationError

# RFC 3986, appendix B, with the authority split.
_URI = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?"
    r"(?://(?:(?P<userinfo>[^@/?#]*)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^/?#:@]*)(?::(?P<port>[0-9]*))?)?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?"
)
_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21, "ldap": 389, "ldaps": 636, "ws": 80, "wss": 443}
_CLASSES = {
    "http": "HTTP", "https": "HTTPS", "ftp": "FTP", "ldap": "LDAP", "ldaps": "LDAPS", "mailto": "MailTo", "file": "File", "ws": "WS",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class URI:
    """The parts of a URI; `opaque` is the text behind a scheme that no slash follows (`mailto:x@y`)."""

    scheme: str | None = None
    userinfo: str | None = None
    host: str | None = None
    port: int | None = None
    path: str | None = None
    query: str | None = None
    fragment: str | None = None
    opaque: str | None = None

    @classmethod
    def parse(cls, text: str) -> URI:
        match = _URI.fullmatch(text)
        if not match or not text.isascii() or re.search(r"[\s<>\"{}|\\^`]", text):
            raise EvaluationError(f'bad URI(is not URI?): "{text}"')
        scheme = match["scheme"].lower() if match["scheme"] else None
        if scheme and match["host"] is None and not match["path"].startswith("/") and match["path"]:
            rest = match["path"] + (f"?{match['query']}" if match["query"] is not None else "")
            return cls(scheme=scheme, opaque=rest, fragment=match["fragment"])
        port = int(match["port"]) if match["port"] else None
        if port is None and scheme and match["host"] is not None:
            port = _DEFAULT_PORTS.get(scheme)
        return cls(scheme, match["userinfo"], match["host"], port, match["path"], match["query"], match["fragment"])

    @property
    def ruby_class(self) -> str:
        return f"URI::{_CLASSES.get(self.scheme or '', 'Generic')}"

    def shown_port(self) -> int | None:
        """Return the port if it is not the scheme's own; else None."""
        return None if self.port is None or self.port == _DEFAULT_PORTS.get(self.scheme or "") else self.port

    def join(self, reference: URI) -> URI:
        """Return `reference` resolved against this URI (RFC 3986, 5.2)."""
        if reference.scheme is not None:
            return reference
        if reference.host is not None:
            authority, path, query = reference, _without_dots(reference.path or ""), reference.query
        elif not reference.path:
            authority, path, query = self, self.path or "", reference.query if reference.query is not None else self.query
        else:
            if reference.path.startswith("/"):
                merged = reference.path
            elif self.host is not None and not self.path:
                merged = "/" + reference.path
            else:
                merged = (self.path or "")[: (self.path or "").rfind("/") + 1] + reference.path
            authority, path, query = self, _without_dots(merged), reference.query
        port = authority.port if authority.port is not None else _DEFAULT_PORTS.get(self.scheme or "")
        return URI(self.scheme, authority.userinfo, authority.host, port, path, query, reference.fragment)

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque is not None:
            text += self.opaque
        else:
            if self.host is not None:
                text += "//" + (f"{self.userinfo}@" if self.userinfo is not None else "") + self.host
                port = self.shown_port()
                text += f":{port}" if port is not None else ""
            text += self.path or ""
            text += f"?{self.query}" if self.query is not None else ""
        return text + (f"#{self.fragment}" if self.fragment is not None else "")


def _without_dots(path: str) -> str:
    out: list[str] = []
    parts = path.split("/")
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == ".":
            if last:
                out.append("")
        elif part == "..":
            if len(out) > 1 or (out and out[0] != ""):
                out.pop()
            if last:
                out.append("")
        else:
            out.append(part)
    return "/".join(out)
