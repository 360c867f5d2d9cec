# frozen_string_literal: true

module Bunraku
  module ResourceApi
    # What the attributes of the Resource API have in common: a data type.
    module Declared
      attr_accessor :data_type, :type_name

      # Returns a value as providers get it; raises ResourceError for one that is not of the type.
      def accept(value)
        return Values.converted(*to_check(value)) if Bunraku.desk.texts?

        value = plain(value)
        error = complaints.fetch(value) { Values.complaints([to_check(value)]).first }
        raise Puppet::ResourceError, error if error

        value
      end

      # Returns why values are not of the type, of those that the agent has been asked about ahead; nil for one that is.
      def complaints
        @complaints ||= {}
      end

      # Returns what is asked about a value.
      def to_check(value)
        [data_type, value, "#{type_name}.#{name}"]
      end

      # @param options [Hash] what the definition says of the attribute
      def declare(type, options)
        @type_name = type.type_definition.name
        @data_type = type.type_definition.type_of(name, options[:type])
        desc("#{options[:desc]} (a #{options[:type]})") if options[:desc]
        isnamevar if options[:behaviour] == :namevar
        declare_default(options[:default]) if options[:behaviour] != :read_only && options.key?(:default)
        declare_values
      end

      # Returns a value with the truth values as they are in Ruby.
      def plain(value)
        return value.to_s if name == :ensure && self <= Puppet::Property

        value.is_a?(Symbol) ? { false: false, true: true }.fetch(value, value) : value
      end

      private

      # Each resource gets a copy of its own, which a provider may change.
      def declare_default(value)
        copy = Marshal.dump(value)
        define_method(:default) do
          found = Marshal.load(copy) # rubocop:disable Security/MarshalLoad -- written two lines above
          { true => :true, false => :false }.fetch(found, found) # rubocop:disable Lint/BooleanSymbol -- a default of false is one
        end
      end

      # Lists values for the documentation; the data type decides.
      def declare_values
        newvalues('true', 'false') if data_type.boolean
        newvalues('absent', 'present') if data_type.enum
      end
    end
  end
end

module Puppet
  module ResourceApi
    # An attribute that steers.
    class Parameter < Puppet::Parameter
      extend Bunraku::ResourceApi::Declared

      attr_reader :value

      def value=(value)
        @value = self.class.accept(value)
      end

      # Returns the value as providers get it.
      def rs_value
        @value
      end
    end

    # An attribute that only `get` sets.
    class ReadOnlyParameter < Parameter
      def value=(value)
        raise ResourceError, "Attempting to set `#{name}` read_only attribute value to `#{value}`"
      end
    end

    # An attribute that is compared with what `get` returned.
    class Property < Puppet::Property
      extend Bunraku::ResourceApi::Declared

      HIDDEN_CHANGE = 'Custom insync logic determined that this resource is out of sync'

      # Returns the desired value as the transaction shows it.
      def should
        value = rs_value
        return value.to_sym if name == :ensure && value.is_a?(String)

        { true => :true, false => :false }.fetch(value, value) # rubocop:disable Lint/BooleanSymbol
      end

      def should=(value)
        @shouldorig = value
        @should = [self.class.accept(value)]
      end

      # Returns the desired value as providers get it.
      def rs_value
        @should ? @should.first : nil
      end

      def unsafe_munge(value)
        value
      end

      def insync?(is)
        return plain_insync?(is) unless definition.feature?('custom_insync')

        unless resource.my_provider.respond_to?(:insync?)
          raise DevError, 'No insync? method defined in the provider; ' \
                          'an insync? method must be defined if the custom_insync feature is defined for the type'
        end
        insync, message = resource.my_provider.insync?(resource.context, resource.rsapi_title, name, resource.rsapi_current_state,
                                                       resource.rsapi_canonicalized_target_state)
        @change = message unless insync.nil? || message.nil? || message.empty?
        return insync if [true, false].include?(insync)
        return plain_insync?(is) if insync.nil?

        raise DevError, "Custom insync for #{name} returned a #{insync.class} with a value of #{insync.inspect} instead of true/false; " \
                        'insync? MUST return nil or the boolean true or false'
      end

      # Whether a value is one that the property had to have at an earlier run, of which the provider knows nothing.
      def insync_earlier?(is)
        plain_insync?(is)
      end

      def change_to_s(current, desired)
        @change || (name == :rsapi_custom_insync_trigger ? HIDDEN_CHANGE : super)
      end

      # Everything is changed at once, by `flush`.
      def set(_value); end

      def event_name
        return :"#{name}_changed" unless name == :ensure

        :"#{resource.class.name}_#{{ present: 'created', absent: 'removed' }.fetch(should, 'changed')}"
      end

      private

      def plain_insync?(is)
        return rs_value.to_s == is.to_s if name == :ensure

        @should.nil? || property_matches?(is, rs_value)
      end

      def definition
        resource.type_definition
      end
    end
  end
end
