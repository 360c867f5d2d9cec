"""Each row of the attack and fault tables has a test that carries its id, or stands in OPEN.md with a reason."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
# The rows of the tables; those that measuring has added since are counted by the names of their tests.
ROWS = {  # how many there are of each group
    "CA": 25,
    "TLS": 16,
    "HTTP": 21,
    "ACL": 11,
    "CMP": 12,
    "FS": 9,
    "FB": 6,
    "RPT": 5,
    "AG": 22,
    "R": 40,
    "PRS": 12,
    "PAT": 4,
    "SEC": 4,
    "TTY": 2,
    # The store: 1 texts in statements, 2 nested queries, 3 huge queries and numbers, 4 regular expressions that run away, 5 slow queries
    # and readers, 6 nodes that submit for others, 7 ways past the rules, 8 sensitive values in answers, 9 bombs, 10 archives, 11 poison,
    # 12 web pages at a port without TLS, 13 patterns that the databases read differently,
    # 14 queries that are an error of the program.
    "PDB": 11,
}
CLOSED = ("CA", "TLS", "HTTP", "ACL", "FB", "RPT", "PDB")  # groups in which nothing is left open


@cache
def covered() -> frozenset[str]:
    """The ids in the names of tests; `test_HTTP_06_07_08_…` carries three, `test_ACL_02_and_03_…` two."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
                match := re.match(r"test_([A-Z]+)((?:_(?:and_)?\d\d)+)", node.name)
            ):
                found |= {f"{match[1]}-{number}" for number in re.findall(r"\d\d", match[2])}
    return frozenset(found)


def opened() -> dict[str, str]:
    """The rows in OPEN.md, with their reasons."""
    lines = (Path(__file__).parent / "OPEN.md").read_text("utf-8").splitlines()
    return {match[1]: match[2] for line in lines if (match := re.fullmatch(r"\| ([A-Z]+-\d\d) \| (.+) \|", line))}


@pytest.mark.parametrize("group", sorted(ROWS))
@pytest.mark.slow
def test_every_row_is_tested_or_open_with_a_reason(group: str) -> None:
    tested = [int(row.partition("-")[2]) for row in covered() if row.startswith(f"{group}-")]
    rows = {f"{group}-{number:02}" for number in range(1, max(ROWS[group], *tested) + 1)}
    missing = rows - covered() - set(opened())
    assert missing == set()
    assert rows & set(opened()) & covered() == set(), "open although there is a test"


@pytest.mark.parametrize("group", CLOSED)
def test_these_groups_have_nothing_open(group: str) -> None:
    assert [row for row in opened() if row.startswith(f"{group}-")] == []
