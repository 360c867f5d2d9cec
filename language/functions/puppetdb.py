"""The function that asks a PuppetDB."""

from __future__ import annotations

from ..values.core import Value
from .api import function
from .catalog_context import CatalogContext


@function("puppetdb_query", "Variant[String[1], Array[Data, 1]] query")
def puppetdb_query(context: CatalogContext, query: Value) -> Value:
    """Return what the site's PuppetDB answers to a query in its language PQL, or to a syntax tree; that of puppetdb.conf."""
    return context.compilation.host.query_puppetdb(query)
