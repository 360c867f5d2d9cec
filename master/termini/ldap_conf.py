"""The LDAP servers that this machine trusts: ldap.conf and its companions, as OpenLDAP's own clients read them. Source: ldap.conf(5)."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared import webtrust
from shared.errors import ConfigError

log = logging.getLogger("puppet")

SYSTEM = (Path("/etc/ldap/ldap.conf"), Path("/etc/openldap/ldap.conf"))  # the paths of Debian, and of Red Hat and others
CHECKED, UNCHECKED = ("demand", "hard", "try"), ("never", "allow")
HINT = (
    "Set TLS_CACERT in ldap.conf to the certificate of its CA, and ldapserver to a name in its certificate. "
    "TLS_REQCERT allow there turns verification off."
)


@dataclass(frozen=True, slots=True)
class LdapTrust:
    """
    The trusted certificates of LDAP servers; without `authorities` and `folder`, those that the system trusts.

    Attributes:
        demanded: True: certificates are checked.
        source: The place of this configuration.
    """

    authorities: Path | None = None
    folder: Path | None = None
    demanded: bool = True
    source: str = ""

    @classmethod
    def read(cls, environ: Mapping[str, str], system: Sequence[Path] = SYSTEM) -> LdapTrust:
        """Read the files, and above them the environment variables. Blocks."""
        options = {option: (value, source) for option, value, source in _options(environ, system)}

        def path(option: str) -> Path | None:
            value, _ = options.get(option, ("", ""))
            return Path(value) if value else None

        level, source = options.get("TLS_REQCERT", ("demand", ""))
        if level.lower() not in (*CHECKED, *UNCHECKED):
            log.warning("TLS_REQCERT %s of %s is not known; certificates of LDAP servers are demanded", level, source)
        return cls(path("TLS_CACERT"), path("TLS_CACERTDIR"), level.lower() not in UNCHECKED, source)

    def context(self) -> ssl.SSLContext:
        """Return a TLS context for LDAP servers; raise ConfigError when the authorities cannot be used. Blocks."""
        named = self.authorities is not None or self.folder is not None
        context = webtrust.context(authority=None, system=self.demanded and not named)
        if not self.demanded:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif named:
            try:
                context.load_verify_locations(self.authorities, self.folder)
            except OSError as err:  # errors of TLS about a file are OSErrors, too
                places = " and ".join(str(each) for each in (self.authorities, self.folder) if each)
                raise ConfigError(f"Could not use {places}, which ldap.conf names for the CAs of LDAP servers: {err}", hint=HINT) from err
        return context


def _options(environ: Mapping[str, str], system: Sequence[Path]) -> Iterator[tuple[str, str, str]]:
    """Yield (option, value, place), the most important last. Files in the current folder do not count, because it may be another user's."""
    if "LDAPNOINIT" in environ:
        return
    for file in _files(environ, system):
        try:
            text = file.read_text("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as err:
            log.warning("Could not read %s, which may name the CAs of LDAP servers: %s", file, err.strerror)
            continue
        for line in text.splitlines():
            words = line.split(None, 1)
            if len(words) == 2 and not line.startswith("#"):
                yield words[0].upper(), words[1].strip(), str(file)
    for name, value in environ.items():
        if name.startswith("LDAPTLS_"):
            yield name.removeprefix("LDAP"), value, f"the environment's {name}"


def _files(environ: Mapping[str, str], system: Sequence[Path]) -> list[Path]:
    home, own_file = environ.get("HOME"), Path(environ.get("LDAPRC", "")).name
    files = [*system]
    if home:
        files += [Path(home) / "ldaprc", Path(home) / ".ldaprc"]
    if "LDAPCONF" in environ:
        files.append(Path(environ["LDAPCONF"]))
    if home and own_file:
        files += [Path(home) / own_file, Path(home) / f".{own_file}"]
    return files
