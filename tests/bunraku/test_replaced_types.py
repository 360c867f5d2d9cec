"""Types that are built in and that modules have, too: what a module's own type has more of is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Puppet, Said
from tests.support.needs import needs_ruby
from tests.support.ruby_apply import use_few_facts

IN_RUBY = """
Puppet::Type.newtype(:k5login) do
  ensurable
  newparam(:path, namevar: true)
  newproperty(:principals, array_matching: :all)
  newparam(:note)
end
"""
PROVIDER_IN_RUBY = """
Puppet::Type.type(:k5login).provide(:noted) do
  def exists? = File.exist?(resource[:path])
  def create = File.write(resource[:path], "#{resource[:principals].join(' ')}: #{resource[:note]}")
  def destroy = File.unlink(resource[:path])
  def principals = File.read(resource[:path]).partition(':').first.split
  def principals=(_) ; create; end
  def self.instances = []
end
"""
IN_PYTHON = """
from shared.ral import Param, Property, Type, ensurable

class Logins(Type, name="k5login"):
    ensure = ensurable()
    path = Param(str, namevar=True)
    principals = Property(str, many=True)
    note = Param(str)
"""
PROVIDER_IN_PYTHON = """
from pathlib import Path
from puppet_type_k5login import Logins
from shared.ral import Provider

class Noted(Provider[Logins], type=Logins):
    async def retrieve(self, resource):
        path = Path(resource.path)
        return {"ensure": "present", "principals": path.read_text().partition(":")[0].split()} if path.exists() else None

    async def create(self, resource, state):
        Path(resource.path).write_text(f"{' '.join(resource.principals)}: {resource.note or ''}")
"""


@pytest.fixture
def apply(puppet: Puppet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Said]:
    """Applies a manifest with a module whose type k5login has one attribute more than the built-in one."""
    use_few_facts(monkeypatch)

    def apply(code: str, *words: str, language: str = "rb") -> Said:
        lib = tmp_path / "modules" / "login" / "lib" / "puppet"
        texts = (IN_RUBY, PROVIDER_IN_RUBY) if language == "rb" else (IN_PYTHON, PROVIDER_IN_PYTHON)
        for path, text in zip((f"type/k5login.{language}", f"provider/k5login/noted.{language}"), texts, strict=True):
            (lib / path).parent.mkdir(parents=True, exist_ok=True)
            (lib / path).write_text(text)
        return puppet("apply", "--color=false", "--modulepath", str(tmp_path / "modules"), *words, "-e", code.replace("@", str(tmp_path)))

    return apply


@pytest.mark.parametrize("language", [pytest.param("rb", marks=needs_ruby), "py"])
def test_an_attribute_that_only_the_modules_type_has_is_the_modules_to_apply(
    language: str, apply: Callable[..., Said], tmp_path: Path
) -> None:
    said = apply("k5login { '@/a': principals => ['x', 'y'], note => 'new' } k5login { '@/b': principals => 'z' }", language=language)
    assert (said.code, said.err) == (0, "")
    assert (tmp_path / "a").read_text() == "x y: new" and (tmp_path / "b").read_text() == "z: "


SETTINGS_IN_RUBY = """
Puppet::Type.newtype(:ini_setting) do
  ensurable { defaultvalues; defaultto :present }
  newparam(:name, namevar: true)
  newparam(:path)
  newproperty(:value, array_matching: :all)
end
Puppet::Type.type(:ini_setting).provide(:ruby) do
  def exists? = File.exist?(resource[:path])
  def create = File.write(resource[:path], resource[:value].join(','))
  def value = File.read(resource[:path]).split(',')
end
"""


@needs_ruby
def test_several_values_where_the_built_in_type_has_one_are_the_modules_to_apply(apply: Callable[..., Said], tmp_path: Path) -> None:
    apply("")
    (tmp_path / "modules" / "login" / "lib" / "puppet" / "type" / "ini_setting.rb").write_text(SETTINGS_IN_RUBY)
    said = apply("ini_setting { 'a': path => '@/a', value => ['x', 'y'] } ini_setting { 'b': path => '@/b', value => 'z' }")
    assert (said.code, said.err) == (0, "")
    assert (tmp_path / "a").read_text() == "x,y" and (tmp_path / "b").read_text() == "z"


@needs_ruby
def test_without_such_an_attribute_the_built_in_type_is_taken(apply: Callable[..., Said], tmp_path: Path) -> None:
    assert apply("k5login { '@/a': principals => ['x'] }").code == 0
    assert (tmp_path / "a").read_text() == "x\n"


def test_where_there_is_no_ruby_the_resources_of_such_a_type_fail_and_no_others(apply: Callable[..., Said], tmp_path: Path) -> None:
    said = apply("k5login { '@/b': principals => ['y'], note => 'new' } notify { 'other': }", "--ruby=")
    assert "Types of modules are in Ruby, and there is no ruby to run them: k5login" in said.err
    assert "Notice: other" in said.out and not (tmp_path / "b").exists()


@needs_ruby
def test_a_resource_on_the_command_line_has_it_too(puppet: Puppet, apply: Callable[..., Said], tmp_path: Path) -> None:
    apply("")
    words = ["--modulepath", str(tmp_path / "modules"), "k5login", str(tmp_path / "a"), "ensure=present", "principals=x", "note=new"]
    assert puppet("resource", *words).code == 0
    assert (tmp_path / "a").read_text() == "x: new"


@pytest.mark.parametrize(
    ("attributes", "pieces", "content"),
    [
        ("", "", ""),
        ("create_empty_file => true", "", ""),
        ("create_empty_file => false", "", None),
        ("create_empty_file => false", "concat_fragment { 'a': target => '@/out', content => '' }", None),
        ("create_empty_file => false", "concat_fragment { 'a': target => '@/out', content => 'x' }", "x"),
        (
            "tag => ['s', 't']",
            "concat_fragment { 'a': tag => 't', content => 'x' } concat_fragment { 'b': tag => 's', content => 'y' }",
            "xy",
        ),
    ],
)
def test_concat_makes_an_empty_file_unless_it_is_told_not_to(
    attributes: str, pieces: str, content: str | None, puppet: Puppet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_few_facts(monkeypatch)
    out = tmp_path / "out"
    if content is None:
        out.write_text("earlier")
    said = puppet("apply", "-e", f"concat_file {{ '@/out': {attributes} }} {pieces}".replace("@", str(tmp_path)))
    assert (said.code, said.err) == (0, "")
    assert (out.read_text() if out.exists() else None) == content
