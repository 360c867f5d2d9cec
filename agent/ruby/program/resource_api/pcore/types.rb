# frozen_string_literal: true

module Bunraku
  # The data types of Puppet's language that attributes of the Resource API have: whether a Ruby value is of one, and how it is written.
  module Pcore
    INF = Float::INFINITY
    ANY_SIZE = [0, INF].freeze

    module_function

    # Returns the texts of a range, as in `1, 2`, `1` or `default, 2`; none for one without limits.
    def range_texts(range, unlimited = [-INF, INF])
      return [] if range.nil? || range == unlimited

      low = range[0] == -INF ? 'default' : range[0].to_s
      range[1] == INF ? [low] : [low, range[1].to_s]
    end

    def within?(range, number)
      range.nil? || (range[0] <= number && number <= range[1])
    end

    def quoted(text)
      "'#{text.gsub(/['\\]/) { |char| "\\#{char}" }}'"
    end

    # Base of all types, and the type of everything. Types are equal when their texts are.
    class AnyType
      def name
        self.class::NAME
      end

      def instance?(_value)
        true
      end

      # Returns the texts between the brackets.
      def parameters
        []
      end

      # Returns the simplest type that is equal to this one.
      def normalized
        self
      end

      def to_s
        parts = parameters
        parts.empty? ? name : "#{name}[#{parts.join(', ')}]"
      end

      def key
        to_s
      end

      def eql?(other)
        other.class == self.class && other.key == key
      end
      alias == eql?

      def hash
        key.hash
      end

      # Returns this type without ranges, sizes and literal values.
      def generalized
        self
      end

      # Returns the types that this one contains.
      def parts
        []
      end
    end
    AnyType::NAME = 'Any'

    # The element type of empty arrays and hashes; only inference has it.
    class UnitType < AnyType
      NAME = 'Unit'
    end

    # No value.
    class UndefType < AnyType
      NAME = 'Undef'

      def instance?(value)
        value.nil? || value == :undef
      end
    end

    # The value `default`.
    class DefaultType < AnyType
      NAME = 'Default'

      def instance?(value)
        value == :default
      end
    end

    # Strings, numbers, booleans and regular expressions.
    class ScalarType < AnyType
      NAME = 'Scalar'

      def instance?(value)
        case value
        when String, Integer, Float, true, false, Regexp then true
        else false
        end
      end
    end

    # Strings, numbers and booleans.
    class ScalarDataType < AnyType
      NAME = 'ScalarData'

      def instance?(value)
        case value
        when String, Integer, Float, true, false then true
        else false
        end
      end
    end

    # What JSON can have.
    class DataType < AnyType
      NAME = 'Data'

      def instance?(value)
        case value
        when nil, String, Integer, Float, true, false then true
        when Array then value.all? { |each| instance?(each) }
        when Hash then value.all? { |name, each| name.is_a?(String) && instance?(each) }
        else false
        end
      end
    end

    # --- numbers

    # Numbers from a lowest to a highest.
    class NumericType < AnyType
      NAME = 'Numeric'
      attr_reader :range

      def initialize(low = -INF, high = INF)
        @range = [low, high]
      end

      def instance?(value)
        (value.is_a?(Integer) || value.is_a?(Float)) && Pcore.within?(@range, value)
      end

      def parameters
        Pcore.range_texts(@range)
      end

      def generalized
        self.class.new
      end
    end

    # Whole numbers.
    class IntegerType < NumericType
      NAME = 'Integer'

      def instance?(value)
        value.is_a?(Integer) && Pcore.within?(@range, value)
      end
    end

    # Numbers with a fraction.
    class FloatType < NumericType
      NAME = 'Float'

      def initialize(low = -INF, high = INF)
        super(low.to_f, high.to_f)
      end

      def instance?(value)
        value.is_a?(Float) && Pcore.within?(@range, value)
      end
    end

    # Truth values, or one of them.
    class BooleanType < AnyType
      NAME = 'Boolean'

      def initialize(value = nil)
        @value = value
      end

      def instance?(value)
        @value.nil? ? [true, false].include?(value) : @value == value
      end

      def parameters
        @value.nil? ? [] : [@value.to_s]
      end

      def generalized
        BooleanType.new
      end
    end

    # --- strings

    # Strings of a size, or one literal string, which is written as the bare type.
    class StringType < AnyType
      NAME = 'String'
      attr_reader :size, :value

      def initialize(size = nil, value = nil)
        @size = size && size.map { |each| [0, each].max }
        @value = value
      end

      def instance?(value)
        value.is_a?(String) && Pcore.within?(@size, value.length) && (@value.nil? || @value == value)
      end

      def parameters
        Pcore.range_texts(@size)
      end

      def key
        [to_s, @value]
      end

      def generalized
        StringType.new
      end
    end

    # One of some strings.
    class EnumType < AnyType
      NAME = 'Enum'
      attr_reader :values, :any_case

      def initialize(values = [], any_case: false)
        @values = values.uniq.sort
        @any_case = any_case
      end

      def instance?(value)
        return false unless value.is_a?(String)

        @any_case ? @values.any? { |each| each.casecmp(value).zero? } : @values.include?(value)
      end

      def parameters
        @values.map { |each| Pcore.quoted(each) } + (@any_case ? ['true'] : [])
      end

      def generalized
        @values.empty? ? StringType.new : StringType.new(@values.map(&:length).minmax)
      end
    end

    # Strings that match one of some regular expressions.
    class PatternType < AnyType
      NAME = 'Pattern'
      attr_reader :patterns

      def initialize(patterns = [])
        @patterns = patterns.uniq
      end

      def instance?(value)
        value.is_a?(String) && (@patterns.empty? || @patterns.any? { |each| each.match?(value) })
      end

      def parameters
        @patterns.map { |each| "/#{each.source.gsub('/', '\/')}/" }
      end
    end

    # Regular expressions.
    class RegexpType < AnyType
      NAME = 'Regexp'

      def instance?(value)
        value.is_a?(Regexp)
      end
    end

    # --- types around others

    # A type around another one, nil for the bare one.
    class Wrapper < AnyType
      attr_reader :type

      def initialize(type = nil)
        @type = type
      end

      def parameters
        return [] if @type.nil?

        literal = @type.is_a?(StringType) && @type.value
        [literal ? Pcore.quoted(literal) : @type.to_s]
      end

      def normalized
        @type.nil? ? self : self.class.new(@type.normalized)
      end

      def parts
        [@type].compact
      end

      def generalized
        @type.nil? ? self : self.class.new(@type.generalized)
      end
    end

    # A value or none.
    class OptionalType < Wrapper
      NAME = 'Optional'

      def instance?(value)
        value.nil? || value == :undef || (!@type.nil? && @type.instance?(value))
      end

      def normalized
        return self if @type.nil?

        inner = @type.normalized
        return OptionalType.new(inner.type).normalized if inner.is_a?(NotUndefType)

        inner.instance?(nil) ? inner : OptionalType.new(inner)
      end
    end

    # Any value but none.
    class NotUndefType < Wrapper
      NAME = 'NotUndef'

      def instance?(value)
        !value.nil? && value != :undef && (@type.nil? || @type.instance?(value))
      end

      def normalized
        return self if @type.nil?

        inner = @type.normalized
        return NotUndefType.new(inner.type).normalized if inner.is_a?(OptionalType)

        inner.instance?(nil) ? NotUndefType.new(inner) : inner
      end
    end

    # A secret. Its content's type is without ranges and literal values, so that no message can show any of it.
    class SensitiveType < Wrapper
      NAME = 'Sensitive'

      def initialize(type = nil)
        super(type&.generalized)
      end

      def normalized
        inner = @type&.normalized
        inner == @type ? self : SensitiveType.new(inner)
      end

      def instance?(value)
        value.is_a?(Sensitive) && (@type.nil? || @type.instance?(value.unwrap))
      end
    end

    # A value of one of some types.
    class VariantType < AnyType
      NAME = 'Variant'
      attr_reader :types

      def initialize(types = [])
        @types = types
      end

      # Returns a flat variant with each type once, or the type itself when there is only one.
      def self.of(types)
        flat = types.flat_map { |each| each.is_a?(VariantType) ? each.types : [each] }.uniq
        flat.size == 1 ? flat.first : VariantType.new(flat)
      end

      def instance?(value)
        @types.any? { |each| each.instance?(value) }
      end

      def parameters
        @types.map(&:to_s)
      end

      def key
        @types.map(&:hash).sort
      end

      def normalized
        Merging.variant(self)
      end

      def parts
        @types
      end

      def generalized
        VariantType.of(@types.map(&:generalized))
      end
    end

    # A name for which there is no type here; nothing is of it.
    class TypeReference < AnyType
      NAME = 'TypeReference'
      attr_reader :text

      def initialize(text)
        @text = text
      end

      def instance?(_value)
        false
      end

      def parameters
        [Pcore.quoted(@text)]
      end
    end

    # Objects that the language does not have, like symbols; only inference has it.
    class RuntimeType < AnyType
      NAME = 'Runtime'

      def initialize(class_name)
        @class_name = class_name
      end

      def parameters
        ['ruby', Pcore.quoted(@class_name)]
      end

      def instance?(_value)
        false
      end
    end
  end
end
