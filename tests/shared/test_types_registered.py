"""The table of types agrees with what the files declare."""

from __future__ import annotations

import ast
from pathlib import Path

import shared.types
from shared.types import builtin_types


def test_every_declared_type_is_in_the_table_by_its_name() -> None:
    declared = set()
    for path in Path(shared.types.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                declared |= {k.value.value for k in node.keywords if k.arg == "name" and isinstance(k.value, ast.Constant)}
    types = builtin_types()
    assert set(types) == declared
    assert [name for name, cls in types.items() if cls.declaration.name != name] == []
