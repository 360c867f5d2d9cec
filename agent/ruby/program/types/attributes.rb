# frozen_string_literal: true

module Bunraku
  class << self
    # The names of all metaparameters, which the agent says.
    attr_accessor :metaparameters
  end
  self.metaparameters = []

  # A parameter of every type: the agent applies it, here it is only known.
  class Metaparameter
    attr_reader :name
    attr_accessor :value, :sensitive

    def initialize(name, resource)
      @name = name
      @resource = resource
    end

    def should
      nil
    end

    def metaparam?
      true
    end
  end

  # The attribute `provider` of types that have any.
  class ProviderParameter < Puppet::Parameter
    def default
      resource.class.defaultprovider&.name
    end

    def unsafe_validate(value)
      value = value.first if value.is_a?(Array)
      return if value.is_a?(Puppet::Provider) || resource.class.provider(value.to_s)

      raise ArgumentError, "Invalid #{resource.class.name} provider '#{value}'"
    end

    def unsafe_munge(value)
      value = value.first if value.is_a?(Array)
      resource.provider = value
      value.is_a?(Puppet::Provider) ? value.class.name : value.to_sym
    end
  end

  # `provider_loader` of a type.
  class ProviderLoader
    def initialize(type)
      @type = type
    end

    def load(name, *)
      @type.provider(name)
    end

    def loadall(*)
      @type.providers
    end
  end
end
