"""
Access rules, and the pure function that evaluates them.

A rule applies to a request when path, verb, environment and authentication fit; the first one that applies decides. The entries of a
rule are tried from the most to the least specific. Source: protocol reference 4.1.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from shared.client import Client
from shared.indirector.core import Option

from .expressions import Expression

ALT_NAMES = "subject-alt-name"  # the one extension whose values are `DNS:x`, `IP:x` and so on
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """
    A request for access.

    Attributes:
        paths: The names of the thing; the first is `/<singular indirection>/<key>`, scheme B adds the URL's path.
        verb: find, search, save, destroy or head.
        environment: None: the request names none.
        url: The path that scheme B has for the thing, whichever scheme was used, for the rules of puppetserver.
        method: The lower-case method, for the same rules.
        query: The parameters, for the same rules.
    """

    paths: tuple[str, ...]
    verb: str
    environment: str | None
    client: Client
    url: str = ""
    method: str = ""
    query: Mapping[str, Option] = field(default_factory=dict)


Matcher: TypeAlias = "Prefix | PathRegex | Below | Exactly | OneOf"
"""Decides whether a rule is about a path: `match` returns the captures, which may be empty, when it is, else None."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """A literal prefix without regard to segments, as `path /x` in 3.8's file."""

    text: str

    def match(self, path: str) -> Sequence[str] | None:
        return () if path.startswith(self.text) else None


@dataclass(frozen=True, slots=True)
class PathRegex:
    """An unanchored regular expression, as `path ~ x` in 3.8's file."""

    regex: Expression

    def match(self, path: str) -> Sequence[str] | None:
        return self.regex.search(path)


@dataclass(frozen=True, slots=True)
class Below:
    """A match by whole segments: the path itself or any path below it; captures the rest."""

    text: str

    def match(self, path: str) -> Sequence[str] | None:
        if path == self.text:
            return ("",)
        base = self.text.rstrip("/") + "/"
        return (path[len(base) :],) if path.startswith(base) else None


@dataclass(frozen=True, slots=True)
class Exactly:
    """One path and no other."""

    text: str

    def match(self, path: str) -> Sequence[str] | None:
        return () if path == self.text else None


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any of several matchers."""

    matchers: tuple[Matcher, ...]

    def match(self, path: str) -> Sequence[str] | None:
        for matcher in self.matchers:
            captures = matcher.match(path)
            if captures is not None:
                return captures
        return None


@dataclass(frozen=True, slots=True)
class AclEntry:
    """
    One allow or deny. Names are compared as strings, unless the file itself writes a regular expression.

    Attributes:
        kind: all, exact, captured (text with `$1`), domain (`*.x`), regex, network, extensions.
        extensions: (name, values) pairs; the certificate has to have each of these extensions, with one of its values.
    """

    allows: bool
    kind: Literal["all", "exact", "captured", "domain", "regex", "network", "extensions"]
    text: str
    regex: Expression | None = None
    network: Network | None = None
    extensions: tuple[tuple[str, frozenset[str]], ...] = ()

    @property
    def order(self) -> tuple[bool, bool, int, bool]:
        """The sort key of entries, the most specific first: exact, then IP, then longer, then deny."""
        if self.network is not None:
            exact = self.network.prefixlen == self.network.max_prefixlen
            return (not exact, False, -self.network.prefixlen, self.allows)
        exact = self.kind in ("exact", "captured", "extensions")
        return (not exact, True, -len(self.text.split(".")), self.allows)

    def fits(self, client: Client, captures: Sequence[str]) -> bool:
        """Return whether the entry is about this client; `captures` fill `$1` to `$9`."""
        name = client.name.lower()
        match self.kind:
            case "all":
                return True
            case "exact":
                return name == self.text.lower()
            case "captured":
                return name == _fill_captures(self.text, captures).lower()
            case "domain":
                return name.endswith(self.text.lower()) and len(name) > len(self.text)
            case "regex":
                return self.regex is not None and self.regex.search(client.name) is not None
            case "network":
                return self.network is not None and _address_in(client.address, self.network)
            case "extensions":
                return client.authenticated and all(values & _extension(client, key) for key, values in self.extensions)


def _extension(client: Client, name: str) -> frozenset[str]:
    if name == ALT_NAMES:
        return frozenset(client.alt_names)
    return frozenset({client.extensions[name]} if name in client.extensions else ())


def _fill_captures(text: str, captures: Sequence[str]) -> str:
    return re.sub(r"\$([1-9])", lambda reference: captures[int(reference[1]) - 1] if int(reference[1]) <= len(captures) else "", text)


def _address_in(address: str, network: Network) -> bool:
    try:
        return ipaddress.ip_address(address) in network
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Rule:
    """
    A rule of an auth.conf, or a default.

    Attributes:
        verbs: Empty: all.
        environments: Empty: all.
        authenticated: Whether the rule is for clients with a certificate only.
        line: The line in its file, else 0.
    """

    name: str
    matcher: Matcher
    entries: tuple[AclEntry, ...] = ()
    verbs: frozenset[str] = frozenset()
    environments: frozenset[str] = frozenset()
    authenticated: bool = True
    line: int = 0

    def captures_for(self, request: AccessRequest) -> Sequence[str] | None:
        """Return the captures when this rule applies to `request`, else None."""
        if self.authenticated and not request.client.authenticated:
            return None
        if self.environments and request.environment not in self.environments:
            return None
        for path in request.paths:
            captures = self.matcher.match(path)
            if captures is not None and self._has_verb(request.verb):
                return captures
        return None

    def _has_verb(self, verb: str) -> bool:
        return not self.verbs or verb in self.verbs

    def allows_client(self, client: Client, captures: Sequence[str]) -> bool:
        """Return whether `client` is allowed: `allow *` wins, then the most specific entry that fits; without one the answer is no."""
        if any(entry.allows and entry.kind == "all" for entry in self.entries):
            return True
        for entry in sorted(self.entries, key=lambda candidate: candidate.order):
            if entry.fits(client, captures):
                return entry.allows
        return False


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """The decision about access; `rule` is the one that applied, None when none did."""

    allowed: bool
    rule: Rule | None = None


def decide(rules: Sequence[Rule], request: AccessRequest) -> AccessDecision:
    """Return the decision of the first rule that applies; without one it is a denial. HEAD is allowed where find or save is."""
    if request.verb == "head":
        first = _first_decision(rules, request, "find")
        return first if first.allowed else _first_decision(rules, request, "save")
    return _first_decision(rules, request, request.verb)


def _first_decision(rules: Sequence[Rule], request: AccessRequest, verb: str) -> AccessDecision:
    with_verb = replace(request, verb=verb)
    for rule in rules:
        captures = rule.captures_for(with_verb)
        if captures is not None:
            return AccessDecision(rule.allows_client(request.client, captures), rule)
    return AccessDecision(False)
