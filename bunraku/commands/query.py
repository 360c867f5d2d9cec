"""Query a store or a PuppetDB in PQL."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import BadData, ConfigError, PeerAnswered
from shared.process.cli import flag
from shared.process.command import CommandSpec
from shared.process.log import escape_controls
from store.jsontext import Json, dump_json
from store.queries.pql.errors import PqlError

from ..stores.access import StoreClient, read_rows
from ..stores.options import SERVERS, StoreFaceOptions
from ..stores.servers import servers_of

_WRONG = 2
_MAX_QUERY = 2**20  # bytes
_WIDEST = 60  # characters of a value in a table


@dataclass(frozen=True, slots=True)
class QueryOptions(StoreFaceOptions):
    """The command line of `puppet query`."""

    table: bool = flag("print a table, also where the output is no terminal")


@CommandSpec(
    "query",
    QueryOptions,
    usage=["QUERY [--json | --table] [--url URL]"],
    text="""Asks a store or a PuppetDB, and prints a table on a terminal, else JSON. QUERY is PQL, or a syntax tree in JSON; `-` reads it
    from standard input.

      puppet query 'nodes[certname] { facts { name = "role" and value = "web" } }'
      puppet query 'inventory[certname, facts.os.family] { order by certname }'
      puppet query '["from", "reports", ["=", "status", "failed"]]'""",
    notes=f"""{SERVERS}

    Exit codes: 0, also when there are no rows; 1 when no server can be reached, or it refuses the certificate; 2 for an invalid query.""",
).main
def main(options: QueryOptions, flags: dict[str, Any]) -> int:
    if len(options.arguments) != 1:
        raise ConfigError("puppet query takes one query", hint="Put it in single quotes: puppet query 'nodes[certname]{}'")
    query = read_query(options.arguments[0])
    as_table = options.table or (sys.stdout.isatty() and not options.as_json)

    async def run() -> None:
        async with StoreClient(servers_of(options, flags)) as client:
            body = dump_json({"query": query})
            headers = {"Content-Type": "application/json"}
            async with client.request("POST", "/pdb/query/v4", body=body, headers=headers) as answer:
                if as_table:
                    print_table(await client.read(answer), columns_of(query))
                    return
                async for piece in client.pieces(answer):
                    await asyncio.to_thread(sys.stdout.buffer.write, piece)
                print()

    try:
        asyncio.run(run())
    except PeerAnswered as err:
        if err.code != 400:
            raise
        print(f"Error: {escape_controls(err.body, lines=True)}", file=sys.stderr)
        return _WRONG
    return 0


def read_query(argument: str) -> str:
    """Return the query that an argument is, or that standard input holds."""
    if argument != "-":
        return argument
    data = sys.stdin.buffer.read(_MAX_QUERY + 1)
    if len(data) > _MAX_QUERY:
        raise BadData(f"The query on standard input is longer than {_MAX_QUERY} bytes")
    return data.decode("utf-8", "replace")


def columns_of(query: str) -> list[str]:
    """Return the names of the columns in a PQL query, in their order; none for a query of all columns, or one that is not PQL."""
    from store.queries.pql.parser import parse  # only tables need it

    try:
        tree = parse(query)
    except PqlError:
        return []
    match tree[2:3]:
        case [["extract", list(columns), *_]]:
            return [column if isinstance(column, str) else str(column[1]) for column in columns if isinstance(column, str | list)]
    return []


def print_table(body: bytes, columns: Sequence[str]) -> None:
    """Print rows as a table: the requested columns first. Raise BadData for an answer that is not a list."""
    objects = [row if isinstance(row, dict) else {"value": row} for row in read_rows(body)]
    present = dict.fromkeys(name for row in objects for name in row)
    names = [*(name for name in dict.fromkeys(columns) if name in present), *(name for name in present if name not in columns)]
    sys.stdout.writelines(f"{line}\n" for line in table_lines(objects, names))
    sys.stdout.flush()  # a pipe with both streams has the count at the end, as a terminal
    counted = "1 row" if len(objects) == 1 else f"{len(objects)} rows"
    print(counted, file=sys.stderr)


def table_lines(rows: Sequence[Mapping[str, Json]], names: Sequence[str]) -> list[str]:
    """Return the lines of a table; a long value is cut, unless it is text in the last column."""
    if not names:
        return []
    cells = [[_cell(row.get(name), is_last=name == names[-1]) for name in names] for row in rows]
    header = [escape_controls(name) for name in names]
    widths = [min(_WIDEST, max(len(text) for text in column)) for column in zip(header, *cells, strict=True)]
    lines = [header, ["-" * width for width in widths], *cells]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _cell(value: Json, *, is_last: bool) -> str:
    """Return a value as a cell shows it: texts as they are, nothing for null, all else as JSON."""
    text = escape_controls("" if value is None else value if isinstance(value, str) else dump_json(value).decode())
    return text if len(text) <= _WIDEST or (is_last and isinstance(value, str)) else text[: _WIDEST - 1] + "…"
