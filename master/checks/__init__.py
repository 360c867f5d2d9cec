"""`puppet master --check`: what is wrong with a master before it is started, and how to mend it. Nothing is changed."""

from .findings import Finding
from .report import check, report

__all__ = ["Finding", "check", "report"]
