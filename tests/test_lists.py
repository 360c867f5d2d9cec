"""Lists that stand in two languages are equal."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from store.queries.pql import parser
from store.queries.schema.entities import ENTITIES
from tests.environments.ruby.site import PROGRAM
from tests.support.needs import needs_ruby

ROOT = Path(__file__).parents[1]


def words(path: str, pattern: str) -> set[str]:
    """Return the words in the first match of a pattern's group in a file."""
    match = re.search(pattern, (ROOT / path).read_text())
    assert match is not None
    return set(re.findall(r"\w+", match[1]))


def test_pql_names_all_entities_of_its_grammar_in_errors_and_the_store_has_them() -> None:
    in_grammar = words("store/queries/pql/pql.lark", r"ENTITY\S*: /\(\?:([^)]*)\)")
    with pytest.raises(parser.PqlError) as raised:
        parser.parse("nothing")
    assert {name for name in in_grammar if not re.search(rf"\b{name}\b", str(raised.value))} == set()
    assert in_grammar <= set(ENTITIES)


PROBE = """
$PROGRAM_NAME = 'probe'
load ARGV.shift
%w[puppet/provider/parsedfile puppet/util/inifile].each { |name| require name }
there = JSON.parse(STDIN.read).select do |name|
  owner, method = name.end_with?('[…]') ? [name.delete_suffix('[…]'), '[]'] : name.split('.', 2)
  next Puppet::Parser::Scope.method_defined?(method) if owner == 'scope'

  constant = owner.split('::').inject(Object) { |within, part| within.const_get(part, false) }
  method.nil? || constant.respond_to?(method)
rescue NameError
  false
end
puts JSON.generate(there)
"""


@needs_ruby
@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "heading"),
    [
        ("environments/ruby/host.rb", "In functions, back ends and templates, on the master:"),
        ("agent/ruby/program/program.rb", "In types, providers and facts, on the agent:"),
    ],
)
def test_what_modules_use_of_puppet_s_ruby_is_there_as_the_documentation_says(program: str, heading: str) -> None:
    table = (ROOT / "docs/extending.md").read_text().partition(heading)[2].split("\n\n")[1]
    cells = [row.split("|")[2:4] for row in table.splitlines()[2:]]
    works, refused = (re.findall(r"`([^`]+)`", "".join(column)) for column in zip(*cells, strict=True))
    names = [name for name in works + refused if not name.startswith("context.")]  # those are methods of the compiler's
    done = subprocess.run(
        [PROGRAM, "-e", PROBE, str(ROOT / program)], input=json.dumps(names), capture_output=True, text=True, check=True, timeout=60
    )
    assert sorted(json.loads(done.stdout)) == sorted(set(names) - set(refused))
