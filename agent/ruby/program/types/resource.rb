# frozen_string_literal: true

module Puppet
  # A resource as data: what the catalog has of types that are not Ruby's, and what `retrieve` returns.
  class Resource
    include Enumerable

    attr_accessor :file, :line, :catalog, :virtual, :exported, :sensitive_parameters
    attr_accessor :bunraku_id, :purging # the agent's number for it; whether it is there to be removed
    attr_reader :type, :title

    def initialize(type, title = nil, options = {})
      type, title = Resource.split(type, title)
      @type = type
      @title = title.to_s
      @parameters = {}
      (options[:parameters] || {}).each { |name, value| self[name] = value }
      @catalog = options[:catalog]
      @sensitive_parameters = []
      @tags = []
    end

    # Returns a type's name as references have it, and a title.
    def self.split(type, title)
      return [Resource.capitalized(type.name), title] if type.is_a?(Class)
      return [type.type, type.title] if type.is_a?(Resource)

      match = title.nil? ? type.to_s.match(/\A([^\[\]]+)\[(.+)\]\z/m) : nil
      match ? [capitalized(match[1]), match[2]] : [capitalized(type), title]
    end

    def self.capitalized(type)
      type.to_s.split('::').map(&:capitalize).join('::')
    end

    def [](name)
      @parameters[name.to_sym]
    end

    def []=(name, value)
      @parameters[name.respond_to?(:name) && !name.is_a?(Symbol) ? name.name.to_sym : name.to_sym] = value
    end

    def delete(name)
      @parameters.delete(name.to_sym)
    end

    def key?(name)
      @parameters.key?(name.to_sym)
    end
    alias include? key?

    def each(&block)
      @parameters.each(&block)
    end

    def keys
      @parameters.keys
    end

    def to_hash
      @parameters.dup
    end
    alias to_h to_hash
    alias parameters to_hash

    def name
      self[:name] || title
    end

    def should(name)
      self[name]
    end
    alias value should

    def ref
      "#{@type}[#{@title}]"
    end
    alias to_s ref
    alias inspect ref

    def resource_type
      Puppet::Type.type(@type.downcase.to_sym)
    end

    def tags
      @tags.dup
    end

    def tag(*names)
      @tags |= names.map(&:to_s)
    end

    def to_ral
      resource_type.new(self)
    end

    def ==(other)
      other.is_a?(Resource) && other.ref == ref && other.to_hash == to_hash
    end

    # Reads what is there of a type: `Puppet::Resource.indirection`.
    module Indirection
      module_function

      # @param key [String] a type and a name, `user/root`
      def find(key)
        type, name = key.split('/', 2)
        declared = type_called(type)
        found = declared.instances.find { |each| each.name == name }
        (found || declared.new(name: name, audit: declared.validproperties)).to_resource
      end

      def search(key, *)
        type_called(key.split('/').first).instances.map(&:to_resource).sort_by(&:title)
      end

      def type_called(name)
        Puppet::Type.type(name) or raise Puppet::Error, "Could not find type #{name}"
      end
    end

    def self.indirection
      Indirection
    end

    # The catalog of the run.
    class Catalog
      extend Bunraku::Lacks

      # Returns the resource of a reference, nil for none: one of Ruby's itself, another as data.
      def resource(type, title = nil)
        type, title = Resource.split(type, title)
        Bunraku.desk.catalog_resource(type, title)
      end

      def resources
        Bunraku.desk.catalog_resources
      end

      def resource_refs
        resources.map(&:ref)
      end

      def resource_keys
        resources.map { |each| [each.is_a?(Resource) ? each.type : Resource.capitalized(each.type), each.title] }
      end

      def classes
        Bunraku.ask('classes')
      end

      def host_config?
        true
      end

      def environment
        Puppet[:environment]
      end

      def environment_instance
        Environment.new(environment)
      end

      def version
        Bunraku.ask('catalog_version')
      end

      def method_missing(name, *)
        raise Bunraku::Lacking, "Puppet::Resource::Catalog##{name}"
      end

      def respond_to_missing?(*)
        false
      end
    end
  end
end
