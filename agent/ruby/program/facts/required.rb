# frozen_string_literal: true

module Bunraku
  # Files of Facter that modules require, of which everything is here already or raises an error when it is used.
  FACTERS_FILES = %r{\Afacter(/version|/(custom_facts|framework|models|resolvers)/.*|/util/(file_helper|utils))?\z}.freeze

  # Answers `require` for what would be Puppet's or Facter's own file.
  def self.offer(name)
    name = name.chomp('.rb')
    return false if name.match?(/\A(puppet|hiera)(\/|\z)/) || name.match?(FACTERS_FILES)

    raise LoadError, "cannot load such file -- #{name}"
  end
end

module Puppet
  # The types of the agent, of which facts ask for the default provider.
  class Type
    extend Bunraku::Lacks

    attr_reader :name

    def self.type(name)
      new(name.to_sym)
    end

    def initialize(name)
      @name = name
    end

    # A resource, which only has the attributes that it was given, and a provider.
    def instance(attributes = {})
      given = attributes.map { |attribute, value| [attribute.to_sym, value] }.to_h
      given[:provider] ||= defaultprovider.name
      Resource.new(self, given)
    end

    # Returns the provider that the agent takes here; nil when none fits.
    def defaultprovider
      name = Bunraku.ask('default_provider', @name.to_s)
      name && Provider.new(name.to_sym)
    end

    # @!attribute resource of which it is; nil of a type's default
    Provider = Struct.new(:name, :resource) do
      # Whether a service runs.
      def status
        raise Bunraku::Lacking, "Puppet::Type::Provider(:#{name}).status" unless resource && resource.type.name == :service

        command = Bunraku::SystemService.command('status', resource.name)
        Puppet::Util::Execution.execute(command, failonfail: false).exitstatus.zero? ? :running : :stopped
      end
    end

    # What `newpackage` and the like return.
    Resource = Struct.new(:type, :attributes) do
      def [](name)
        attributes[name.to_sym]
      end

      def provider
        Provider.new(attributes[:provider], self)
      end

      def name
        attributes[:name]
      end
    end

    def respond_to_missing?(name, *)
      name == :"new#{@name}" || name == :new
    end

    def method_missing(name, *args)
      return instance(*args) if respond_to_missing?(name)

      raise Bunraku::Lacking, "Puppet::Type.type(:#{@name}).#{name}"
    end
  end
end
