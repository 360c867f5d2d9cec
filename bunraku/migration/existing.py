"""An installed Puppet server: where its configuration, code, data and CA are."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.data import hocon
from shared.errors import BadData, ConfigError, NotFound
from shared.filesystem.files import read_regular
from shared.process.daemon import PidFile
from shared.settings import MasterSettings, load
from shared.settings.conf import Conf, ConfEntry, read

MAX_CONF = 4 * 2**20
"""Bytes of a file in conf.d."""
CONNECT = 2.0
"""Seconds for a connection to the server's port."""
_REFUSED = re.compile(r"Could not set (\w+) to .*: that is not supported here", re.DOTALL)
_FOLDERS = {"conf": "confdir", "code": "codedir", "var": "vardir"}


@dataclass(frozen=True, slots=True)
class PackageLayout:
    """
    The folders of one kind of package.

    Attributes:
        server: of puppetserver's own configuration.
        rundir: of puppetserver's pid file.
        ruby: the program that runs this Puppet's code.
        places: settings that differ from ours unless puppet.conf names them.
    """

    confdir: str
    server: str
    rundir: str
    ruby: str
    places: Mapping[str, str]


LAYOUTS = (
    PackageLayout(
        "/etc/puppetlabs/puppet",
        "/etc/puppetlabs/puppetserver",
        "/var/run/puppetlabs/puppetserver",
        "/opt/puppetlabs/puppet/bin/ruby",
        {"codedir": "/etc/puppetlabs/code", "vardir": "/opt/puppetlabs/server/data/puppetserver", "ssldir": "$confdir/ssl"},
    ),
    PackageLayout(
        "/etc/puppet",
        "/etc/puppet/puppetserver",
        "/run/puppetserver",
        "/usr/bin/ruby",
        {"codedir": "$confdir/code", "vardir": "/var/lib/puppetserver", "ssldir": "/var/lib/puppet/ssl"},
    ),
)


@dataclass(frozen=True, slots=True)
class ExistingServer:
    """
    A Puppet server as its files describe it.

    Attributes:
        conf: its puppet.conf, without the settings that this master refuses, which are in `refused` with the reason.
        settings: its settings as this master reads them; the paths are the server's own.
        conf_d: the settings in conf.d by their path, as `jruby-puppet.max-active-instances`.
    """

    confdir: Path
    folder: Path
    ruby: str
    rundir: Path
    conf: Conf
    settings: MasterSettings
    conf_d: Mapping[str, Any]
    refused: Mapping[str, tuple[ConfEntry, str]] = field(default_factory=dict)

    @classmethod
    def at(cls, confdir: Path) -> ExistingServer:
        """
        Return the server whose puppet.conf, or puppetserver's conf.d, is in a folder or below it.

        Raises:
            NotFound: there is neither. ConfigError: a file cannot be read.
        """
        confdir = confdir.absolute()
        beside, below = confdir.parent / "puppetserver", confdir / "puppetserver"
        folder = beside if (beside / "conf.d").is_dir() else below
        if not (confdir / "puppet.conf").is_file() and not (below / "conf.d").is_dir():
            raise NotFound(
                f"There is no Puppet server in {confdir}: neither puppet.conf nor puppetserver's conf.d",
                hint=f"Name the folder of its puppet.conf with --from, for example {LAYOUTS[0].confdir}.",
            )
        layout = LAYOUTS[0] if folder == beside else LAYOUTS[1]
        conf_d = dict(_conf_d(folder / "conf.d"))
        flags = {"confdir": str(confdir)}
        for name, setting in _FOLDERS.items():
            value = conf_d.get(f"jruby-puppet.server-{name}-dir", conf_d.get(f"jruby-puppet.master-{name}-dir"))
            if isinstance(value, str) and name != "conf":
                flags[setting] = value
        conf, settings, refused = _settings(read(confdir / "puppet.conf"), flags, layout)
        rundir = conf_d.get("jruby-puppet.server-run-dir", conf_d.get("jruby-puppet.master-run-dir", layout.rundir))
        return cls(confdir, folder, layout.ruby, Path(str(rundir)), conf, _with_cadir(settings, folder), conf_d, refused)

    @classmethod
    def found(cls) -> ExistingServer:
        """Return the server of this host's packages; NotFound, ConfigError."""
        for layout in LAYOUTS:
            if Path(layout.server, "conf.d").is_dir() or Path(layout.confdir, "puppet.conf").is_file():
                return cls.at(Path(layout.confdir))
        places = " or ".join(layout.confdir for layout in LAYOUTS)
        raise NotFound(f"There is no Puppet server in {places}", hint="Name the folder of its puppet.conf with --from.")

    @property
    def running(self) -> str:
        """Return what shows that the server runs: its process, or that its port is in use; '' when it does not. Blocks, briefly."""
        pid = PidFile(self.rundir / "puppetserver.pid").running()
        if pid is not None:
            return f"process {pid}"
        host = str(self.conf_d.get("webserver.ssl-host", "0.0.0.0"))  # noqa: S104  # as the file has it
        if host in ("0.0.0.0", "::"):  # noqa: S104
            host = "127.0.0.1"
        try:
            socket.create_connection((host, self.port), CONNECT).close()
        except OSError:
            return ""
        return f"something listens on {host} port {self.port}"

    @property
    def port(self) -> int:
        """Return the port of the server's web server."""
        port = self.conf_d.get("webserver.ssl-port", self.settings.masterport)
        return port if isinstance(port, int) else self.settings.masterport

    @property
    def is_ca(self) -> bool:
        """Return whether the server is the CA: its certificate is there, and services.d does not disable it."""
        disabled = "certificate-authority-disabled-service"
        files = (self.folder / "services.d").glob("*.cfg")
        lines = (line.strip() for path in files for line in path.read_text("utf-8", "replace").splitlines())
        return (
            self.settings.ca
            and (self.settings.cadir / "ca_crt.pem").exists()
            and not any(disabled in line for line in lines if line[:1] != "#")
        )


def _settings(conf: Conf, flags: Mapping[str, str], layout: PackageLayout) -> tuple[Conf, MasterSettings, dict[str, tuple[ConfEntry, str]]]:
    """Return puppet.conf without the settings that are refused here, the settings, and the refused ones."""
    refused: dict[str, tuple[ConfEntry, str]] = {}
    while True:
        try:
            settings = load(MasterSettings, section="master", flags=flags, application=layout.places, conf=conf)
        except ConfigError as err:
            match = _REFUSED.match(err.message)
            entry = next((each[match[1]] for each in conf.sections.values() if match[1] in each), None) if match else None
            if match is None or entry is None:
                raise
            refused[match[1]] = entry, err.hint
            sections = {name: {key: each for key, each in entries.items() if key != match[1]} for name, entries in conf.sections.items()}
            conf = Conf(conf.path, sections)
        else:
            return conf, settings, refused


def _with_cadir(settings: MasterSettings, folder: Path) -> MasterSettings:
    """Return the settings with the CA's folder: puppetserver 7 and later keep it beside their own configuration."""
    own = folder / "ca"
    if settings.source_of("cadir") is None and not (settings.cadir / "ca_crt.pem").exists() and (own / "ca_crt.pem").exists():
        return settings.model_copy(update={"cadir": own})
    return settings


def _conf_d(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the settings of all files by their path; lists and what is below `authorization.rules` are values."""
    for path in sorted(folder.glob("*.conf")):
        try:
            tree = hocon.loads(read_regular(path, MAX_CONF))
        except BadData as err:
            raise ConfigError(f"{path}: {err.message}", hint=err.hint) from err
        except OSError as err:
            raise ConfigError(f"Could not read {path}: {err.strerror}") from err
        yield from _leaves((), tree)


def _leaves(path: tuple[str, ...], value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield ".".join(path), value
        return
    for name, each in value.items():
        yield from _leaves((*path, str(name)), each)
