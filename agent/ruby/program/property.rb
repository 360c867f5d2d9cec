# frozen_string_literal: true

module Puppet
  # An attribute that is read back from the system and kept in sync.
  class Property < Parameter
    class << self
      attr_writer :idempotent

      def array_matching
        @array_matching ||= superclass.respond_to?(:array_matching) && superclass.array_matching || :first
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
        define_method(value.method, &block) if value&.method && block
      end

      def value_name(name)
        value_collection.match?(name)&.name
      end

      def value_option(name, option)
        value_collection.match?(name)&.public_send(option)
      end

      def unmanaged=(value)
        @unmanaged = value
      end
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

    # --- comparing

    def retrieve
      provider.public_send(self.class.name)
    end

    def safe_insync?(is)
      insync?(is)
    end

    def insync?(is)
      return true if @should.nil? || @should.empty?
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

    def insync_values?(desired, current)
      current == desired
    end

    # --- changing

    def sync
      devfail 'Got a nil value for should' if should.nil?
      set(should)
    end

    def set(value)
      method = self.class.value_option(value, :method)
      return set_by_method(value, method) if method && respond_to?(method)

      block = self.class.value_option(value, :block)
      block ? instance_eval(&block) : call_provider(value)
    end

    def call_provider(value)
      setter = "#{self.class.name}="
      fail "The #{provider.class.name} provider can not set attribute #{self.class.name}" unless provider.respond_to?(setter)
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

      raise Puppet::ResourceError.new("Could not set '#{value}' on #{self.class.name}: #{e}", e)
    end

    # Whether the thing exists.
    class Ensure < Property
      @name = :ensure

      def self.defaultvalues
        newvalue(:present) { provider.respond_to?(:create) ? provider.create : @resource.create }
        newvalue(:absent) { provider.respond_to?(:destroy) ? provider.destroy : @resource.destroy }
        defaultto { @resource.managed? ? :present : nil }
        @doc ||= 'The basic property that the resource should be in.'
      end

      def self.inherited(subclass)
        super
        subclass.name = :ensure
      end

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
      def unsafe_validate(_value); end

      def unsafe_munge(value)
        { 'true' => true, 'yes' => true, 'false' => false, 'no' => false }.fetch(value.to_s) { fail "expected a boolean value, got #{value.inspect}" }
      end
    end

    # A set of values with a membership, kept sorted; `puppet/property/list`.
    class List < Property
      def is_to_s(value)
        format_value_for_display(value == :absent ? value : [value].flatten.join(delimiter))
      end

      def should_to_s(value)
        is_to_s(value)
      end

      def membership
        :membership
      end

      def delimiter
        ','
      end

      def inclusive?
        @resource[membership] == :inclusive
      end

      def should
        return nil unless defined?(@should) && @should

        members = inclusive? ? @should : @should + present_values
        members.map(&:to_s).uniq.sort.join(delimiter)
      end

      def retrieve
        list = provider.public_send(name)
        list == :absent ? :absent : list.to_s.split(delimiter).map(&:strip).sort
      end

      def insync?(is)
        return true unless is

        (is == :absent ? [] : is.to_a).sort.join(delimiter) == should
      end

      private

      def present_values
        list = retrieve
        list == :absent ? [] : list
      end
    end
  end
end
