# frozen_string_literal: true

module Puppet
  # Types that are declared as data, and providers that get and set states.
  module ResourceApi
    extend Bunraku::Lacks

    VERSION = '2.0.1' # the version of the interface that modules see
    @warning_count = 0

    class << self
      attr_accessor :warning_count

      # Declares a type.
      def register_type(definition)
        checked = TypeDefinition.new(definition)
        name = class_name_from_type_name(checked.name)
        Provider.const_set(name, Module.new) unless Provider.const_defined?(name, false)
        Type.newtype(checked.name.to_sym) do
          extend Bunraku::ResourceApi::Declaration
          include Bunraku::ResourceApi::Resource
          define(checked)
        end
      end

      # Returns the class of a type's provider; its file is read when it is needed.
      def load_provider(type_name)
        name = class_name_from_type_name(type_name)
        begin
          Bunraku.desk.require_library("puppet/provider/#{type_name}/#{type_name}")
          Provider.const_get(name, false).const_get(name, false)
        rescue Bunraku::Lacking
          raise
        rescue NameError
          raise DevError, "provider class Puppet::Provider::#{name}::#{name} not found in puppet/provider/#{type_name}/#{type_name}"
        end
      end

      def class_name_from_type_name(type_name)
        type_name.to_s.split('_').map(&:capitalize).join
      end

      # Whether values are texts of a command line.
      def caller_is_resource_app?
        Bunraku.desk.texts?
      end

      # Returns what the setting `strict` says: off, warning or error.
      def strictness
        @strictness ||= Puppet[:strict].to_s
      end
    end
  end

  module Util
    # Devices that an agent manages over the network; there are none.
    class NetworkDevice
      extend Bunraku::Lacks

      def self.current
        nil
      end
    end
  end
end

%w[values definition context attributes type provider].each { |part| require_relative part }
