"""
The part "Tested with" of docs/compatibility.md, made of the marks `works_with` of the tests.

    python -m tests.support.compatibility_page

writes it. A mark has a group and what the tests of its file show: `pytest.mark.works_with("LDAP", "nodes in OpenLDAP's slapd")`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.support.markdown import wrapped

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- made of the tests' marks: make compatibility-page -->\n", "<!-- end of what is made -->"


def marks(path: Path) -> Iterator[tuple[str, str]]:
    """Yield group and text of each mark in a file of tests; only those that apply to tests count."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            places = [node.value]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name.lower().startswith("test"):
            places = node.decorator_list
        else:
            continue
        for call in (each for place in places for each in ast.walk(place) if isinstance(each, ast.Call)):
            if ast.unparse(call.func) == "pytest.mark.works_with":
                group, text = (ast.literal_eval(argument) for argument in call.args)
                yield group, text


def listing() -> str:
    """Return the groups, each a heading with a list of its tests."""
    groups = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for group, text in marks(path):
            groups[group].append(f"[{text}](../{path.relative_to(ROOT)})")
    parts = []
    for group, links in sorted(groups.items()):
        parts.append(f"### {group}\n\n" + "\n".join(f"- {link}" for link in sorted(links)) + "\n")
    return wrapped("\n".join(parts))


def page() -> str:
    """Return the whole page with the present list."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{listing()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page())
