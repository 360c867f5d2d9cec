# frozen_string_literal: true

module Puppet
  # An attribute that is read back from the system and kept in sync.
  class Property < Parameter
    class << self
      attr_writer :idempotent

      # Not inherited: a property says itself that all its values count.
      def array_matching
        @array_matching ||= :first
      end

      def array_matching=(value)
        value = value.to_sym
        raise ArgumentError, "Supported values for Property#array_matching are 'first' and 'all'" unless %i[first all].include?(value)

        @array_matching = value
      end

      def idempotent?
        defined?(@idempotent) && !@idempotent.nil? ? @idempotent : true
      end

      # @param block what is done to get to this value; without one the provider's setter
      def newvalue(name, options = {}, &block)
        value = own_values.newvalue(name, options, &block)
        return value if value.method.nil?

        if block
          raise ArgumentError, "Attempt to redefine method #{value.method} with block" if method_defined?(value.method, false)

          define_method(value.method, &block)
        elsif !method_defined?(value.method)
          alias_method(value.method, :call_provider)
        end
        value
      end

      def value_name(name)
        value_collection.match?(name)&.name
      end

      def value_option(name, option)
        value_collection.value(name)&.public_send(option)
      end

      attr_accessor :unmanaged
    end

    attr_writer :noop

    def array_matching
      self.class.array_matching
    end

    def match_all?
      array_matching == :all
    end

    # --- the desired values

    def should
      return nil unless defined?(@should) && @should

      devfail "should for #{self.class.name} on #{resource.name} is not an array" unless @should.is_a?(Array)
      match_all? ? @should.map { |value| unmunge(value) } : unmunge(@should[0])
    end

    def should=(values)
      values = [values] unless values.is_a?(Array)
      @shouldorig = values
      values.each { |value| validate(value) }
      @should = values.map { |value| munge(value) }
    end

    attr_reader :shouldorig

    def value
      should
    end

    def value=(values)
      self.should = values
    end

    def unsafe_validate(value)
      super
      needed = self.class.value_option(self.class.value_name(value), :required_features) || []
      return if needed.empty? || provider.satisfies?(*needed)

      raise ArgumentError, "Provider #{provider.class.name} must have features '#{needed.join(', ')}' to set '#{name}' to '#{value}'"
    end

    # --- comparing

    def retrieve
      provider.public_send(self.class.name)
    end

    def safe_insync?(is)
      @should ? insync?(is) : true
    end

    def insync?(is)
      devfail "#{self.class.name}'s should is not array" unless @should.is_a?(Array)
      return true if @should.empty?
      return is.is_a?(Array) && is.length == @should.length && (is == @should || is == @should.map(&:to_s)) if match_all?

      @should.any? { |want| property_matches?(is, want) }
    end

    def property_matches?(current, desired)
      current == desired || current == desired.to_s
    end

    # Whether a value is one that the property had to have at an earlier run.
    def insync_earlier?(is)
      safe_insync?(is)
    end

    # Compares with other values than those that the property has; nil when that fails.
    def insync_values?(desired, current)
      own = @should
      @should = desired
      insync?(current)
    rescue StandardError
      Puppet.info("Unknown failure using insync_values? on type: #{resource.ref} / property: #{name} to compare values #{desired} and #{current}")
      nil
    ensure
      @should = own
    end

    # --- changing

    def sync
      devfail 'Got a nil value for should' unless should
      set(should)
    end

    def set(value)
      listed = self.class.value_name(value)
      method = self.class.value_option(listed, :method)
      return set_by_method(value, method) if method && respond_to?(method)

      block = self.class.value_option(listed, :block)
      block ? instance_eval(&block) : call_provider(value)
    end

    def call_provider(value)
      setter = "#{self.class.name}="
      fail "#{self.class.name} cannot handle values of type #{value.inspect}" unless provider
      fail "The #{provider.class.name} provider can not handle attribute #{self.class.name}" unless provider.respond_to?(setter)
      provider.public_send(setter, value)
    end

    # --- messages

    def is_to_s(value)
      format_value_for_display(value)
    end

    def should_to_s(value)
      format_value_for_display(value)
    end

    def change_to_s(current, desired)
      return "defined '#{name}' as #{should_to_s(desired)}" if current == :absent
      return "undefined '#{name}' from #{is_to_s(current)}" if [:absent, [:absent]].include?(desired)

      "#{name} changed #{is_to_s(current)} to #{should_to_s(desired)}"
    rescue Puppet::Error
      raise
    rescue StandardError => e
      raise Puppet::DevError.new("Could not convert change '#{name}' to string: #{e}", e)
    end

    def event_name
      self.class.value_option(should, :event) || :"#{name}_changed"
    end

    def noop
      defined?(@noop) ? @noop : resource.noop?
    end

    private

    def set_by_method(value, method)
      public_send(method)
    rescue Puppet::Error
      raise
    rescue StandardError => e
      raise e if e.is_a?(Bunraku::Lacking)

      error = Puppet::ResourceError.new("Could not set '#{value}' on #{self.class.name}: #{e}#{@resource.place}", e)
      Puppet.err(error.message)
      raise error
    end

    # Whether the thing exists.
    class Ensure < Property
      @name = :ensure

      def self.defaultvalues
        newvalue(:present) { provider.respond_to?(:create) ? provider.create : @resource.create }
        newvalue(:absent) { provider.respond_to?(:destroy) ? provider.destroy : @resource.destroy }
        @doc ||= 'The basic property that the resource should be in.'
      end

      def self.inherited(subclass)
        super
        subclass.name = :ensure
      end

      defaultto { @resource.managed? ? :present : nil }

      def retrieve
        here =
          if provider.respond_to?(:exists?) then provider.exists?
          elsif @resource.respond_to?(:exists?) then @resource.exists?
          else raise Puppet::DevError, "No ability to determine if #{@resource.class.name} exists"
          end
        here ? :present : :absent
      end

      def change_to_s(current, desired)
        return 'created' if current == :absent || current.nil?
        return 'removed' if desired == :absent

        "ensure changed #{is_to_s(current)} to #{should_to_s(desired)}"
      end

      def event_name
        self.class.value_option(should, :event) ||
          { present: :"#{@resource.class.name}_created", absent: :"#{@resource.class.name}_removed" }.fetch(should.to_s.to_sym, :"#{@resource.class.name}_changed")
      end
    end

    # A truth value; `puppet/property/boolean`.
    class Boolean < Property
      def unsafe_munge(value)
        Puppet::Coercion.boolean(value)
      end
    end
  end
end
