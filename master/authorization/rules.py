"""
Who may do what: rules, and the pure function that evaluates them.

A rule applies to a question when path, verb, environment and authentication fit; the first one that applies decides.
Inside a rule its entries are tried from the most to the least specific. Source: protocol reference 4.1.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from shared.indirector.core import Client, Option

from .expressions import Expression

ALT_NAMES = "subject-alt-name"  # the one extension whose values are `DNS:x`, `IP:x` and so on
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """
    What is asked. `paths`: the names of the thing, the first is `/<singular indirection>/<key>`; scheme B adds the URL's path.

    `verb` is find, search, save, destroy or head. `url`, `method` and `query` are how scheme B asks it, whatever scheme was
    spoken, for the rules of puppetserver.
    """

    paths: tuple[str, ...]
    verb: str
    environment: str | None
    client: Client
    url: str = ""
    method: str = ""
    query: Mapping[str, Option] = field(default_factory=dict)


class Matcher(Protocol):
    """Whether a rule is about a path: the captures when it is (may be none), else None."""

    def match(self, path: str) -> Sequence[str] | None: ...


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
    """Whole segments: the path itself or what lies below it; captures the rest."""

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
            found = matcher.match(path)
            if found is not None:
                return found
        return None


@dataclass(frozen=True, slots=True)
class AclEntry:
    """
    One allow or deny. `kind`: all, exact, captured (text with `$1`), domain (`*.x`), regex, network, extensions.

    `extensions`: (name, values) pairs of which the certificate has to have each, with one of its values.

    Names are compared as strings; a regular expression is only what the file itself writes as one.
    """

    allows: bool
    kind: Literal["all", "exact", "captured", "domain", "regex", "network", "extensions"]
    text: str
    regex: Expression | None = None
    network: Network | None = None
    extensions: tuple[tuple[str, frozenset[str]], ...] = ()

    @property
    def order(self) -> tuple[bool, bool, int, bool]:
        """Most specific first: exact, then IP, then longer, then deny."""
        if self.network is not None:
            exact = self.network.prefixlen == self.network.max_prefixlen
            return (not exact, False, -self.network.prefixlen, self.allows)
        exact = self.kind in ("exact", "captured", "extensions")
        return (not exact, True, -len(self.text.split(".")), self.allows)

    def fits(self, client: Client, captures: Sequence[str]) -> bool:
        """Whether the entry speaks of this client."""
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
                return client.authenticated and all(values & _extension(client, each) for each, values in self.extensions)


def _extension(client: Client, name: str) -> frozenset[str]:
    if name == ALT_NAMES:
        return frozenset(client.alt_names)
    return frozenset({client.extensions[name]} if name in client.extensions else ())


def _fill_captures(text: str, captures: Sequence[str]) -> str:
    return re.sub(r"\$([1-9])", lambda found: captures[int(found[1]) - 1] if int(found[1]) <= len(captures) else "", text)


def _address_in(address: str, network: Network) -> bool:
    try:
        return ipaddress.ip_address(address) in network
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Rule:
    """`verbs` and `environments` empty: all. `authenticated`: for clients with a certificate only. `line`: in its file, else 0."""

    name: str
    matcher: Matcher
    entries: tuple[AclEntry, ...] = ()
    verbs: frozenset[str] = frozenset()
    environments: frozenset[str] = frozenset()
    authenticated: bool = True
    line: int = 0

    def applies(self, question: AccessRequest) -> Sequence[str] | None:
        """The captures when this rule is the one to ask, else None."""
        if self.authenticated and not question.client.authenticated:
            return None
        if self.environments and question.environment not in self.environments:
            return None
        for path in question.paths:
            captures = self.matcher.match(path)
            if captures is not None and self._has_verb(question.verb):
                return captures
        return None

    def _has_verb(self, verb: str) -> bool:
        return not self.verbs or verb in self.verbs

    def decides(self, client: Client, captures: Sequence[str]) -> bool:
        """`allow *` wins; else the most specific entry that fits; else no."""
        if any(entry.allows and entry.kind == "all" for entry in self.entries):
            return True
        for entry in sorted(self.entries, key=lambda each: each.order):
            if entry.fits(client, captures):
                return entry.allows
        return False


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """`rule`: the one that decided, None when none applied."""

    allowed: bool
    rule: Rule | None = None


def decide(rules: Sequence[Rule], question: AccessRequest) -> AccessDecision:
    """The decision of the first rule that applies; no rule: denied. HEAD is allowed where find or save is."""
    if question.verb == "head":
        first = _first(rules, question, "find")
        return first if first.allowed else _first(rules, question, "save")
    return _first(rules, question, question.verb)


def _first(rules: Sequence[Rule], question: AccessRequest, verb: str) -> AccessDecision:
    asked = replace(question, verb=verb)
    for rule in rules:
        captures = rule.applies(asked)
        if captures is not None:
            return AccessDecision(rule.decides(question.client, captures), rule)
    return AccessDecision(False)
