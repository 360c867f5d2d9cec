"""This node's own catalog: fetched from the master and stored, or applied without fetching it again."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable

from agent.cli import run_once, set_up_logs
from agent.process.agent import RunOptions
from agent.run.retrieval import Retrieval, RetrievedCatalog
from agent.run.steps import Steps
from agent.state.runlog import RunLog
from agent.state.statefiles import write_classes
from shared.errors import ConfigError
from shared.indirector import Request
from shared.models.catalog import Catalog
from shared.process.log import NOTICE
from shared.settings import AgentSettings

from ..peer import open_wiring
from .deferring import resolver

log = logging.getLogger("puppet.catalog")

SOURCES = ("rest", "json", "yaml", "compiler")  # `yaml` is what this cache was when it got its name in the documentation


def download(settings: AgentSettings) -> int:
    """Fetch the catalog and store it, for `apply` and for times when the master is unreachable."""
    set_up_logs(settings, foreground=True)
    asyncio.run(_downloaded(settings))
    return 0


async def _downloaded(settings: AgentSettings) -> None:
    async with open_wiring(settings, "puppet") as wiring:
        retrieval = Retrieval(wiring, Steps(), uuid=str(uuid.uuid4()), environment_fixed=True, configured_environment=settings.environment)
        catalog = (await retrieval.download()).catalog
        cache = wiring.catalog.cache
        if cache is None:
            raise ConfigError("There is no cache of catalogs", hint=f"See the cache of catalogs in {settings.route_file}.")
        await cache.save(Request(catalog.name, wiring.environment, body=catalog))
        await write_classes(settings.classfile, catalog.classes, RunLog())
    folder = settings.client_datadir / "catalog"
    log.log(NOTICE, "Saved catalog for %s to %s", catalog.name, folder / f"{catalog.name}.json")


def apply(settings: AgentSettings, source: str, compiled: Callable[[], Catalog]) -> int:
    """
    Apply the catalog that `source` has, in a run of its own that sends no report; the exit code is that of a run.

    Args:
        compiled: makes the catalog on this machine, for the source `compiler`.
    Raises:
        ConfigError: there is no such source. PuppetError: the catalog cannot be compiled.
    """
    if source not in SOURCES:
        raise ConfigError(f"There is no terminus {source} for catalog", hint=f"There are {', '.join(SOURCES)}.")
    catalog = compiled() if source == "compiler" else None

    async def retrieve(retrieval: Retrieval) -> RetrievedCatalog:
        if catalog is not None:
            return await retrieval.accept(catalog)
        return await (retrieval.download() if source == "rest" else retrieval.cached_catalog())

    set_up_logs(settings, foreground=True)
    settings = settings.model_copy(update={"onetime": True, "report": False})
    return run_once(settings, RunOptions(environment_given=True, deferring=resolver, catalog=retrieve))
