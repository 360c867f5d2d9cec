"""The differences between the two databases: JSON, lists, regular expressions, times."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .sqlite import SqliteSql

if TYPE_CHECKING:
    from .postgresql import PostgresqlSql  # 3 MB, which a store on SQLite does without

Sql: TypeAlias = "SqliteSql | PostgresqlSql"
