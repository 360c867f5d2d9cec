"""
auth.conf of puppetserver: rules in HOCON about the URLs of scheme B. Source: protocol reference 4.4.

The first rule whose path, method and query fit decides; without one, access is denied. The file that comes with puppetserver spells out
everything, so that no defaults of ours follow it. A request of a 3.x peer is matched by the URL that scheme B has for the same thing.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from certs.oids import OidNames
from shared.client import Client
from shared.data import hocon
from shared.errors import BadData, ConfigError, Location
from shared.names import quoted_for_log
from shared.suggestions import nearest_name

from .patterns import name_entry, ruby_regex
from .rules import ALT_NAMES, AccessRequest, AclEntry, Matcher, PathRegex, Prefix, Rule

log = logging.getLogger("puppet.auth")

METHODS = ("get", "post", "put", "delete", "head")
_RULE_KEYS = ("name", "sort-order", "match-request", "allow", "deny", "allow-unauthenticated")
_MATCH_KEYS = ("path", "type", "method", "query-params")
_ALT_NAMES = {"dns-name": "DNS", "ip": "IP", "uri": "URI", "rfc822-name": "email"}  # and their labels in certificates
_BEGINS = re.compile(r"(?:\s|#[^\n]*\n|//[^\n]*\n)*(?:(?:\"[^\"\n]*\"|[\w.-])+\s*(?:[:={]|\+=)|\{)")
_BACK_REFERENCE = re.compile(r"\$(\d+)")


def is_hocon(text: str) -> bool:
    """Return whether a file is in puppetserver's form and not in 3.8's."""
    return _BEGINS.match(text) is not None


@dataclass(frozen=True, slots=True)
class UrlRule(Rule):
    """
    A rule about a URL, methods and parameters; with empty `methods` it holds for all.

    It decides about strangers too, and lets them in only when `for_anybody` is set. A deny that fits wins; names are the certificate's
    common name and its alternative ones.
    """

    methods: frozenset[str] = frozenset()
    query: tuple[tuple[str, frozenset[str]], ...] = ()
    for_anybody: bool = False

    def captures_for(self, request: AccessRequest) -> Sequence[str] | None:
        if self.methods and request.method not in self.methods:
            return None
        for name, allowed_values in self.query:
            values = request.query.get(name, ())
            if allowed_values.isdisjoint((values,) if isinstance(values, str) else values):
                return None
        return self.matcher.match(request.url)

    def allows_client(self, client: Client, captures: Sequence[str]) -> bool:
        if self.for_anybody:
            return True
        if not client.authenticated:
            return False
        names = [client.name, *(name.removeprefix("DNS:") for name in client.alt_names if name.startswith("DNS:"))]
        clients = [replace(client, name=name) for name in names]
        verdicts = [entry.allows for entry in self.entries if any(entry.fits(candidate, captures) for candidate in clients)]
        return bool(verdicts) and all(verdicts)


def parse(text: str, file: str, names: OidNames) -> tuple[Rule, ...]:
    """
    Return the rules of a file in the order in which they are tried. `names` translates the OIDs of extensions.

    Raises:
        ConfigError: With the file, the rule's name, and the fault.
    """
    try:
        document = hocon.loads(text)
    except BadData as err:
        raise ConfigError(err.message, where=Location(file)) from err
    section = document.get("authorization") if isinstance(document, dict) else None
    if not isinstance(section, dict):
        raise ConfigError("There is no section 'authorization'", where=Location(file))
    if section.get("version") != 1:
        raise ConfigError(f"The version is {_quoted(section.get('version'))}, and only 1 is known", where=Location(file))
    if section.get("allow-header-cert-info"):
        log.warning("%s: allow-header-cert-info does nothing here: the settings allow_header_cert_info and proxy_addresses do", file)
    rules = section.get("rules")
    if not isinstance(rules, list):
        raise ConfigError("'rules' is not a list", where=Location(file))
    rules_by_order = [_rule(rule, number, file, names) for number, rule in enumerate(rules, 1)]
    seen_names: set[str] = set()
    for _, url_rule in rules_by_order:
        if url_rule.name in seen_names:
            raise ConfigError(f"Two rules are named {quoted_for_log(url_rule.name)}", where=Location(file))
        seen_names.add(url_rule.name)
    return tuple(rule for _, rule in sorted(rules_by_order, key=lambda pair: (pair[0], pair[1].name)))


@dataclass(frozen=True, slots=True)
class _RuleSource:
    """The data of one rule, and the label and file for its errors."""

    data: Mapping[str, Any]
    label: str
    file: str

    def fail(self, message: str, hint: str = "") -> NoReturn:
        raise ConfigError(f"The rule {self.label}: {message}", where=Location(self.file), hint=hint)

    @contextmanager
    def in_errors(self) -> Iterator[None]:
        """Add the name of the rule to errors of the block."""
        try:
            yield
        except ConfigError as err:
            self.fail(err.message, err.hint)

    def warn_of_unknown_keys(self, section: Mapping[str, Any], known: Sequence[str]) -> None:
        """Warn of unknown keys, because a misspelt limit has no effect."""
        for key in section:
            if key not in known:
                nearest = nearest_name(key, known)
                hint = f"; did you mean '{nearest}'?" if nearest else ""
                log.warning("%s: the rule %s: the key %s means nothing%s", self.file, self.label, quoted_for_log(key), hint)


def _rule(data: object, number: int, file: str, names: OidNames) -> tuple[int, UrlRule]:
    """Return the sort-order and the rule."""
    if not isinstance(data, dict):
        raise ConfigError(f"The rule number {number} is not a map", where=Location(file))
    name = data.get("name")
    rule = _RuleSource(data, quoted_for_log(name) if isinstance(name, str) else f"number {number}", file)
    if not isinstance(name, str) or not name:
        rule.fail("it has no 'name'")
    rule.warn_of_unknown_keys(data, _RULE_KEYS)
    order = data.get("sort-order")
    if not isinstance(order, int) or isinstance(order, bool) or not 1 <= order <= 999:
        rule.fail(f"the sort-order is {_quoted(order)}, and has to be a number from 1 to 999")
    match = data.get("match-request")
    if not isinstance(match, dict):
        rule.fail("it has no 'match-request'")
    rule.warn_of_unknown_keys(match, _MATCH_KEYS)
    matcher = _matcher(rule, match)
    groups = matcher.regex.groups if isinstance(matcher, PathRegex) else 0
    for_anybody = data.get("allow-unauthenticated", False)
    if not isinstance(for_anybody, bool):
        rule.fail(f"allow-unauthenticated is {_quoted(for_anybody)}, and has to be true or false")
    if for_anybody == ("allow" in data or "deny" in data):
        rule.fail(
            "allow-unauthenticated is combined with allow or deny"
            if for_anybody
            else "it has no 'allow', 'deny' or 'allow-unauthenticated'"
        )
    entries = [entry for key in ("deny", "allow") for entry in _entries(rule, key, groups, names)]
    url_rule = UrlRule(
        name,
        matcher,
        tuple(entries),
        authenticated=False,
        methods=_methods(rule, match),
        query=_query(rule, match),
        for_anybody=for_anybody,
    )
    return order, url_rule


def _matcher(rule: _RuleSource, match: Mapping[str, Any]) -> Matcher:
    path, kind = match.get("path"), match.get("type")
    if not isinstance(path, str):
        rule.fail(f"the path is {_quoted(path)}, and has to be a text")
    if kind not in ("path", "regex"):
        rule.fail(f"the type is {_quoted(kind)}, and has to be 'path' or 'regex'")
    if kind == "path":
        return Prefix(path)
    with rule.in_errors():
        return PathRegex(ruby_regex(path, Location(rule.file)))


def _methods(rule: _RuleSource, match: Mapping[str, Any]) -> frozenset[str]:
    value = match.get("method", "any")
    methods = [method.lower() if isinstance(method, str) else method for method in _as_list(value)]
    if methods == ["any"] and "method" not in match:
        return frozenset()
    for method in methods:
        if method not in METHODS:
            rule.fail(f"the method is {_quoted(method)}, and has to be one or more of {', '.join(METHODS)}")
    return frozenset(methods)


def _query(rule: _RuleSource, match: Mapping[str, Any]) -> tuple[tuple[str, frozenset[str]], ...]:
    parameters = match.get("query-params", {})
    if not isinstance(parameters, dict):
        rule.fail("query-params is not a map")
    for name, values in parameters.items():
        if not all(isinstance(value, str) for value in _as_list(values)):
            rule.fail(f"the query-param {quoted_for_log(name)} is {_quoted(values)}, and has to be a text or a list of texts")
    return tuple((name, frozenset(_as_list(values))) for name, values in parameters.items())


def _entries(rule: _RuleSource, key: str, groups: int, names: OidNames) -> list[AclEntry]:
    """Return the entries of `allow` or `deny`."""
    entries: list[AclEntry] = []
    for item in _as_list(rule.data.get(key, [])):
        if isinstance(item, str):
            entries += _name_entries(rule, item, key == "allow", groups)
            continue
        kinds = [kind for kind in ("certname", "extensions", "rbac") if isinstance(item, dict) and item.get(kind)]
        match kinds:
            case ["rbac"]:
                rule.fail(f"the '{key}' asks for rbac, which only Puppet Enterprise has")
            case ["certname"] if isinstance(item["certname"], str):
                entries += _name_entries(rule, item["certname"], key == "allow", groups)
            case ["extensions"] if isinstance(item["extensions"], dict):
                entries.append(_extensions_entry(rule, item["extensions"], key == "allow", names))
            case _:
                rule.fail(f"the '{key}' has {_quoted(item)}, and takes a name or a map with either certname or extensions")
    return entries


def _name_entries(rule: _RuleSource, text: str, allows: bool, groups: int) -> list[AclEntry]:
    for reference in _BACK_REFERENCE.findall(text):
        if not 1 <= int(reference) <= groups:
            rule.fail(f"{quoted_for_log(text)} means a group of the path that there is not")
    if text == "*":
        return [AclEntry(allows, "all", text)]
    with rule.in_errors():
        entry = name_entry(text, allows, Location(rule.file))
    # Here `*.x` is x as well.
    return [entry, AclEntry(allows, "exact", text[2:])] if entry.kind == "domain" else [entry]


def _extensions_entry(rule: _RuleSource, data: Mapping[str, Any], allows: bool, names: OidNames) -> AclEntry:
    requirements: list[tuple[str, frozenset[str]]] = []
    for key, values in data.items():
        with rule.in_errors():
            name = key if key == ALT_NAMES else names.name_of(names.oid_of(key))
        if name == ALT_NAMES and isinstance(values, dict):
            for kind in values:
                if kind not in _ALT_NAMES:
                    rule.fail(f"{ALT_NAMES} knows {', '.join(_ALT_NAMES)}, and not {quoted_for_log(kind)}")
            values = [f"{_ALT_NAMES[kind]}:{value}" for kind, alt_names in values.items() for value in _as_list(alt_names)]
        if isinstance(values, dict) or not all(isinstance(value, str) for value in _as_list(values)):
            rule.fail(f"the extension {quoted_for_log(key)} is {_quoted(values)}, and has to be a text or a list of texts")
        requirements.append((name, frozenset(_as_list(values))))
    return AclEntry(allows, "extensions", ", ".join(name for name, _ in requirements), extensions=tuple(requirements))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _quoted(value: object) -> str:
    return "missing" if value is None else quoted_for_log(value if isinstance(value, str) else json.dumps(value))
