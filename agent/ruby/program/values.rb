# frozen_string_literal: true

module Puppet
  class Parameter
    # One listed value of an attribute, or a pattern that values match.
    class Value
      attr_reader :name, :aliases, :options
      attr_accessor :block, :method, :event, :required_features, :invalidate_refreshes

      def initialize(name)
        @name = name.is_a?(Regexp) ? name : Value.convert(name)
        @aliases = []
      end

      def self.convert(value)
        case value
        when Symbol, '' then value
        else value.to_s.to_sym
        end
      end

      def regex?
        @name.is_a?(Regexp)
      end

      def alias(name)
        @aliases << Value.convert(name)
      end

      def match?(value)
        regex? ? @name =~ value.to_s : [@name, *@aliases].include?(Value.convert(value))
      end

      def expand(value)
        regex? ? value.to_s : @name
      end
    end

    # The listed values of an attribute; without any, every value is fine.
    class ValueCollection
      attr_reader :strings, :patterns

      def initialize
        @by_name = {}
        @strings = []
        @patterns = []
      end

      def empty?
        @by_name.empty?
      end

      # A name that is listed again replaces the first for validation and for what is done; values are still matched with the first.
      def newvalue(name, options = {}, &block)
        value = Value.new(name)
        @by_name[value.name] = value
        (value.regex? ? @patterns : @strings) << value
        value.event = options[:event] && Value.convert(options[:event])
        value.invalidate_refreshes = options[:invalidate_refreshes]
        value.required_features = [options[:required_features] || options[:required_feature]].flatten.compact.map(&:to_sym)
        value.method = options[:method]
        return value if block.nil?

        value.block = block
        value.method ||= :"set_#{value.name}" unless value.regex?
        value
      end

      def newvalues(*names)
        names.each { |name| newvalue(name) }
      end

      def aliasvalue(name, other)
        found = match?(other.to_sym) or raise Puppet::DevError, "Cannot alias nonexistent value #{other}"
        found.alias(name)
      end

      def value(name)
        @by_name[name]
      end

      def values
        @strings.map(&:name)
      end

      def regexes
        @patterns.map { |each| each.name.inspect }
      end

      def match?(value)
        @strings.find { |each| each.match?(value) } || @patterns.find { |each| each.match?(value) }
      end

      def munge(value)
        found = match?(value)
        found.nil? || found.regex? ? value : found.name
      end

      def validate(value)
        return if empty? || @by_name.values.any? { |each| each.match?(value) }

        message = "Invalid value #{value.inspect}."
        message += " Valid values are #{values.join(', ')}." unless values.empty?
        message += " Valid values match #{regexes.join(', ')}." unless regexes.empty?
        raise ArgumentError, message
      end
    end
  end
end
