# frozen_string_literal: true

module Bunraku
  module ResourceApi
    # Values of attributes: what they are converted from, and what is said when they are not of their type.
    module Values
      NUMERIC = /\A[[:blank:]]*(-?)[[:blank:]]*((0[xX][0-9A-Fa-f]+)|(0?\d+)((?:\.\d+)?(?:[eE]-?\d+)?))[[:blank:]]*\z/.freeze

      module_function

      # Returns the type of an attribute; raises DevError for a text that is none.
      def type_of(attribute, text)
        Pcore.parse(text)
      rescue Pcore::Unreadable => e
        how = e.syntax ? 'could not be parsed' : 'is not recognised'
        raise Puppet::DevError, "The type of the `#{attribute}` attribute `#{text}` #{how}: #{e.message}"
      end

      # Returns a value as providers get it; raises ResourceError for one that is not of the type.
      #
      # @param from_text [Boolean] whether texts of a command line become numbers and booleans
      def accept(type, value, subject, from_text:)
        if from_text
          value, error = converted(type, value, subject)
          raise Puppet::ResourceError, error if error
        else
          value = { false: false, true: true }.fetch(value, value) if value.is_a?(Symbol)
        end
        error = complaint(type, value, subject)
        raise Puppet::ResourceError, error if error

        value
      end

      # Returns a value of an attribute that is Sensitive with the secrets where the type has them, else as one secret.
      def seal(type, value)
        case value
        when Sensitive, nil then value
        else secret_in?(type) ? seal_parts(type, value) : Sensitive.new(value)
        end
      end

      def secret_in?(type)
        type.is_a?(Pcore::SensitiveType) || type.parts.any? { |part| secret_in?(part) }
      end

      def seal_parts(type, value)
        case type
        when Pcore::SensitiveType then value.is_a?(Sensitive) ? value : Sensitive.new(value)
        when Pcore::Wrapper then seal_parts(type.type, value)
        when Pcore::VariantType
          sealed = type.types.select { |each| secret_in?(each) }.map { |each| seal_parts(each, value) }
          sealed.find { |each| type.instance?(each) } || sealed.first
        else seal_items(type, value)
        end
      end

      def seal_items(type, value)
        seal_item = ->(part, item) { part && secret_in?(part) ? seal_parts(part, item) : item }
        case type
        when Pcore::ArrayType then value.is_a?(Array) ? value.map { |item| seal_item.call(type.element, item) } : value
        when Pcore::TupleType then value.is_a?(Array) ? value.each_with_index.map { |item, index| seal_item.call(type.at(index), item) } : value
        when Pcore::HashType then value.is_a?(Hash) ? value.transform_values { |item| seal_item.call(type.value_type, item) } : value
        when Pcore::StructType
          types = type.elements.map { |each| [each.name, each.type] }.to_h
          value.is_a?(Hash) ? value.map { |key, item| [key, seal_item.call(types[key], item)] }.to_h : value
        else value
        end
      end

      # Returns why a value is not of a type; nil when it is.
      def complaint(type, value, subject)
        type.instance?(value) ? nil : Pcore.describe(subject, type, value)
      end

      # Returns a value that was a text, and nil; or nil and what is wrong.
      def converted(type, value, subject)
        case type
        when Pcore::ArrayType then value = converted_items(type, value, subject)
        when Pcore::BooleanType then value = { 'true' => true, 'false' => false }.fetch(value.to_s, value)
        when Pcore::NumericType then value = number(value)
        when Pcore::EnumType, Pcore::StringType, Pcore::PatternType then value = value.to_s if value.is_a?(Symbol)
        when Pcore::OptionalType then return value.nil? || type.type.nil? ? [value, nil] : converted(type.type, value, subject)
        when Pcore::VariantType
          found = converted_variant(type, value, subject)
          return found if found
        end
        error = complaint(type, value, subject)
        error ? [nil, error] : [value, nil]
      end

      def converted_items(type, value, subject)
        return value unless value.is_a?(Array)

        items = value.map { |each| converted(type.element, each, subject) }
        items.all? { |_, error| error.nil? } ? items.map(&:first) : value
      end

      # Strings come last: every text is one.
      def converted_variant(type, value, subject)
        string = type.types.find { |each| each.is_a?(Pcore::StringType) }
        fitting = (type.types - [string]).map { |each| converted(each, value, subject) }.select { |_, error| error.nil? }
        return fitting.first if fitting.size == 1
        return [nil, "#{subject} #{value.inspect} is not unabiguously convertable to #{type}"] if fitting.size > 1

        string && converted(string, value, subject)
      end

      def number(value)
        match = value.is_a?(String) && NUMERIC.match(value) or return value
        text = value.delete(" \t")
        return Integer(text, 16) if match[3]

        match[5].empty? ? Integer(text, text.match?(/\A-?0\d/) ? 8 : 10) : Float(text)
      rescue ArgumentError
        value
      end
    end
  end
end
