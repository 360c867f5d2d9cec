"""What runs in Ruby and can read nothing but what it is given; everything else is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from language.erb.purity import Impurity, function_impurity, template_impurity

OWN = Path(__file__).parents[2] / "data"


def function(body: str) -> str:
    return f"require 'json'\nPuppet::Functions.create_function(:f) do\n  def f(x)\n    {body}\n  end\nend\n"


def legacy(body: str) -> str:
    return f"module Puppet::Parser::Functions\n  newfunction(:f, :type => :rvalue) do |x|\n    {body}\n  end\nend\n"


@pytest.mark.parametrize(
    "body",
    [
        "x.each_slice(2).to_a.inspect",
        "m = x.match(/(?<a>.)/)\n    Hash[m.names.zip(m.captures)]",
        "x.to_i.to_s(16)",
        "hash = {}\n    x.each { |k, v| hash[k] = v }\n    hash",
        "hash, id = x\n    hash.merge('id' => id)",
        "a, *b = x\n    b.sum { |p| p.to_i } + a",
        "scope = closure_scope\n    scope['facts']['memorysize']",
        "JSON.parse(x)['a'].dig('b', 0)",
        "URI::Generic.build({ host: x }).to_s",
        "call_function('join', x, ',') rescue nil",
        "begin\n      Integer(x)\n    rescue ArgumentError, TypeError => e\n      0\n    end",
        "case x when Hash then 1 when /a/i, 'b' then $1 else x&.size end",
        "x.map(&:to_s).inject(:+)",
        "helper(x)\n  end\n\n  def helper(y, z: 1, **rest)\n    format('%s %s', y, z)",
        "[*1..3].each_with_object({}) { |i, h| h[i] = i ** 2 }",
        "result = +''\n    result << <<~TEXT\n      a #{x}\n    TEXT\n    result",
        "Gem::Version.new(RUBY_VERSION) < Gem::Version.new('2.4.0')\n  end\n\n  private\n\n  def helper(y)\n    y",
        "Puppet.warning('careful')\n    raise Puppet::ParseError, 'no' unless x",
        "RUBY_VERSION",
        "y = x.clone\n    [y.at(0)].pack('n') + IPAddr.new(y).mask(24).to_s",
        "begin\n      x.size\n    rescue => e\n      raise Puppet::ParseError, e.message, e.backtrace\n    end",
        "File.exist?(x) ? File.read(x) : Puppet[:confdir]",
        'begin\n      x.size\n    rescue Yaml::SyntaxError => e\n      raise Puppet::Error, "no: #{e.message}"\n    end',
    ],
)
def test_code_of_listed_methods_reads_nothing_else(body: str) -> None:
    assert function_impurity(function(body)) is None
    if "def " not in body:
        assert function_impurity(legacy(body)) is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("Time.now", "Time.now"),
        ("Time.new.strftime('%s')", "Time.new"),
        ("Date.today", "Date.today"),
        ("rand", "rand"),
        ("rand(5)", "the method rand"),
        ("x.shuffle", "the method shuffle"),
        ("x.sample", "the method sample"),
        ("[1].sum { Random.new.rand }", "Random.new"),
        ("SecureRandom.hex", "SecureRandom.hex"),
        ("File.open(x)", "File.open"),
        ("File.foreach(x)", "File.foreach"),
        ("f = File\n    f.exist?(x)", "File"),
        ("[File].map { |f| f.exist?(x) }", "File"),
        ("f = File\n    f.read(x)", "File"),
        ("IO.readlines(x)", "IO.readlines"),
        ("open(x).size", "the method open"),
        ("ENV['HOME']", "ENV"),
        ("Dir['/*']", "Dir"),
        ("Dir.glob('/*')", "Dir.glob"),
        ("`id`", "`id`"),
        ("%x{id}", "%x{id}"),
        ("system('id')", "the method system"),
        ("Facter.value('a')", "Facter.value"),
        ("Process.pid", "Process.pid"),
        ("$$", "$$"),
        ("$PROGRAM_NAME", "$PROGRAM_NAME"),
        ("x.send(:system, 'id')", "the method send"),
        ("x.public_send(y)", "the method public_send"),
        ("x.map(&method(:system))", "&method(:system)"),
        ("x.map(&:system)", "&:system"),
        ("x.inject(:system)", "x.inject(:system)"),
        ("eval('1')", "the method eval"),
        ("x.instance_eval { 1 }", "the method instance_eval"),
        ("x.instance_variable_get(:@a)", "the method instance_variable_get"),
        ("Object.const_get('File')", "Object.const_get"),
        ("Kernel.srand", "Kernel.srand"),
        ("x.object_id", "the method object_id"),
        ("x.hash", "the method hash"),
        ("'#{self}'.size\n    \"#{self}\"", "self"),
        ("lambda { 1 }.to_s", "the method lambda"),
        ("-> { 1 }.to_s", "-> { 1 }"),
        ("@a ||= x", "@a"),
        ("@@a = x", "@@a"),
        ("$a = x", "$a"),
        ("A = x", "A"),
        ("__FILE__", "__FILE__"),
        ("require 'net/http'\n    x", "require 'net/http'"),
        ("begin\n      x.a\n    rescue => e\n      e.message\n    end", "the method a"),
        ('begin\n      x.size\n    rescue => e\n      "#{e}"\n    end', "=> e"),
        ("f = Puppet", "Puppet"),
        ("Puppet::FileSystem.exist?(x)", "Puppet::FileSystem.exist?"),
        ("rand\n    rand = 1", "rand"),
        ("y = rand\n    rand = y", "rand"),
        ("rand = rand", "rand"),
        ("x.each { rand = 1 }\n    rand", "rand"),
        ("x.y = 5", "the method y"),
        ("x.()", "x.()"),
        ("yield", "yield"),
        ("JSON.load(x)", "JSON.load"),
        ("test ? 1 : 2", "test"),
        ("Dir[x]", "Dir"),
        ("x = <<`CMD`\n    id\nCMD\n    x", "<<`CMD`"),
        ("x =~ /#{x}/o", "/#{x}/o"),
        ("x.inject('system')", "x.inject('system')"),
        ("x.reduce(1, y)", "x.reduce(1, y)"),
        (":send.to_proc.call(x, :system)", "the method to_proc"),
        ("x.chunk_while { 1 }.inspect", "the method chunk_while"),
        ("defined?(Foo)", "Foo"),
        ("__method__", "__method__"),
        ("BEGIN { 1 }", "BEGIN { 1 }"),
    ],
)
def test_anything_else_is_named_with_its_line(body: str, reason: str) -> None:
    for text, line in ((function(body), 4), (legacy(body), 3)):
        impurity = function_impurity(text)
        assert impurity is not None, body
        assert impurity.reason.startswith(reason)
        assert line <= impurity.line <= line + body.count("\n")


@pytest.mark.parametrize(
    ("text", "impurity"),
    [
        (function("x").replace("  def f", "  cache = {}\n  def f"), Impurity("cache = {}", 3)),
        ("cache = []\n" + legacy("x"), Impurity("cache = []", 1)),
        ("require 'puppet_x/m/util'\n" + function("x"), Impurity("require 'puppet_x/m/util'", 1)),
        (function("x") + "puts 1\n", Impurity("the method puts", 7)),
        ("class String\n  def a; end\nend\n" + function("x"), Impurity("class String", 1)),
        (function("x").replace("(x)", "(x, &b)"), Impurity("&b", 3)),
        (function("x").replace("def f(x)", "def rand(x)"), Impurity("def rand(x)", 3)),
        (function("x").replace("  def f", "  def self.g; end\n  def f"), Impurity("def self.g; end", 3)),
        (function("x").replace("  def f", "  define_method(:g) { 1 }\n  def f"), Impurity("the method define_method", 3)),
    ],
)
def test_what_lives_longer_than_a_call_is_named(text: str, impurity: Impurity) -> None:
    assert function_impurity(text) == impurity


def test_templates_are_judged_in_the_same_way() -> None:
    assert (
        template_impurity("a\n<% require 'yaml' -%>\n<%= @a.to_yaml.gsub(/^---/, '') %>\n<% def f(x) x.to_s end %><%= f(@b ||= 1) %>")
        is None
    )
    assert template_impurity("<%# one\ntwo %>\n<%= @a %>\n<%= Time.now.year %>") == Impurity("Time.now", 4)
    assert template_impurity("<% @a.each do |p| -%>\n<%= p %>\n<% end %><%= p %>") == Impurity("p", 3)
    assert template_impurity("<%= instance_variable_get(:@a) %>") == Impurity("the method instance_variable_get", 1)
    assert template_impurity("<%= 'a' %%>") == Impurity("%%> in a tag", 1)


@pytest.mark.parametrize(
    "path", sorted([*(OWN / "erb").glob("*.erb"), *(OWN / "ruby_functions").rglob("*.rb")]), ids=lambda path: path.name
)
def test_templates_that_are_translated_and_plain_functions_read_nothing_else(path: Path) -> None:
    text = path.read_text()
    assert (template_impurity if path.suffix == ".erb" else function_impurity)(text) is None
