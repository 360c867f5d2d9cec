"""What `puppet generate types` writes, both ways."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from environments.module_types.generated import generated_manifest, read_generated
from environments.module_types.models import DeclaredAttribute, DeclaredType
from environments.module_types.registry import ModuleTypes
from shared.errors import ParseError
from tests.support.memory_files import MemoryFiles

NOW = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
DECLARED = DeclaredType(
    "x",
    (
        DeclaredAttribute("ensure", doc="Whether it is there.\nOr not.", values=("present", "absent")),
        DeclaredAttribute("on", values=("true", "no")),
    ),
    (DeclaredAttribute("name", True), DeclaredAttribute("kind", True, patterns=("^a/b\\/c$",)), DeclaredAttribute("it's")),
    (("^(.*)/(.*)$", ("name", "kind")),),
    isomorphic=False,
)
TEXT = """\
# This file was automatically generated on 2024-05-06 07:08:09 +0000.
# Use the 'puppet generate types' command to regenerate this file.

Puppet::Resource::ResourceType3.new(
  'x',
  [
    # Whether it is there.
    # Or not.
    Puppet::Resource::Param(Enum['present', 'absent'], 'ensure'),

    Puppet::Resource::Param(Variant[Boolean, Enum['true', 'no']], 'on')
  ],
  [
    Puppet::Resource::Param(Any, 'name', true),

    Puppet::Resource::Param(Pattern[/^a\\/b\\/c$/], 'kind', true),

    Puppet::Resource::Param(Any, 'it\\'s')
  ],
  {
    /^(.*)\\/(.*)$/ => ['name', 'kind']
  },
  false,
  false)
"""


def test_a_type_is_written_as_puppet_writes_it() -> None:
    assert generated_manifest(DECLARED, NOW) == TEXT


def test_what_was_written_is_read_again() -> None:
    found = read_generated("x", TEXT, "x.pp")

    assert [each.name for each in (*found.properties, *found.parameters)] == ["ensure", "on", "name", "kind", "it's"]
    assert (found.namevars, found.title_patterns, found.isomorphic) == (("name", "kind"), DECLARED.title_patterns, False)


def test_an_open_type_is_not_written() -> None:
    with pytest.raises(ValueError, match="line 3"):
        generated_manifest(DeclaredType("x", open="line 3: a name that is computed"), NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "notice(1)",
        "Puppet::Resource::ResourceType3.new('other', [], [], {}, true, false)",
        "Puppet::Resource::ResourceType3.new('x', [1], [], {}, true, false)",
        "Puppet::Resource::ResourceType3.new('x', [Puppet::Resource::Param(Any, $a)], [], {}, true, false)",
        "Puppet::Resource::ResourceType3.new('x', [], [], {'a' => ['b']}, true, false)",
        "Puppet::Resource::ResourceType3.new('x', {}, [], {}, true, false)",
        "Puppet::Resource::ResourceType3.new('x'",
    ],
)
def test_a_file_that_declares_no_such_type_is_a_located_error(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_generated("x", text, "x.pp")

    assert caught.value.where is not None


def test_the_generated_type_of_the_environment_comes_before_the_ruby_source() -> None:
    files = MemoryFiles(
        {"/env/.resource_types/x.pp": TEXT, "/m/lib/puppet/type/x.rb": "Puppet::Type.newtype(:x) { newparam(:only_in_ruby) }"}
    )

    found = ModuleTypes(files, ["/m"], environment="/env").find("x")

    assert found is not None
    assert "kind" in found.attributes
    assert "only_in_ruby" not in found.attributes
