"""What conditions and columns are made of."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement

Expression = ColumnElement[Any]
