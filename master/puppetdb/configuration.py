"""`puppetdb.conf`: where the servers of a PuppetDB are, and how they are used."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shared.errors import ConfigError, Location
from shared.suggestions import did_you_mean

log = logging.getLogger("puppet.puppetdb")

DEFAULT_URL = "https://puppetdb:8081"

_SECTION = re.compile(r"\[(\w+)\s*\]", re.ASCII)
_RETIRED = re.compile(r"\s*(?:server|port)\s*=.*", re.ASCII)
_SETTING = re.compile(r"\s*(\w+)\s*=\s*(.*?)\s*", re.ASCII)
_NOTHING = re.compile(r"\s*(?:[#;].*)?")


@dataclass(frozen=True, slots=True)
class PuppetDbConfiguration:
    """
    The settings of `[main]` in puppetdb.conf.

    Attributes:
        server_urls: The servers, in the order in which they are tried; without a slash at the end.
        server_url_timeout: Seconds for one request to one server.
        soft_write_failure: A command that no server takes is logged, and what it belongs to goes on.
        include_unchanged_resources: Reports have all resources, not only those with events.
        min_successful_submissions: So many servers have to take a command that all are sent.
        command_broadcast: All servers are sent each command, not only the first that takes it.
        submit_only_server_urls: Servers that get commands and no queries.
        sticky_read_failover: Queries begin with the server that answered last.
        verify_client_certificate: Show the master's own certificate.
    """

    server_urls: tuple[str, ...] = (DEFAULT_URL,)
    server_url_timeout: float = 30
    soft_write_failure: bool = False
    include_unchanged_resources: bool = False
    min_successful_submissions: int = 1
    command_broadcast: bool = False
    submit_only_server_urls: tuple[str, ...] = ()
    sticky_read_failover: bool = False
    verify_client_certificate: bool = True

    @property
    def longest_request(self) -> float:
        """The seconds that a request may take when every server but the last is silent."""
        return self.server_url_timeout * (len(self.server_urls) + len(self.submit_only_server_urls))


def read_puppetdb_conf(path: Path) -> PuppetDbConfiguration:
    """
    Return the configuration in a file; the defaults when there is none.

    Raises:
        ConfigError: A line cannot be parsed, a value is invalid, or settings contradict each other.
    """
    try:
        return _configuration(_sections(path).get("main", {}))
    except ConfigError as err:
        err.where = err.where or Location(str(path))
        raise


def unknown_puppetdb_settings(path: Path) -> list[str]:
    """Return one sentence for each setting of a file that does not count, with a hint where its name is close to one that does."""
    known = [field.name for field in fields(PuppetDbConfiguration)]
    sentences = []
    for section, texts in _sections(path).items():
        for name in texts:
            if section != "main" and name in known:
                sentences.append(f"{name} in [{section}] of {path} does not count: only [main] does")
            elif name not in known:
                sentences.append(f"Unknown setting {name} in [{section}] of {path}. {did_you_mean(name, known)}".rstrip())
    return sentences


def _unusable(problem: str) -> ConfigError:
    return ConfigError(f"Could not configure PuppetDB terminuses: {problem}", hint="docs/puppetdb.md explains puppetdb.conf.")


def _sections(path: Path) -> dict[str, dict[str, str]]:
    """Return the settings of a file by section; {} when there is no file."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as err:
        raise _unusable(f"{path} is not UTF-8") from err
    except OSError as err:
        raise _unusable(f"{path} cannot be read: {err.strerror}") from err
    sections: dict[str, dict[str, str]] = {}
    current: dict[str, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if match := _SECTION.fullmatch(line):
            current = sections.setdefault(match[1], {})
        elif _RETIRED.fullmatch(line):
            log.warning("Setting '%s' is retired: use 'server_urls' instead. Defaulting to 'server_urls=%s'.", line, DEFAULT_URL)
        elif match := _SETTING.fullmatch(line):
            if current is None:
                raise _unusable(f"Setting '{line}' is illegal outside of section in PuppetDB config {path}:{number}")
            current[match[1]] = match[2]
        elif not _NOTHING.fullmatch(line):
            raise _unusable(f"Unparseable line '{line}' in PuppetDB config {path}:{number}")
    return sections


def _configuration(texts: Mapping[str, str]) -> PuppetDbConfiguration:
    """Return the configuration that texts by setting describe; names of other settings do not count."""
    values: dict[str, Any] = {}
    for field in fields(PuppetDbConfiguration):
        text = texts.get(field.name)
        if text is not None and (text or field.default != ()):
            values[field.name] = _READERS[type(field.default)](field.name, text)
    configuration = PuppetDbConfiguration(**values)
    least, count = configuration.min_successful_submissions, len(configuration.server_urls)
    if configuration.soft_write_failure and least > 1:
        raise _unusable("soft_write_failure cannot be enabled when min_successful_submissions is greater than 1")
    both = [url for url in configuration.server_urls if url in configuration.submit_only_server_urls]
    if both:
        listed = ", ".join(f'"{url}"' for url in both)
        raise _unusable(f"Server URLs must be in either server_urls or submit_only_server_urls, not both. ([{listed}] are in both)")
    if least > 1 and not configuration.command_broadcast:
        raise _unusable("command_broadcast must be set to true to use min_successful_submissions")
    if least > count:
        raise _unusable(f"min_successful_submissions ({least}) must be less than or equal to the number of server_urls ({count})")
    return configuration


def _urls(_: str, text: str) -> tuple[str, ...]:
    return tuple(_url(url.strip()) for url in text.split(","))


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as err:
        raise _unusable(f"Error parsing URL '{text}' in PuppetDB 'server_urls', error message was '{err}'") from err
    if parts.scheme != "https":
        raise _unusable(f"PuppetDB 'server_urls' must be https, found '{text}'")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise _unusable(f"PuppetDB 'server_urls' cannot contain URL paths, found '{text}'")
    if not parts.hostname or parts.username is not None:
        raise _unusable(f"Error parsing URL '{text}' in PuppetDB 'server_urls', error message was 'it has to be https://HOST:PORT'")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"https://{host}" if port is None else f"https://{host}:{port}"


def _boolean(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise _unusable(f'invalid value for Boolean: "{text}" ({name})')
    return text == "true"


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:10]) <= 1_000_000:
        raise _unusable(f'invalid value for {name}: "{text}"')
    return int(text)


_READERS: Mapping[type, Callable[[str, str], Any]] = {bool: _boolean, int: _number, tuple: _urls}
"""How the text of a setting is read, by the type of its default."""
