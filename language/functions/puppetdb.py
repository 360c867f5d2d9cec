"""The function that asks a PuppetDB."""

from __future__ import annotations

from ..values.core import Value
from .api import function
from .catalog_context import CatalogContext


@function("puppetdb_query", "Variant[String[1], Array[Data, 1]] query")
def puppetdb_query(context: CatalogContext, query: Value) -> Value:
    """Return the answer of the site's PuppetDB (see puppetdb.conf) to a query in PQL, or to a syntax tree."""
    return context.compilation.host.query_puppetdb(query)
