"""What a master asks its compiling processes: catalogs, and listings of environments."""

from __future__ import annotations

from typing import Any

from shared.data import plainjson
from shared.wire.deflated import DeflatedText

from ..observability.catalog_origins import CatalogOrigins
from .compiled_catalog import CompiledCatalog
from .jobs import CompileJob, CompileLogEntry, DefinitionsQuery, message_of
from .process_pool import ProcessPool, WorkerAnswer


def _catalog_of(answer: WorkerAnswer) -> CompiledCatalog:
    """Return the catalog in an answer: its head, the compressed rest, and what a PuppetDB gets."""
    head, rest, size, checksum = answer.message["text"]
    text = DeflatedText(answer.body[:head], answer.body[head : head + rest], size, checksum)
    return CompiledCatalog(text, answer.body[head + rest :], answer.message["code_id"], answer.message["rich"])


class CompilePool:
    """
    Catalogs and listings from the processes of a pool.

    Attributes:
        origins: Where each catalog came from.
    """

    def __init__(self, processes: ProcessPool) -> None:
        self.processes = processes
        self.origins = CatalogOrigins()

    async def __call__(self, job: CompileJob, log_entries: list[CompileLogEntry] | None = None) -> CompiledCatalog:
        """
        Return the catalog; `log_entries` gets the log of its compilation.

        Raises:
            CompileError and others: a located error. Unavailable: too many catalogs are pending. PuppetError: the process died.
        """
        question = {"ask": "catalog", **message_of(job)}
        answer = await self.processes.ask(question, f"The catalog of {job.certname}", log_entries)
        self.origins.note(answer.message["origin"], [(place, text) for place, text in answer.message["reasons"]])
        return _catalog_of(answer)

    async def definitions(self, query: DefinitionsQuery) -> list[dict[str, Any]]:
        """
        Return the classes, defines and nodes of an environment for a query, as plain data.

        Raises:
            BadRequest: an invalid name, pattern or kind. NotFound: no such environment. And as for a catalog.
        """
        question = {"ask": "resource_types", **message_of(query)}
        answer = await self.processes.ask(question, f"The listing of {query.environment}'s resource types")
        definitions: list[dict[str, Any]] = plainjson.loads(answer.body)
        return definitions

    async def listing(self, what: str, environment: str = "", module: str = "", name: str = "") -> bytes:
        """
        Return a listing of an environment (see `listings`), '' for all of them, or of something in one of its modules, as JSON.

        Raises:
            NotFound: no such environment, or nothing of that name. And as for a catalog.
        """
        where = f"environment {environment}" if environment else "all environments"
        question = {"ask": "listing", "of": what, "environment": environment, "module": module, "name": name}
        return (await self.processes.ask(question, f"What is asked of the {what} of {where}")).body
