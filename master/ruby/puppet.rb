# frozen_string_literal: true

# The part of Puppet's Ruby that templates and functions of modules usually need. Anything else raises an error that names it.

require_relative '../../shared/ruby/puppet'
require_relative '../../shared/ruby/sensitive'

module Bunraku
  # Puppet's log levels as methods.
  module Logging
    %w[debug info notice warning err alert emerg crit].each do |level|
      define_method(level) { |text| Bunraku.ask('log', level, text.to_s) }
    end
  end
end

module Puppet
  extend Bunraku::Logging

  class << self
    def [](name)
      Bunraku.ask('setting', name.to_s)
    end

    def version
      Bunraku.ask('version')
    end

    def warn_once(kind, key, message, *)
      Bunraku.ask('warn_once', kind.to_s, key.to_s, message.to_s)
    end

    def deprecation_warning(message, key = nil)
      warn_once('deprecations', key || message, message)
    end
  end

  module Util
    extend Bunraku::Lacks

    module Package
      extend Bunraku::Lacks

      def self.versioncmp(one, two)
        Bunraku.ask('call', 'versioncmp', [one, two], nil)
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

        Bunraku.ask('variable', name, top: @top)
      end
      alias [] lookupvar

      # A value that is set here is looked up as the same object: modules change it, and use keys in it that are no values of the language.
      def setvar(name, value, _options = nil)
        Bunraku.ask('set', name, Bunraku.desk.hold(value), value, top: @top)
        value
      end

      def include?(name)
        !Bunraku.ask('peek', name, top: @top).nil?
      end

      def exist?(name)
        Bunraku.ask('exists', name, top: @top)
      end

      def to_hash(_recursive = true, include_undef = false)
        found = Bunraku.ask('variables', top: @top)
        include_undef ? found : found.compact
      end

      # What is no array is splatted: nil is no argument, a hash its pairs.
      def call_function(name, args, &block)
        Bunraku.ask('call', name.to_s, [*args], block, top: @top)
      end

      # The resource defaults of a type by attribute.
      def lookupdefaults(type)
        Bunraku.ask('defaults', type, top: @top).transform_keys(&:to_sym)
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
        Environment.new(Bunraku.ask('environment'))
      end

      # `compiler.environment`, `compiler.catalog`
      def compiler
        self
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

    # Only the part that templates and functions read.
    class Catalog
      def resource(type, title = nil)
        Scope.new.findresource(type, title)
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
        Bunraku.ask('find', name, 'templates')
      end

      def self.find_file(name, _environment = nil)
        Bunraku.ask('find', name, 'files')
      end
    end

    # A resource of the catalog as it is now.
    Resource = Struct.new(:type, :title, :parameters) do
      def self.of(found)
        found && new(found['type'], found['title'], found['parameters'].transform_keys(&:to_sym))
      end

      alias_method :name, :title
      alias_method :to_hash, :parameters

      def [](name)
        parameters[name.to_sym]
      end

      def to_s
        "#{type}[#{title}]"
      end
      alias_method :ref, :to_s
      alias_method :inspect, :to_s
    end

    Environment = Struct.new(:name) do
      def to_s
        name
      end
    end

    # The class of `self` in a template; each template has a subclass of its own.
    class TemplateWrapper
      include Bunraku::Logging

      def self.compiled(text, file)
        erb = ERB_MADE.call(text)
        erb.filename = file || '(erb)'
        found = Class.new(self)
        begin
          erb.def_method(found, 'render', erb.filename)
        rescue SyntaxError # such as a class in it, which a method cannot have; if it is not that, rendering says so
          found.define_method(:render) { erb.result(binding) }
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
  end
end

module Hiera
  extend Bunraku::Lacks
end
