"""How modules declare types and providers in Ruby: what of it cannot be used fails no other, and whose methods count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.needs import needs_ruby
from tests.support.ruby_apply import Apply

TYPE = "Puppet::Type.newtype(:%s) do\n  ensurable\n  newparam(:name)\n  newparam(:provider)\nend\n"
PROVIDER = """
Puppet::Type.type(:%s).provide(:%s) do
  %s
  def exists? = File.exist?(resource[:name])
  def create = File.write(resource[:name], '%s')
end
"""


@pytest.fixture
def module(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file of a module; returns the folder of modules."""

    def write(path: str, text: str) -> Path:
        file = tmp_path / "modules" / "m" / "lib" / "puppet" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return tmp_path / "modules"

    return write


@needs_ruby
@pytest.mark.parametrize(
    ("provider", "message"),
    [
        ("defaultfor ['os.name' => ['X'], 'os.family' => :suse]", ""),
        ("def self.default? = raise('no idea')", "Could not load the provider wild of odd: no idea"),
    ],
    ids=["a condition that is no hash", "one that cannot be judged"],
)
def test_a_provider_that_does_not_fit_leaves_the_others(
    provider: str, message: str, apply: Apply, module: Callable[[str, str], Path], tmp_path: Path
) -> None:
    module("type/odd.rb", TYPE % "odd")
    module("provider/odd/wild.rb", PROVIDER % ("odd", "wild", provider, "wild"))
    modules = module("provider/odd/tame.rb", PROVIDER % ("odd", "tame", "defaultfor kernel: :linux", "tame"))
    said = apply(f"odd {{ '{tmp_path}/odd': ensure => present }}", "--modulepath", str(modules))
    assert said.code == 0 and message in said.err
    assert (tmp_path / "odd").read_text() == "tame"


@needs_ruby
@pytest.mark.parametrize(
    ("type_file", "message"),
    [
        ("exit!(3)", "Ruby has ended with exit code 3"),
        (TYPE % "odd" + "def (Puppet::Type.type(:odd)).doc = raise('no text')", "no text"),
    ],
    ids=["it ends Ruby", "it cannot be described"],
)
def test_a_type_that_cannot_be_loaded_is_named_and_no_other(
    type_file: str, message: str, apply: Apply, module: Callable[[str, str], Path], tmp_path: Path
) -> None:
    module("type/odd.rb", type_file)
    modules = module("type/fine.rb", TYPE % "fine")
    for code in ("fine { 'a': } odd { 'b': }", "odd { 'b': } fine { 'a': }"):
        said = apply(code, "--modulepath", str(modules))
        assert said.code == 1
        assert f"Could not load the type odd: {message}" in said.err and "the type fine" not in said.err


@needs_ruby
def test_a_method_that_a_provider_inherits_is_not_replaced_by_a_command_of_its_name(
    apply: Apply, module: Callable[[str, str], Path], tmp_path: Path
) -> None:
    module("type/fine.rb", TYPE % "fine")
    parent = "Puppet::Provider::Base = Class.new(Puppet::Provider) { def self.tell(text) = File.write(text, 'told by the parent') }"
    code = f"""
        {parent}
        Puppet::Type.type(:fine).provide(:plain, parent: Puppet::Provider::Base) do
          commands tell: 'true', echo: 'true'
          def exists? = File.exist?(resource[:name])
          def create = tell(resource[:name])
        end
    """
    said = apply(f"fine {{ '{tmp_path}/a': ensure => present }}", "--modulepath", str(module("provider/fine/plain.rb", code)))
    assert (said.code, said.err) == (0, "")
    assert (tmp_path / "a").read_text() == "told by the parent"


@needs_ruby
def test_the_methods_of_the_property_hash_replace_what_was_defined_before(apply: Apply, module: Callable[[str, str], Path]) -> None:
    module("type/fine.rb", "Puppet::Type.newtype(:fine) do\n  newparam(:name)\n  newproperty(:size)\n  newproperty(:weight)\nend\n")
    code = """
        Puppet::Type.type(:fine).provide(:plain) do
          def size = 'own'
          mk_resource_methods
          def weight = 'own'
        end
    """
    said = apply("fine { 'a': size => 'own', weight => 'own' }", "--modulepath", str(module("provider/fine/plain.rb", code)))
    assert (said.code, said.err) == (0, "")
    assert "Fine[a]/size: defined 'size' as 'own'" in said.out and "weight" not in said.out


@needs_ruby
@pytest.mark.parametrize(
    ("matching", "value", "shown"),
    [
        ("", "[]", ""),
        ("", "['no', 'yes']", ""),
        ("", "['yes', 'no']", "changed 'old' to true"),
        (", array_matching: :all", "[]", "changed 'old' to []"),
        (", array_matching: :all", "['no', 'yes']", "changed 'old' to [false, true]"),
    ],
)
def test_a_property_without_a_value_is_not_compared(
    matching: str, value: str, shown: str, apply: Apply, module: Callable[[str, str], Path]
) -> None:
    munge = "munge { |text| text == 'yes' }\n def insync?(is) = is == should"
    module("type/flag.rb", f"Puppet::Type.newtype(:flag) do\n newparam(:name)\n newproperty(:up{matching}) do\n {munge}\n end\nend\n")
    modules = module("provider/flag/kept.rb", "Puppet::Type.type(:flag).provide(:kept) do\n def up = 'old'\n def up=(_value); end\nend\n")
    said = apply(f"flag {{ 'a': up => {value} }}", "--modulepath", str(modules))
    assert (said.code, said.err) == (0, "") and ("changed" in said.out) == bool(shown) and shown in said.out


@needs_ruby
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_programs_output_that_is_no_text_is_shown_with_replacement_characters(
    locale: str, apply: Apply, module: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    module("type/flag.rb", "Puppet::Type.newtype(:flag) do\n newparam(:name)\n newproperty(:up)\nend\n")
    read = "Puppet::Util::Execution.execute(['printf', 'caf\\\\351'])"
    modules = module("provider/flag/kept.rb", f"Puppet::Type.type(:flag).provide(:kept) do\n def up = {read}\n def up=(_value); end\nend\n")
    said = apply("flag { 'a': up => 'x' }", "--modulepath", str(modules))
    assert (said.code, said.err) == (0, "") and "changed 'caf\ufffd' to 'x'" in said.out
