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
      attr_reader :values

      def initialize
        @values = []
      end

      def empty?
        @values.empty?
      end

      def newvalue(name, options = {}, &block)
        return if strings.any? { |value| !name.is_a?(Regexp) && value.name == Value.convert(name) }

        value = Value.new(name)
        value.block = block
        value.method = options[:method] || (block && !value.regex? ? :"set_#{value.name}" : nil)
        value.event = options[:event]
        value.invalidate_refreshes = options[:invalidate_refreshes]
        value.required_features = [options[:required_features] || options[:required_feature]].flatten.compact.map(&:to_sym)
        @values << value
        value
      end

      def newvalues(*names)
        names.each { |name| newvalue(name) }
      end

      def aliasvalue(name, other)
        found = match?(other) or raise Puppet::DevError, "Cannot alias nonexistent value #{other}"
        found.alias(name)
      end

      def match?(value)
        strings.find { |each| each.match?(value) } || regexes.find { |each| each.match?(value) }
      end

      def munge(value)
        found = match?(value)
        return value if found.nil?

        found.regex? ? value : found.name
      end

      def validate(value)
        return if empty? || match?(value)

        message = "Invalid value #{value.inspect}."
        message += " Valid values are #{strings.map(&:name).join(', ')}." unless strings.empty?
        message += " Valid values match #{regexes.map { |each| "/#{each.name.source}/" }.join(', ')}." unless regexes.empty?
        raise ArgumentError, message
      end

      def strings
        @values.reject(&:regex?)
      end

      def regexes
        @values.select(&:regex?)
      end
    end
  end
end
