# frozen_string_literal: true

# The part of Puppet's Ruby that templates and functions of modules usually need. Anything else raises an error that names it.

require_relative '../../shared/ruby/puppet'
require_relative '../../shared/ruby/sensitive'
require_relative '../../shared/ruby/util'
require_relative '../../shared/ruby/execution'

module Bunraku
  # Puppet's log levels as methods.
  module Logging
    def debug(text)
      Bunraku.ask('log', 'debug', text.to_s) if Bunraku.desk.debug
    end

    %w[info notice warning err alert emerg crit].each do |level|
      define_method(level) { |text| Bunraku.ask('log', level, text.to_s) }
    end
  end
end

module Puppet
  extend Bunraku::Logging

  # The errors of look-ups.
  module DataBinding
    extend Bunraku::Lacks

    class LookupError < ParseError; end
  end

  class << self
    def [](name)
      value = Bunraku.ask('setting', name.to_s)
      name.to_s == 'strict' ? value.to_sym : value
    end

    # Functions that look for a variable in vain set `strict`, and set it back.
    def []=(name, value)
      raise Bunraku::Lacking, "Puppet[:#{name}]=" unless name.to_s == 'strict' && %w[off warning error].include?(value.to_s)

      Bunraku.ask('set_strict', value.to_s)
    end

    # The settings, of which `Puppet.settings[…]` reads one.
    def settings
      Settings
    end

    def lookup(name)
      return Parser::Environment.current if name == :current_environment
      return yield if block_given?

      raise Bunraku::Lacking, "Puppet.lookup(:#{name})"
    end

    def version
      PUPPETVERSION
    end

    def warn_once(kind, key, message, *)
      Bunraku.ask('warn_once', kind.to_s, key.to_s, message.to_s)
    end

    def deprecation_warning(message, key = nil)
      warn_once('deprecations', key || message, message)
    end
  end

  PUPPETVERSION = '7.23.0' # the version that modules see

  # What `Puppet.settings` is used for.
  module Settings
    extend Bunraku::Lacks

    def self.[](name)
      Puppet[name]
    end

    def self.value(name)
      Puppet[name]
    end
  end

  # A module of the environment.
  Module = Struct.new(:name, :path, :metadata) do
    # Returns the module of a name; nil when there is none.
    def self.find(name, environment = nil)
      current = Parser::Environment.current
      unless environment.nil? || environment.to_s == current.to_s
        raise Bunraku::Lacking, "Puppet::Module.find in the environment #{environment}, which is not this node's"
      end

      current.module(name)
    end

    def version
      metadata['version']
    end

    def author
      metadata['author']
    end

    def environment
      Parser::Environment.current
    end

    # Returns the path of a file of the module; nil when there is none.
    def file(name)
      Parser::Files.find_file("#{self.name}/#{name}")
    end

    def template(name)
      Parser::Files.find_template("#{self.name}/#{name}")
    end

    def exist?
      true
    end

    def to_s
      "Module #{name}(#{path})"
    end
  end

  module Util
    module Package
      extend Bunraku::Lacks

      def self.versioncmp(one, two)
        Bunraku.ask('call', 'versioncmp', [one, two], nil).first
      end
    end
  end

  module Parser
    extend Bunraku::Lacks

    # The calling scope, or (`top`) top scope; everything is asked of the compiler.
    class Scope
      include Bunraku::Logging

      def initialize(top: false)
        @top = top
      end

      def lookupvar(name, _options = nil)
        raise ParseError, "Scope variable name #{name.inspect} is a #{name.class}, not a string" unless name.is_a?(String)

        Bunraku.desk.watch(name, @top, Bunraku.ask('variable', name, top: @top))
      end
      alias [] lookupvar

      def []=(name, value)
        setvar(name, value)
      end

      # A value that is set here is looked up as the same object: modules change it, and use keys in it that are no values of the language.
      def setvar(name, value, _options = nil)
        raise ParseError, "Scope variable name #{name.inspect} is a #{name.class}, not a string" unless name.is_a?(String)
        raise ParseError, "Cannot assign to a numeric match result variable '$#{name}'" if name.match?(/\A\d+\z/)

        Bunraku.ask('set', name, Bunraku.desk.hold(value), value, top: @top)
        value
      end

      def include?(name)
        !Bunraku.ask('peek', name.to_s, top: @top).nil?
      end

      def exist?(name)
        Bunraku.ask('exists', name.to_s, top: @top)
      end

      # Whether a variable is set in this very scope.
      def bound?(name)
        Bunraku.ask('bound?', name.to_s, top: @top)
      end

      def to_hash(_recursive = true, include_undef = false)
        found = Bunraku.ask('variables', top: @top)
        include_undef ? found : found.compact
      end

      # What is no array is splatted: nil is no argument, a hash its pairs.
      def call_function(name, args, &block)
        args = [*args]
        value, changes = Bunraku.ask('call', name.to_s, args, block, top: @top)
        changes.each { |index, after| args[index].replace(after) }
        value
      end

      # The resource defaults of a type by attribute.
      def lookupdefaults(type)
        Bunraku.ask('defaults', type.to_s, top: @top).transform_keys(&:to_sym)
      end

      def catalog
        Catalog.new
      end

      # The resource whose body is evaluated.
      def resource
        Resource.of(Bunraku.ask('own_resource', top: @top))
      end

      # `Type[title]`, or type and title; nil when it is not in the catalog yet.
      def findresource(type, title = nil)
        type, title = type.match(/\A([\w:]+)\[(.+)\]\z/m)&.captures || [type, ''] if title.nil?
        Resource.of(Bunraku.ask('resource', type.to_s, title.to_s))
      end

      def environment
        Environment.current
      end

      def compiler
        Compiler.new
      end

      # The class, define or node whose body is evaluated.
      def source
        found = Bunraku.ask('source', top: @top)
        found && Source.new(found['name'], found['type'].to_sym, found['module'], found['file'], found['line'])
      end

      def find_global_scope
        Scope.new(top: true)
      end

      { is_topscope?: 'top', is_nodescope?: 'node', is_classscope?: 'class' }.each do |name, kind|
        define_method(name) { Bunraku.ask('scope_kind', top: @top) == kind }
      end

      def tags
        catalog.tags
      end

      def to_s
        Bunraku.ask('scope_name', top: @top)
      end
      alias inspect to_s

      def respond_to_missing?(name, include_all = false)
        name.start_with?('function_') ? Bunraku.ask('function?', name.to_s.delete_prefix('function_')) : super
      end

      def method_missing(name, *args)
        raise Bunraku::Lacking, "Puppet::Parser::Scope##{name}" unless name.start_with?('function_')
        unless args.size == 1 && args[0].is_a?(Array)
          raise ArgumentError, 'custom functions must be called with a single array that contains the arguments. ' \
                               'For example, function_example([1]) instead of function_example(1)'
        end

        call_function(name.to_s.delete_prefix('function_'), args[0])
      end
    end

    # What the compiler works on.
    class Compiler
      def environment
        Environment.current
      end

      def catalog
        Catalog.new
      end

      def topscope
        Scope.new(top: true)
      end

      def findresource(type, title = nil)
        topscope.findresource(type, title)
      end

      def method_missing(name, *)
        raise Bunraku::Lacking, "Puppet::Parser::Compiler##{name}"
      end

      def respond_to_missing?(*)
        false
      end
    end

    # A class, define or node, as far as functions read it.
    Source = Struct.new(:name, :type, :module_name, :file, :line)

    # Only the part that templates and functions read.
    class Catalog
      def resource(type, title = nil)
        Scope.new.findresource(type, title)
      end

      def resources
        Bunraku.ask('resources').map { |found| Resource.of(found) }
      end

      def classes
        Bunraku.ask('classes')
      end

      def tags
        Bunraku.ask('tags')
      end

      def method_missing(name, *)
        raise Bunraku::Lacking, "Puppet::Resource::Catalog##{name}"
      end

      def respond_to_missing?(*)
        false
      end
    end

    # The folders of the environment.
    module Files
      extend Bunraku::Lacks

      def self.find_template(name, _environment = nil)
        Bunraku.ask('find', name.to_s, 'templates')
      end

      def self.find_file(name, _environment = nil)
        Bunraku.ask('find', name.to_s, 'files')
      end
    end

    # A resource of the catalog as it is now; `identity` is what its title says.
    Resource = Struct.new(:type, :title, :parameters, :identity, :file, :line, :tags, :virtual, :exported) do
      def self.of(found)
        return if found.nil?

        parameters, identity = found.values_at('parameters', 'identity').map { |values| values.transform_keys(&:to_sym) }
        new(found['type'], found['title'], parameters, identity, *found.values_at('file', 'line', 'tags', 'virtual', 'exported'))
      end

      alias_method :name, :title
      alias_method :virtual?, :virtual
      alias_method :exported?, :exported

      def to_hash
        identity.merge(parameters.compact)
      end
      alias_method :to_h, :to_hash

      def [](name)
        parameters[name.to_sym]
      end

      def to_s
        "#{type}[#{title}]"
      end
      alias_method :ref, :to_s

      def inspect
        "#{self}#{to_hash}"
      end
    end

    # The environment that the catalog is compiled in.
    Environment = Struct.new(:name) do
      def self.current
        new(Bunraku.ask('environment').to_sym)
      end

      # Returns a module; nil when there is none of the name.
      def module(name)
        found = Bunraku.ask('module', name.to_s)
        found && Puppet::Module.new(*found.values_at('name', 'path', 'metadata'))
      end

      def to_s
        name.to_s
      end

      def method_missing(name, *)
        raise Bunraku::Lacking, "Puppet::Node::Environment##{name}"
      end

      def respond_to_missing?(*)
        false
      end
    end

    # The class of `self` in a template; each template has a subclass of its own.
    class TemplateWrapper
      include Bunraku::Logging

      def self.compiled(text, file)
        erb = ERB_MADE.call(text)
        erb.filename = file || '(erb)'
        found = Class.new(self) { define_method(:file) { file } }
        begin
          erb.def_method(self, 'result', erb.filename) # as Puppet's, for __method__; a method that it defines is one of all templates
          found.define_method(:result, instance_method(:result))
          remove_method(:result)
        rescue SyntaxError # such as a class in it, which a method cannot have; if it is not that, rendering says so
          found.define_method(:result) { erb.result(binding) }
        end
        found
      end

      ERB_MADE = if ERB.instance_method(:initialize).parameters.include?(%i[key trim_mode])
                   ->(text) { ERB.new(text, trim_mode: '-') }
                 else
                   ->(text) { ERB.new(text, 0, '-') }
                 end
      private_constant :ERB_MADE

      def scope
        @__scope__ ||= Scope.new
      end

      def has_variable?(name)
        scope.include?(name.to_s)
      end

      def classes
        scope.catalog.classes
      end

      def all_tags
        scope.catalog.tags
      end

      def tags
        raise NotImplementedError, "Call 'all_tags' instead."
      end
    end
  end
end

module Puppet
  module Pops
    module Types
      # The type whose values are octets.
      class PBinaryType
        extend Bunraku::Lacks

        Binary = Bunraku::Binary
      end
    end

    # The configuration of Hiera, of which back ends use one helper.
    module Lookup
      extend Bunraku::Lacks

      # Only the part that modules use.
      class HieraConfig
        extend Bunraku::Lacks

        def self.symkeys_to_string(value)
          case value
          when Hash then value.map { |key, each| [key.is_a?(Symbol) ? key.to_s : key, symkeys_to_string(each)] }.to_h
          when Array then value.map { |each| symkeys_to_string(each) }
          else value
          end
        end
      end
    end
  end
end

# The facts of the node whose catalog is compiled.
module Facter
  extend Bunraku::Lacks

  # A fact with its value.
  Fact = Struct.new(:name, :value)

  class << self
    def value(name)
      Bunraku.ask('fact', name.to_s.downcase)
    end

    def fact(name)
      found = value(name)
      found.nil? ? nil : Fact.new(name.to_s, found)
    end
    alias [] fact

    def to_hash
      Bunraku.ask('facts')
    end

    def version
      value('facterversion')
    end
  end
end

module Hiera
  extend Bunraku::Lacks
end
