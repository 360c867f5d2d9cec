"""`puppet master --check`: the problems of a master before its start, with remedies. It changes nothing."""

from .findings import Finding
from .report import check, report

__all__ = ["Finding", "check", "report"]
