"""Functions in Ruby in catalogs: translated where they can be, left to Ruby as a whole where not."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.directory_environment import DirectoryEnvironment
from language.erb.errors import Refusal
from language.erb.translation import translate_function
from language.syntax.source import Source
from shared.errors import CompileError
from tests.environments.ruby.site import compile_with
from tests.support.compiling import Compiled, compiled
from tests.support.memory_files import MemoryFiles
from tests.support.needs import needs_ruby

OWN = Path(__file__).parents[2] / "data" / "ruby_functions"


def without_ruby(manifest: str, **functions: str) -> Compiled:
    """Compile a manifest in a site without Ruby whose module `m` has functions."""
    files = {f"/env/modules/m/lib/puppet/functions/m/{name}.rb": text for name, text in functions.items()}
    world = DirectoryEnvironment(
        "production", "/env", MemoryFiles(files), modulepath=["/env/modules"], manifest=None, code=manifest, settings={"strict": "warning"}
    )
    return compiled("", world=world)


def function(name: str, body: str) -> str:
    return f"Puppet::Functions.create_function(:'m::{name}') do\n  def {name}(x)\n    {body}\n  end\nend\n"


def test_a_function_in_the_subset_needs_no_ruby() -> None:
    text = function("f", "x.map { |each| each.upcase }.join(' ')")
    assert without_ruby("notice(m::f(['a', 'b']))", f=text).notices == ["A B"]


def test_its_signature_is_checked_as_that_of_any_function() -> None:
    text = (
        "Puppet::Functions.create_function(:'m::f') do\n  dispatch :f do\n    param 'Integer[1]', :x\n    optional_param 'String', :y\n"
        "    return_type 'String'\n  end\n  def f(x, y = 'z')\n    x > 5 ? x : y * x\n  end\nend\n"
    )
    assert without_ruby("notice(m::f(2), m::f(1, 'a'))", f=text).notices == ["zz a"]
    with pytest.raises(CompileError, match=r"'m::f' parameter 'x' expects an Integer value, got String"):
        without_ruby("m::f('a')", f=text)
    with pytest.raises(CompileError, match="value returned from function 'f' has wrong type, expects a String value, got Integer"):
        without_ruby("m::f(6)", f=text)


def test_an_error_of_a_function_names_its_line() -> None:
    with pytest.raises(CompileError, match="too many: 1") as caught:
        without_ruby("m::f([1])", f=function("f", 'y = x\n\n    raise Puppet::ParseError, "too many: #{y.size}" if y.size > 0'))
    assert caught.value.hint == "Raised in Ruby: /env/modules/m/lib/puppet/functions/m/f.rb:5"


def test_arguments_of_which_only_ruby_knows_are_an_error_without_it() -> None:
    with pytest.raises(CompileError, match="line 3 needs it for these arguments: String#upcase of characters that are not ASCII"):
        without_ruby("m::f('é')", f=function("f", "x.upcase"))


def test_a_function_that_is_not_translated_says_where_and_why_without_ruby() -> None:
    with pytest.raises(CompileError, match=r"written in Ruby \(/env/modules/m/lib/puppet/functions/m/f.rb, line 3: Time.now\)"):
        without_ruby("m::f(1)", f=function("f", "Time.now.to_i"))


@needs_ruby
def test_the_setting_leaves_functions_to_ruby() -> None:
    text = function("f", "x.frozen?.inspect")
    files = {"modules/m/lib/puppet/functions/m/f.rb": text}
    assert compile_with("notice(m::f('a'))", files).notices == ["false"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (function("f", "x.map { |y| return y }"), "return out of a block whose value is used"),
        (function("f", "Time.now"), "Time.now"),
        (function("f", "File.read(x)"), "File.read"),
        (function("f", "`id`"), "subshell: `id`"),
        (function("f", "system(x)"), "the method system"),
        (function("f", "rand(5)"), "the method rand"),
        (function("f", "ENV['HOME']"), "the constant ENV"),
        (function("f", "x.send(:upcase)"), "the method send"),
        (function("f", "eval(x)"), "the method eval"),
        (function("f", "@y = x"), "an assignment to @y"),
        (function("f", "$stderr.puts x"), "$stderr"),
        (function("f", "x =~ /(a)/\n    $1"), "$1"),
        (function("f", "require 'net/http'\n    x"), "require 'net/http'"),
        (function("f", "begin\n      x.upcase\n    rescue => e\n      e.upcase\n    end"), "an error in a variable"),
        (function("f", "begin\n      x\n    ensure\n      x\n    end"), "ensure"),
        ("require 'puppet_x/m/util'\n" + function("f", "x"), "require 'puppet_x/m/util'"),
        ("X = 1\n" + function("f", "X"), "something besides the definition of a function"),
        (function("g", "x"), ":'m::g'"),
        (function("f", "other(x)"), "the method other"),
        (function("f", "yield x"), "yield: yield x"),
        (function("f", "x").replace("def f(x)", "def f(x, y: 1)"), "the parameters of f"),
        (function("f", "x").replace("def f", "dispatch :f do\n    scope_param\n  end\n  def f"), "scope_param"),
        (function("f", "x").replace("def f", "dispatch :f do\n    block_param\n  end\n  def f"), "block_param"),
        (function("f", "x").replace("def f", "dispatch :f do\n    param 'Any', :a\n    param 'Any', :b\n  end\n  def f"), "does not fit"),
        (function("f", "x").replace("def f", "local_types do\n    type 'A = Integer'\n  end\n  def f"), "local_types do"),
        (function("f", "x").replace("'m::f')", "'m::f', Puppet::Functions::InternalFunction)"), "Puppet::Functions.create_function"),
        ("module Puppet::Parser::Functions\n  newfunction(:'m::f') do |a, b|\n    a\n  end\nend\n", "the parameters of the function"),
        ("module Puppet::Parser::Functions\n  newfunction(:'m::f', :doc => \"#{`id`}\") do |a|\n    a\n  end\nend\n", ":doc =>"),
    ],
)  # fmt: skip
def test_what_is_not_in_the_subset_is_left_to_ruby_as_a_whole(text: str, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        translate_function("m::f", Source(text, "f.rb"))
    assert reason in caught.value.reason


def test_our_examples_are_all_translated() -> None:
    for path in OWN.rglob("*.rb"):
        name = path.as_posix().rpartition("/functions/")[2].removesuffix(".rb").replace("/", "::")
        translate_function(name, Source(path.read_text(), str(path)))
