"""The options of commands that ask a store or a PuppetDB; `puppet db` reads them also where it becomes the store, with little loaded."""

from __future__ import annotations

from dataclasses import dataclass

from shared.process.cli import maybe_text, texts

from ..faces import FaceOptions

SERVER_OPTIONS_HELP = """  --url URL      the server: https://HOST:8081, http://localhost:8080 or unix:/SOCKET; of several, also separated
                 by commas, the first that runs
  --cacert FILE  the CA's certificates, for https; --cert FILE, --key FILE: a certificate to show, and its key

Without --url the servers are `server_urls` of ~/.puppetlabs/client-tools/puppetdb.conf, of /etc/puppetlabs/client-tools/puppetdb.conf or
of puppetdb.conf in confdir; without any of these files it is the store of this host, where one runs. Without the other options the
certificates are this host's."""


@dataclass(frozen=True, slots=True)
class StoreFaceOptions(FaceOptions):
    """The command line of a face that asks a store or a PuppetDB."""

    url: tuple[str, ...] = texts("--urls")
    cacert: str | None = maybe_text()
    cert: str | None = maybe_text()
    key: str | None = maybe_text()
