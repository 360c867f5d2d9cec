from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import Puppet, Said

SOURCE = """Puppet::Type.newtype(:zone_file) do
  desc 'A zone.'
  ensurable
  newparam(:name, namevar: true) { desc 'Its name.' }
  newproperty(:serial) { newvalues(/^\\d+$/) }
end
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """The folder of the environment production, with a module that brings a type and a provider."""
    module = tmp_path / "environments" / "production" / "modules" / "dns"
    (module / "lib/puppet/type").mkdir(parents=True)
    (module / "lib/puppet/type/zone_file.rb").write_text(SOURCE)
    (module / "lib/puppet/provider/zone_file").mkdir(parents=True)
    (module / "lib/puppet/provider/zone_file/bind.rb").write_text("")
    return tmp_path / "environments" / "production"


def generate(puppet: Puppet, environment: Path, *words: str) -> Said:
    return puppet("generate", "types", "--environmentpath", str(environment.parent), "--basemodulepath", "/nowhere", *words)


def test_types_are_written_below_the_environment(puppet: Puppet, environment: Path) -> None:
    said = generate(puppet, environment)

    written = environment / ".resource_types" / "zone_file.pp"
    assert (said.code, said.err) == (0, "")
    assert said.out == f"Notice: Generating Puppet resource types.\nNotice: Generating '{written}' using 'pcore' format.\n"
    assert written.read_text().partition("\n\n")[2] == (
        "# A zone.\nPuppet::Resource::ResourceType3.new(\n  'zone_file',\n  [\n"
        "    Puppet::Resource::Param(Enum['present', 'absent'], 'ensure'),\n\n"
        "    Puppet::Resource::Param(Pattern[/^\\d+$/], 'serial')\n  ],\n  [\n"
        "    # Its name.\n    Puppet::Resource::Param(Any, 'name', true),\n\n"
        "    Puppet::Resource::Param(Any, 'provider')\n  ],\n  {\n    /(?m-ix:(.*))/ => ['name']\n  },\n  true,\n  false)\n"
    )


def test_what_is_newer_than_its_source_is_kept_unless_forced(puppet: Puppet, environment: Path) -> None:
    generate(puppet, environment)
    written = environment / ".resource_types" / "zone_file.pp"
    written.write_text("mine")

    said = generate(puppet, environment)
    assert said.out.endswith("Notice: No files were generated because all inputs were up-to-date.\n")
    assert written.read_text() == "mine"
    generate(puppet, environment, "--force")
    assert written.read_text() != "mine"
    written.write_text("old")
    os.utime(written, (1, 1))
    generate(puppet, environment)
    assert written.read_text() != "old"


def test_files_of_types_that_are_gone_are_removed(puppet: Puppet, environment: Path) -> None:
    generate(puppet, environment)
    (environment / "modules/dns/lib/puppet/type/zone_file.rb").unlink()

    said = generate(puppet, environment)

    assert "Notice: Removed output 'zone_file.pp' for non existing inputs\nNotice: No custom types were found.\n" in said.out
    assert list((environment / ".resource_types").iterdir()) == []


def test_a_type_that_cannot_be_read_is_named_and_leaves_no_file(puppet: Puppet, environment: Path) -> None:
    generate(puppet, environment)
    source = environment / "modules/dns/lib/puppet/type/zone_file.rb"
    source.write_text("Puppet::Type.newtype(:zone_file) { newparam(compute) }")
    os.utime(source, (4e9, 4e9))

    said = generate(puppet, environment)

    assert said.code == 1
    assert f"Error: {source}: Failed to generate" in said.err
    assert list((environment / ".resource_types").iterdir()) == []


def test_another_format_is_refused(puppet: Puppet, environment: Path) -> None:
    said = generate(puppet, environment, "--format", "json")

    assert said.code == 1
    assert "'json' is not a supported format for type generation." in said.err


def test_a_file_in_the_place_of_the_folder_is_an_error(puppet: Puppet, environment: Path) -> None:
    (environment / ".resource_types").write_text("")

    said = generate(puppet, environment)

    assert "exists and is not a directory" in said.err
