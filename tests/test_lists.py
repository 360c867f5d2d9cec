"""Lists that stand in two languages are equal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from master.compiler.catalog.resources import METAPARAMETERS
from shared.ral.metaparams import Metaparams
from store.queries.pql import parser
from store.queries.schema.entities import ENTITIES

ROOT = Path(__file__).parents[1]


def words(path: str, pattern: str) -> set[str]:
    """Return the words in the first match of a pattern's group in a file."""
    match = re.search(pattern, (ROOT / path).read_text())
    assert match is not None
    return set(re.findall(r"\w+", match[1]))


def test_the_agent_the_compiler_and_the_program_in_ruby_know_the_same_metaparameters() -> None:
    in_ruby = words("agent/ruby/program/type_attributes.rb", r"METAPARAMETERS = %i\[([^]]*)\]")
    assert in_ruby == METAPARAMETERS == {name for name, param in vars(Metaparams).items() if getattr(param, "meta", False)}


def test_pql_names_all_entities_of_its_grammar_in_errors_and_the_store_has_them() -> None:
    in_grammar = words("store/queries/pql/pql.lark", r"ENTITY\S*: /\(\?:([^)]*)\)")
    with pytest.raises(parser.PqlError) as raised:
        parser.parse("nothing")
    assert {name for name in in_grammar if not re.search(rf"\b{name}\b", str(raised.value))} == set()
    assert in_grammar <= set(ENTITIES)
