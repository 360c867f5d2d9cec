"""
auth.conf of puppetserver: rules in HOCON about the URLs of scheme B. Source: protocol reference 4.4.

The first rule whose path, method and query fit decides, and with none the answer is no: the file that comes with puppetserver
spells out everything, so that no defaults of ours stand behind it. What 3.x peers ask is held against the URL that scheme B has
for the same thing.
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
from shared.data import hocon
from shared.errors import BadData, ConfigError, Location
from shared.indirector.core import Client
from shared.names import quoted_for_log
from shared.suggestions import nearest_name

from .patterns import name_entry, ruby_regex
from .rules import ALT_NAMES, AccessRequest, AclEntry, Matcher, PathRegex, Prefix, Rule

log = logging.getLogger("puppet.auth")

METHODS = ("get", "post", "put", "delete", "head")
_RULE_KEYS = ("name", "sort-order", "match-request", "allow", "deny", "allow-unauthenticated")
_MATCH_KEYS = ("path", "type", "method", "query-params")
_ALT_NAMES = {"dns-name": "DNS", "ip": "IP", "uri": "URI", "rfc822-name": "email"}  # and their labels in certificates
_BEGINS = re.compile(r"(?:\s|#[^\n]*\n|//[^\n]*\n)*(authorization\s*[:={.]|\"authorization\"|\{)")
_BACK_REFERENCE = re.compile(r"\$(\d+)")


def is_hocon(text: str) -> bool:
    """Whether a file is in puppetserver's form and not in 3.8's."""
    return _BEGINS.match(text) is not None


@dataclass(frozen=True, slots=True)
class UrlRule(Rule):
    """
    A rule about a URL, methods and parameters; `methods` empty: all. It decides about strangers too, and lets them in only when
    `anyone` is set. A deny that fits wins; names are the certificate's common name and its alternative ones.
    """

    methods: frozenset[str] = frozenset()
    query: tuple[tuple[str, frozenset[str]], ...] = ()
    anyone: bool = False

    def applies(self, question: AccessRequest) -> Sequence[str] | None:
        if self.methods and question.method not in self.methods:
            return None
        for name, wanted in self.query:
            given = question.query.get(name, ())
            if wanted.isdisjoint((given,) if isinstance(given, str) else given):
                return None
        return self.matcher.match(question.url)

    def decides(self, client: Client, captures: Sequence[str]) -> bool:
        if self.anyone:
            return True
        if not client.authenticated:
            return False
        names = [client.name, *(name.removeprefix("DNS:") for name in client.alt_names if name.startswith("DNS:"))]
        clients = [replace(client, name=name) for name in names]
        said = [entry.allows for entry in self.entries if any(entry.fits(each, captures) for each in clients)]
        return bool(said) and all(said)


def parse(text: str, file: str, names: OidNames) -> tuple[Rule, ...]:
    """
    The rules of a file in the order in which they are asked. `names` translates the OIDs of extensions.

    Raises:
        ConfigError: with the file, the rule's name, and what is wrong with it.
    """
    try:
        found = hocon.loads(text)
    except BadData as err:
        raise ConfigError(err.message, where=Location(file)) from err
    section = found.get("authorization") if isinstance(found, dict) else None
    if not isinstance(section, dict):
        raise ConfigError("There is no section 'authorization'", where=Location(file))
    if section.get("version") != 1:
        raise ConfigError(f"The version is {_described(section.get('version'))}, and only 1 is known", where=Location(file))
    if section.get("allow-header-cert-info"):
        log.warning("%s: allow-header-cert-info does nothing here: the settings allow_header_cert_info and proxy_addresses do", file)
    rules = section.get("rules")
    if not isinstance(rules, list):
        raise ConfigError("'rules' is not a list", where=Location(file))
    made = [_rule(rule, number, file, names) for number, rule in enumerate(rules, 1)]
    taken: set[str] = set()
    for _, each in made:
        if each.name in taken:
            raise ConfigError(f"Two rules are named {quoted_for_log(each.name)}", where=Location(file))
        taken.add(each.name)
    return tuple(rule for _, rule in sorted(made, key=lambda pair: (pair[0], pair[1].name)))


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule as it was written, and what its errors are about."""

    given: Mapping[str, Any]
    label: str
    file: str

    def fail(self, message: str, hint: str = "") -> NoReturn:
        raise ConfigError(f"The rule {self.label}: {message}", where=Location(self.file), hint=hint)

    @contextmanager
    def named(self) -> Iterator[None]:
        """An error inside says which rule it is about."""
        try:
            yield
        except ConfigError as err:
            self.fail(err.message, err.hint)

    def warn_of_others(self, section: Mapping[str, Any], known: Sequence[str]) -> None:
        """Say which keys nobody reads: a limit that is spelt wrong limits nothing."""
        for key in section:
            if key not in known:
                meant = nearest_name(key, known)
                hint = f"; did you mean '{meant}'?" if meant else ""
                log.warning("%s: the rule %s: the key %s means nothing%s", self.file, self.label, quoted_for_log(key), hint)


def _rule(given: object, number: int, file: str, names: OidNames) -> tuple[int, UrlRule]:
    """The rule and its sort-order."""
    if not isinstance(given, dict):
        raise ConfigError(f"The rule number {number} is not a map", where=Location(file))
    name = given.get("name")
    rule = _Rule(given, quoted_for_log(name) if isinstance(name, str) else f"number {number}", file)
    if not isinstance(name, str) or not name:
        rule.fail("it has no 'name'")
    rule.warn_of_others(given, _RULE_KEYS)
    order = given.get("sort-order")
    if not isinstance(order, int) or isinstance(order, bool) or not 1 <= order <= 999:
        rule.fail(f"the sort-order is {_described(order)}, and has to be a number from 1 to 999")
    match = given.get("match-request")
    if not isinstance(match, dict):
        rule.fail("it has no 'match-request'")
    rule.warn_of_others(match, _MATCH_KEYS)
    matcher = _matcher(rule, match)
    groups = matcher.regex.groups if isinstance(matcher, PathRegex) else 0
    anyone = given.get("allow-unauthenticated", False)
    if not isinstance(anyone, bool):
        rule.fail(f"allow-unauthenticated is {_described(anyone)}, and has to be true or false")
    if anyone == ("allow" in given or "deny" in given):
        rule.fail("allow-unauthenticated stands beside allow or deny" if anyone else "it has no 'allow', 'deny' or 'allow-unauthenticated'")
    entries = [entry for key in ("deny", "allow") for entry in _entries(rule, key, groups, names)]
    made = UrlRule(
        name, matcher, tuple(entries), authenticated=False, methods=_methods(rule, match), query=_query(rule, match), anyone=anyone
    )
    return order, made


def _matcher(rule: _Rule, match: Mapping[str, Any]) -> Matcher:
    path, kind = match.get("path"), match.get("type")
    if not isinstance(path, str):
        rule.fail(f"the path is {_described(path)}, and has to be a text")
    if kind not in ("path", "regex"):
        rule.fail(f"the type is {_described(kind)}, and has to be 'path' or 'regex'")
    if kind == "path":
        return Prefix(path)
    with rule.named():
        return PathRegex(ruby_regex(path, Location(rule.file)))


def _methods(rule: _Rule, match: Mapping[str, Any]) -> frozenset[str]:
    given = match.get("method", "any")
    methods = [each.lower() if isinstance(each, str) else each for each in _as_list(given)]
    if methods == ["any"] and "method" not in match:
        return frozenset()
    for method in methods:
        if method not in METHODS:
            rule.fail(f"the method is {_described(method)}, and has to be one or more of {', '.join(METHODS)}")
    return frozenset(methods)


def _query(rule: _Rule, match: Mapping[str, Any]) -> tuple[tuple[str, frozenset[str]], ...]:
    given = match.get("query-params", {})
    if not isinstance(given, dict):
        rule.fail("query-params is not a map")
    for name, values in given.items():
        if not all(isinstance(value, str) for value in _as_list(values)):
            rule.fail(f"the query-param {quoted_for_log(name)} is {_described(values)}, and has to be a text or a list of texts")
    return tuple((name, frozenset(_as_list(values))) for name, values in given.items())


def _entries(rule: _Rule, key: str, groups: int, names: OidNames) -> list[AclEntry]:
    """What stands under `allow` or `deny`."""
    found: list[AclEntry] = []
    for given in _as_list(rule.given.get(key, [])):
        if isinstance(given, str):
            found += _by_name(rule, given, key == "allow", groups)
            continue
        kinds = [kind for kind in ("certname", "extensions", "rbac") if isinstance(given, dict) and given.get(kind)]
        match kinds:
            case ["rbac"]:
                rule.fail(f"the '{key}' asks for rbac, which only Puppet Enterprise has")
            case ["certname"] if isinstance(given["certname"], str):
                found += _by_name(rule, given["certname"], key == "allow", groups)
            case ["extensions"] if isinstance(given["extensions"], dict):
                found.append(_by_extensions(rule, given["extensions"], key == "allow", names))
            case _:
                rule.fail(f"the '{key}' has {_described(given)}, and takes a name or a map with either certname or extensions")
    return found


def _by_name(rule: _Rule, text: str, allows: bool, groups: int) -> list[AclEntry]:
    for reference in _BACK_REFERENCE.findall(text):
        if not 1 <= int(reference) <= groups:
            rule.fail(f"{quoted_for_log(text)} means a group of the path that there is not")
    if text == "*":
        return [AclEntry(allows, "all", text)]
    with rule.named():
        made = name_entry(text, allows, Location(rule.file))
    # Here `*.x` is x as well.
    return [made, AclEntry(allows, "exact", text[2:])] if made.kind == "domain" else [made]


def _by_extensions(rule: _Rule, given: Mapping[str, Any], allows: bool, names: OidNames) -> AclEntry:
    found: list[tuple[str, frozenset[str]]] = []
    for written, values in given.items():
        with rule.named():
            name = written if written == ALT_NAMES else names.name_of(names.oid_of(written))
        if name == ALT_NAMES and isinstance(values, dict):
            for kind in values:
                if kind not in _ALT_NAMES:
                    rule.fail(f"{ALT_NAMES} knows {', '.join(_ALT_NAMES)}, and not {quoted_for_log(kind)}")
            values = [f"{_ALT_NAMES[kind]}:{value}" for kind, each in values.items() for value in _as_list(each)]
        if isinstance(values, dict) or not all(isinstance(value, str) for value in _as_list(values)):
            rule.fail(f"the extension {quoted_for_log(written)} is {_described(values)}, and has to be a text or a list of texts")
        found.append((name, frozenset(_as_list(values))))
    return AclEntry(allows, "extensions", ", ".join(name for name, _ in found), extensions=tuple(found))


def _as_list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _described(given: object) -> str:
    return "missing" if given is None else quoted_for_log(given if isinstance(given, str) else json.dumps(given))
