"""
auth.conf: parsed into rules, joined with the defaults, read again when it changes.

This module parses the form of Puppet 3.8. The form of puppetserver, which `auth_hocon` parses, spells out everything and gets no
defaults.

A site's file holds for both schemes. Its paths are `/<singular indirection>/<key>`; in scheme B the URL's own path is tried as well, so
that a file written for Puppet 4 works too. A last `path /` that allows nobody, as in the file that Puppet 3.8 ships, is placed after the
defaults of scheme B, which would otherwise never be reached. Source: protocol reference 4.1 to 4.4.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import NoReturn

from certs.oids import OidNames
from shared.errors import ConfigError, Location
from shared.filesystem.identity import digest_of
from shared.names import quoted_for_log

from . import auth_hocon
from .patterns import name_entry, network_entry, ruby_regex
from .rules import AclEntry, Matcher, PathRegex, Prefix, Rule

log = logging.getLogger("puppet.auth")

_PATH = re.compile(r"path\s+((?:~\s+)?[^ ]+)\s*")
_DIRECTIVE = re.compile(r"\s*(allow_ip|allow|deny_ip|deny|method|environment|authenticated|auth)\s+(.+?)\s*(?:\s#.*)?")
_VERBS = ("find", "search", "save", "destroy")
_YES, _NO = ("yes", "on", "true"), ("no", "off", "false", "all", "any")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of each URL scheme."""

    legacy: tuple[Rule, ...]
    modern: tuple[Rule, ...]

    def after(self, own: tuple[Rule, ...]) -> Rules:
        """Return a file's rules followed by these, the defaults: in scheme A by those whose path the file does not name."""
        named = {rule.name for rule in own}
        missing = tuple(rule for rule in self.legacy if rule.name not in named)
        for rule in missing:
            log.info("Inserting default '%s' (auth %s) ACL", rule.name, "true" if rule.authenticated else "any")
        before = own[:-1] if own and _denies_the_rest(own[-1]) else own
        return Rules((*own, *missing), (*before, *self.modern))


def _denies_the_rest(rule: Rule) -> bool:
    nobody = not any(entry.allows for entry in rule.entries)
    return rule.name == "/" and nobody and not (rule.verbs or rule.environments or rule.authenticated)


@dataclass(slots=True)
class _Stanza:
    name: str
    line: int
    entries: list[AclEntry] = field(default_factory=list)
    verbs: list[str] = field(default_factory=list)
    environments: list[str] = field(default_factory=list)
    authenticated: bool = True


def parse(text: str, file: str) -> tuple[Rule, ...]:
    """
    Return the rules of a file, in its order, without defaults.

    Raises:
        ConfigError: With file and line.
    """
    stanzas: list[_Stanza] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if path := _PATH.fullmatch(line):
            stanzas.append(_Stanza(re.sub(r"^~\s+", "~ ", path[1]), number))
        elif directive := _DIRECTIVE.fullmatch(line):
            if not stanzas:
                _fail(f"Missing or invalid 'path' before right directive at line {number} of {file}", Location(file, number))
            _add_directive(stanzas[-1], directive[1], directive[2], Location(file, number))
        else:
            _fail(f"Invalid line {number}: {quoted_for_log(line)[1:-1]}", Location(file, number))
    return tuple(_rule(stanza, file) for stanza in stanzas)


def _fail(message: str, where: Location) -> NoReturn:
    raise ConfigError(message, where=where)


def _rule(stanza: _Stanza, file: str) -> Rule:
    matcher: Matcher
    if stanza.name.startswith("~ "):
        matcher = PathRegex(ruby_regex(stanza.name[2:], Location(file, stanza.line)))
    else:
        if not stanza.name.startswith("/"):
            _fail(f"The path {quoted_for_log(stanza.name)} does not begin with '/'", Location(file, stanza.line))
        matcher = Prefix(stanza.name)
    return Rule(
        stanza.name,
        matcher,
        tuple(stanza.entries),
        frozenset(stanza.verbs),
        frozenset(stanza.environments),
        stanza.authenticated,
        stanza.line,
    )


def _add_directive(stanza: _Stanza, directive: str, value: str, where: Location) -> None:
    values = [part for part in re.split(r"\s*,\s*", value.strip()) if part]
    match directive:
        case "auth" | "authenticated":
            if value not in _YES + _NO:
                _fail(f"'{quoted_for_log(value)[1:-1]}' incorrect authentication value", where)
            stanza.authenticated = value in _YES
        case "method":
            for verb in values:
                if verb not in _VERBS:
                    _fail(f"'{quoted_for_log(verb)[1:-1]}' is not an allowed value for method directive: {', '.join(_VERBS)}", where)
                if verb in stanza.verbs:
                    _fail(f"'{verb}' is already in the '{stanza.name}' ACL", where)
                stanza.verbs.append(verb)
        case "environment":
            for environment in values:
                if environment in stanza.environments:
                    _fail(f"'{quoted_for_log(environment)[1:-1]}' is already in the '{stanza.name}' ACL", where)
                stanza.environments.append(environment)
        case "allow" | "deny":
            stanza.entries += [name_entry(part, directive == "allow", where) for part in values]
        case _:
            stanza.entries += [network_entry(part, directive == "allow_ip", where) for part in values]


def parse_rules(text: str, file: str, names: OidNames, defaults: Rules) -> Rules:
    """Return the rules of a file of either form, with `defaults` where they belong; raise ConfigError, which names the line or the rule."""
    if auth_hocon.is_hocon(text):
        rules = auth_hocon.parse(text, file, names)
        return Rules(rules, rules)
    return defaults.after(parse(text, file))


@dataclass(eq=False, repr=False)
class AuthFile:
    """The rules of a file, checked for changes at most each `filetimeout` seconds; if the new file does not parse, the old rules stay."""

    path: Path | None
    defaults: Rules
    _: KW_ONLY
    names: OidNames = field(default_factory=OidNames)
    filetimeout: float = 15.0
    clock: Callable[[], float] = time.monotonic
    _rules: Rules = field(init=False)
    _loaded_digest: bytes | None = field(default=None, init=False)
    _next_check: float = field(default=0.0, init=False)

    async def start(self) -> None:
        """Read the file for the first time; raise ConfigError when it does not parse. Without a file the defaults hold."""
        await self.reload()

    async def reload(self) -> None:
        """Read the file now; raise ConfigError when it does not parse, and keep the old rules."""
        self._rules, self._loaded_digest = await asyncio.to_thread(self._read)
        self._next_check = self.clock() + self.filetimeout

    async def rules(self) -> Rules:
        """Return the rules in force."""
        if self.path is not None and self.clock() >= self._next_check:
            self._next_check = self.clock() + self.filetimeout
            try:
                if await asyncio.to_thread(digest_of, self.path) != self._loaded_digest:
                    self._rules, self._loaded_digest = await asyncio.to_thread(self._read)
                    log.info("Reloaded %s", self.path)
            except ConfigError as err:
                self._loaded_digest = await asyncio.to_thread(digest_of, self.path)
                log.error("The rules of %s stay as they were: %s", self.path, err)
        return self._rules

    def _read(self) -> tuple[Rules, bytes | None]:
        if self.path is None:
            return self.defaults, None
        digest = digest_of(self.path)
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            return self.defaults, None
        except (OSError, UnicodeDecodeError) as err:
            raise ConfigError(f"Could not read {self.path}: {err}") from err
        return parse_rules(text, str(self.path), self.names, self.defaults), digest
