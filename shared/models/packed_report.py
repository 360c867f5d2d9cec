"""A large report that another process has parsed: the stored forms are at hand, `whole` has the fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..data import plainjson
from ..wire.dialects import Dialect
from .report import LEGACY_FORMAT, Log, Report

_OWN = frozenset({"name", "expiration", "report_format"})


class PackedReport(Report):
    """
    Create it by `create`. Its name and format are known, and it has no other fields: `whole` has them, and blocks when it is first asked.

    `documents` are its YAML by whether it is that of 3.x, `lines` its log, each line the JSON of its level, message and source.
    """

    documents: dict[bool, bytes]
    lines: bytes
    unpack: Callable[[], Report]

    @classmethod
    def create(
        cls, name: str, report_format: int, *, documents: dict[bool, bytes], lines: bytes, unpack: Callable[[], Report]
    ) -> PackedReport:
        report = cls.model_construct(name=name, report_format=report_format, documents=documents, lines=lines, unpack=unpack)
        for field in Report.model_fields.keys() - _OWN:
            del report.__dict__[field]  # reading one is an error; a default would be taken for a value
        return report

    def whole(self) -> Report:
        report = self.__dict__.get("_whole")
        if report is None:
            report = self.__dict__["_whole"] = self.unpack()
        assert isinstance(report, Report)
        return report

    def to_data(self, dialect: Dialect) -> Any:
        return self.whole().to_data(dialect)

    def log_lines(self) -> Iterator[Log]:
        start = 0
        while (end := self.lines.find(b"\n", start)) >= 0:
            level, message, source = plainjson.loads_pson(self.lines[start:end])
            yield Log.model_construct(level=level, message=message, source=source)
            start = end + 1

    def to_ruby_yaml(self, *, legacy: bool = False) -> bytes:
        document = self.documents.get(legacy)
        return document if document is not None else self.whole().to_ruby_yaml(legacy=legacy)

    def written(self) -> bytes | None:
        return self.documents.get(False)


def log_in_lines(report: Report) -> bytes:
    """Return the log of a report as `PackedReport.lines` has it."""
    return b"".join(plainjson.dumps_pson([line.level, line.message, line.source]) + b"\n" for line in report.logs)


def formats_of_documents(report: Report, *, forwarded: bool) -> list[bool]:
    """Return for each document of a report whether it is that of 3.x: the stored one, then one for a program that needs the other."""
    legacy = report.report_format <= LEGACY_FORMAT
    return [True, False] if legacy and forwarded else [legacy]
