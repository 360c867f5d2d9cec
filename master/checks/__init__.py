"""`puppet master --check`: the problems of a master before it is started, and how to mend them. Nothing is changed."""

from .findings import Finding
from .report import check, report

__all__ = ["Finding", "check", "report"]
