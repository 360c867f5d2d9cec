"""The servers that a command queries: those of its options, of the client tools' configuration, or of the master's puppetdb.conf."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from httpd.tls.trust import TrustFiles
from master.puppetdb.configuration import read_puppetdb_conf
from shared.data import plainjson
from shared.errors import BadData, ConfigError
from shared.settings import AgentSettings, MasterSettings, home_directory, load

from .access import StoreServers, checked_url
from .options import StoreFaceOptions

CLIENT_TOOLS = (Path(".puppetlabs/client-tools/puppetdb.conf"), Path("/etc/puppetlabs/client-tools/puppetdb.conf"))
"""The paths of the configuration of Puppet's client tools, in JSON; the first that exists counts."""


def servers_of(options: StoreFaceOptions, flags: Mapping[str, Any]) -> StoreServers:
    """
    Return the servers to ask, and the files for TLS. Blocks.

    `flags` are the settings of the command line.

    Raises:
        ConfigError: A URL or a configuration file is not as it should be.
    """
    settings = load(AgentSettings, section="agent", flags=flags)
    configured = _client_tools()
    urls = [url for text in options.url for url in text.split(",")] or _listed(configured.get("server_urls"))
    if not urls:
        urls = _master_servers(settings.confdir / "puppetdb.conf", flags)

    def path(option: str | None, name: str, default: Path) -> Path:
        text = option or configured.get(name)
        return Path(str(text)).expanduser() if text else default

    files = TrustFiles(
        certificate=path(options.cert, "cert", settings.hostcert),
        key=path(options.key, "key", settings.hostprivkey),
        authorities=path(options.cacert, "cacert", settings.localcacert),
        crl=settings.hostcrl,
    )
    return StoreServers([checked_url(url) for url in urls], files)


def _master_servers(configuration: Path, flags: Mapping[str, Any]) -> list[str]:
    """Return the servers that a master of this host uses: its own store, where it has one and no puppetdb.conf."""
    if not configuration.exists():
        socket = load(MasterSettings, section="master", flags=flags).store_socket
        if not os.access(socket, os.W_OK):
            raise ConfigError(
                f"There is no store at {socket} that this account may use, and neither puppetdb.conf nor --url names a server",
                hint="Run the command as root or as the master's account, start the master or 'puppet db', or name a server with --url.",
            )
        return [f"unix:{socket}"]
    return list(read_puppetdb_conf(configuration).server_urls)


def _client_tools() -> Mapping[str, Any]:
    """Return the configuration of the client tools; an empty one when there is none."""
    for candidate in CLIENT_TOOLS:
        path = home_directory() / candidate
        try:
            configuration = plainjson.loads(path.read_bytes())
        except FileNotFoundError:
            continue
        except OSError as err:
            raise ConfigError(f"Could not read {path}: {err.strerror}") from err
        except BadData as err:
            raise ConfigError(f"{path} is not JSON: {err}") from err
        section = configuration.get("puppetdb") if isinstance(configuration, dict) else None
        if not isinstance(section, dict):
            raise ConfigError(f"{path} has no object 'puppetdb'", hint='It looks like {"puppetdb": {"server_urls": "https://HOST:8081"}}.')
        return section
    return {}


def _listed(value: Any) -> list[str]:
    """Return URLs that are a list, or one text in which commas separate them."""
    return [str(url) for url in value] if isinstance(value, list) else str(value).split(",") if value else []
