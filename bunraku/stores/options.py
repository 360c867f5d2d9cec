"""The options of commands that ask a store or a PuppetDB; `puppet db` reads them also where it becomes the store, with little loaded."""

from __future__ import annotations

from dataclasses import dataclass

from shared.process.cli import maybe_text, texts

from ..faces import JsonFaceOptions

SERVERS = (
    "Without --url the servers are `server_urls` of ~/.puppetlabs/client-tools/puppetdb.conf, of "
    "/etc/puppetlabs/client-tools/puppetdb.conf or of puppetdb.conf in confdir; without any of these files it is the store of this host, "
    "where one runs. Without --cacert, --cert and --key the certificates are this host's."
)


@dataclass(frozen=True, slots=True)
class StoreFaceOptions(JsonFaceOptions):
    """The command line of a face that asks a store or a PuppetDB."""

    url: tuple[str, ...] = texts(
        "URL",
        "the server: https://HOST:8081, http://localhost:8080 or unix:/SOCKET; comma-separated, the first that answers",
        "--urls",
    )
    cacert: str | None = maybe_text("FILE", "the CA's certificates, for https")
    cert: str | None = maybe_text("FILE", "this client's certificate, for https")
    key: str | None = maybe_text("FILE", "its key")
