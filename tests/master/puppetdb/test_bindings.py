"""Which settings and routes make a PuppetDB the terminus or the cache of an indirection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from environments.directories import Environments
from environments.settings import environment_settings
from master.bindings import bind
from master.puppetdb.termini import PuppetDbCatalogs, PuppetDbFacts, PuppetDbNodes
from shared.errors import ConfigError
from shared.indirector import Indirector
from shared.settings import Conf, MasterSettings, load
from tests.support.compile_jobs import compile_pool

FACTS = "master: {facts: {terminus: puppetdb, cache: yaml}}"


def bound(root: Path, routes: str = "", **flags: str) -> Indirector:
    """The bindings of a master with these settings; a PuppetDB is not asked."""
    if routes:
        (root / "routes.yaml").write_text(routes)
    settings = load(MasterSettings, section="master", flags={"confdir": str(root), "vardir": str(root), **flags}, conf=Conf())
    environments = Environments(environment_settings(settings))
    pool = compile_pool(environments, size=1, timeout=1, memory=1, queue=1, cache=None)
    return bind(settings, environments, pool, None)


def places(indirector: Indirector, name: str) -> tuple[str, str]:
    binding: Any = indirector[name]
    return type(binding.terminus).__name__, type(binding.cache).__name__


@pytest.mark.parametrize(
    ("routes", "flags", "facts", "catalog"),
    [
        ("", {}, ("StoredFacts", "NoneType"), ("CompilerTerminus", "NoneType")),
        ("", {"storeconfigs": "true"}, ("StoredFacts", "PuppetDbFacts"), ("CompilerTerminus", "PuppetDbCatalogs")),
        (FACTS, {}, ("PuppetDbFacts", "StoredFacts"), ("CompilerTerminus", "NoneType")),
        (FACTS, {"storeconfigs": "true"}, ("PuppetDbFacts", "StoredFacts"), ("CompilerTerminus", "PuppetDbCatalogs")),
        (FACTS.replace("master", "server").replace("yaml", "json"), {}, ("PuppetDbFacts", "StoredFacts"), ("CompilerTerminus", "NoneType")),
        ("", {"storeconfigs": "true", "catalog_cache_terminus": "json"}, ("StoredFacts", "PuppetDbFacts"), ("CompilerTerminus", "Json")),
        ("", {"catalog_cache_terminus": "store_configs"}, ("StoredFacts", "NoneType"), ("CompilerTerminus", "PuppetDbCatalogs")),
        ("master: {catalog: {cache: puppetdb}}", {}, ("StoredFacts", "NoneType"), ("CompilerTerminus", "PuppetDbCatalogs")),
    ],
)
def test_settings_and_routes_say_where_a_puppetdb_is_used(
    tmp_path: Path, routes: str, flags: dict[str, str], facts: tuple[str, str], catalog: tuple[str, str]
) -> None:
    indirector = bound(tmp_path, routes, **flags)
    assert (places(indirector, "facts"), places(indirector, "catalog")) == (facts, catalog)
    assert indirector.catalog.terminus.is_stored is (catalog[1] == PuppetDbCatalogs.__name__)


def test_catalogs_from_elsewhere_cannot_be_stored(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="A PuppetDB can get only catalogs that are compiled here"):
        bound(tmp_path, storeconfigs="true", catalog_terminus="json")


def test_a_report_processor_and_a_node_terminus_are_called_puppetdb(tmp_path: Path) -> None:
    indirector = bound(tmp_path, reports="store,puppetdb", node_terminus="puppetdb")
    assert list(indirector.report.terminus.processors) == ["store", "puppetdb"]
    assert indirector.report.terminus.timeout >= 30
    assert isinstance(indirector.node.terminus.inner, PuppetDbNodes)
    assert PuppetDbFacts.__name__ not in places(indirector, "facts")


@pytest.mark.parametrize("flags", [{}, {"storeconfigs": "true"}, {"reports": "puppetdb"}])
def test_a_puppetdb_conf_that_cannot_be_read_ends_the_start(tmp_path: Path, flags: dict[str, str]) -> None:
    (tmp_path / "puppetdb.conf").write_text("[main]\nserver_urls = http://puppetdb:8080\n")
    with pytest.raises(ConfigError, match="PuppetDB 'server_urls' must be https, found 'http://puppetdb:8080'"):
        bound(tmp_path, **flags)
