# frozen_string_literal: true

# Renders templates with Ruby's own ERB, as the judge of translated ones: a JSON document a line in, a JSON document a line out.

require 'erb'
require 'json'

module Puppet
  class Error < RuntimeError; end
  class ParseError < Error; end
end

# What templates may ask, answered from the variables of one case.
class FakeScope
  def initialize(variables, values = {})
    @variables = variables
    @values = values
  end

  def lookupvar(name, _options = nil)
    raise "Scope variable name #{name.inspect} is a #{name.class}, not a string" unless name.is_a?(String)

    @values.fetch(name) { JSON.parse(JSON.generate([@variables[name]]))[0] }
  end
  alias [] lookupvar

  def setvar(name, value)
    @values[name] = value
  end

  def to_hash
    JSON.parse(JSON.generate(@variables)).compact
  end

  def include?(name)
    !@variables[name].nil?
  end

  def call_function(name, args)
    args = [*args]
    return versioncmp(*args) if name == 'versioncmp'

    "#{name}#{JSON.generate(args)}"
  end

  def versioncmp(one, two)
    parts = [one, two].map { |each| each.to_s.scan(/\d+/).map(&:to_i) }
    parts[0] <=> parts[1]
  end

  def method_missing(name, *args)
    raise ArgumentError, 'custom functions must be called with a single array' unless args.size == 1 && args[0].is_a?(Array)

    call_function(name.to_s.delete_prefix('function_'), args[0])
  end

  def respond_to_missing?(name, _all = false)
    name.start_with?('function_')
  end
end

# The object in which one template is rendered.
class Wrapper
  attr_reader :scope

  def initialize(variables)
    @scope = FakeScope.new(variables)
    copies = JSON.parse(JSON.generate(variables))
    copies.each { |name, value| instance_variable_set("@#{name}", value) if name.match?(/\A[a-z_]\w*\z/i) && !value.nil? }
    remove_instance_variable(:@scope) if copies['scope'].nil?
    @judged_scope = FakeScope.new(variables)
  end

  def scope
    @judged_scope
  end

  def has_variable?(name)
    scope.include?(name)
  end
end

def judged(question)
  erb = ERB.new(question['template'], trim_mode: '-')
  erb.filename = 'judged.erb'
  made = Class.new(Wrapper)
  erb.def_method(made, 'render', 'judged.erb')
  text = made.new(question['variables']).render
  { 'text' => text.to_s }
rescue StandardError, SyntaxError, NotImplementedError => e
  line = e.backtrace.to_a.map { |each| each[/\Ajudged\.erb:(\d+)/, 1] }.compact.first
  { 'error' => e.message.lines.first.to_s.chomp, 'class' => e.class.name, 'line' => line.to_i }
end

$stdout.sync = true
$stderr.reopen(File::NULL)
while (line = $stdin.gets)
  puts JSON.generate(judged(JSON.parse(line)))
end
