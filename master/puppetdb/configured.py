"""The PuppetDB that the settings and puppetdb.conf describe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from shared.errors import ConfigError
from shared.settings import MasterSettings

from ..trust import trust_files
from .client import PuppetDbClient
from .configuration import read_puppetdb_conf
from .own_store import OwnStoreClient
from .sessions import TlsSessions, UnixSessions

CONFIGURATION = "puppetdb.conf"
BACKEND = "puppetdb"


def puppetdb_client(
    settings: MasterSettings, *, keep_alive: bool = False, ready: Callable[[], Awaitable[None]] | None = None
) -> PuppetDbClient:
    """
    Return the client of the site's PuppetDB, or of the master's own store, which needs no puppetdb.conf.

    Args:
        keep_alive: For a program with one event loop, which closes the client.
        ready: Returns when the master's own store listens; ConnectionError when it does not.
    Raises:
        ConfigError: puppetdb.conf has to be corrected, or storeconfigs_backend names something else.
    """
    if settings.storeconfigs and settings.storeconfigs_backend != BACKEND:
        raise ConfigError(
            f"Could not set storeconfigs_backend to '{settings.storeconfigs_backend}': that is not supported here",
            hint="With storeconfigs it has to be puppetdb.",
        )
    if settings.runs_store:
        return OwnStoreClient(
            UnixSessions(settings.store_socket, keep_alive=keep_alive, connections=settings.puppetdb_connections, ready=ready),
            producer=settings.certname,
            max_answer=settings.puppetdb_answer,
            waiting=settings.store_undelivered_commands,
        )
    configuration = read_puppetdb_conf(settings.confdir / CONFIGURATION)
    sessions = TlsSessions(
        trust_files(settings),
        with_certificate=configuration.verify_client_certificate,
        keep_alive=keep_alive,
        connections=settings.puppetdb_connections,
    )
    return PuppetDbClient(configuration, sessions, producer=settings.certname, max_answer=settings.puppetdb_answer)
