# frozen_string_literal: true

module Bunraku
  module Pcore
    # One way in which a value does not fit a type; `path` leads to the part that does not.
    class Mismatch
      attr_reader :path

      def initialize(path)
        @path = path
      end

      # Returns the path without the steps that choose a variant.
      def place
        @path.reject { |kind, _| kind == :variant }
      end

      def without(index)
        index >= @path.size ? self : dup.tap { |copy| copy.instance_variable_set(:@path, @path[0...index] + @path[(index + 1)..-1]) }
      end

      def text
        steps = @path.map { |kind, name| STEPS.fetch(kind) % { name: name } }
        "#{steps.map { |step| " #{step}" }.join} #{complaint}"
      end

      def same?(other)
        other.class == self.class && other.place == place && other.data == data
      end

      STEPS = { subject: '%<name>s', index: 'index %<name>s', entry: "entry '%<name>s'", key: "key of entry '%<name>s'",
                variant: 'variant %<name>s' }.freeze
    end

    # A collection of a wrong size.
    class SizeMismatch < Mismatch
      attr_reader :expected, :actual

      def initialize(path, expected, actual)
        super(path)
        @expected = expected
        @actual = actual
      end

      def data
        [@expected, @actual]
      end

      def joined(other)
        SizeMismatch.new(@path, [[@expected[0], other.expected[0]].min, [@expected[1], other.expected[1]].max], @actual)
      end

      def complaint
        "expects size to be #{shown(@expected)}, got #{shown(@actual)}"
      end

      def shown(range)
        low, high = range
        return low.to_s if low == high
        return high == INF ? 'unlimited' : "at most #{high}" if low.zero?

        high == INF ? "at least #{low}" : "between #{low} and #{high}"
      end
    end

    # A key too many or too few, or a type that is not there.
    class NameMismatch < Mismatch
      attr_reader :complaint

      def initialize(path, complaint)
        super(path)
        @complaint = complaint
      end

      def data
        @complaint
      end
    end

    # A value of a wrong type; `actual` is the value's.
    class TypeMismatch < Mismatch
      attr_reader :expected, :actual

      def initialize(path, expected, actual)
        super(path)
        @expected = expected.normalized
        @actual = actual.normalized
      end

      def data
        [@expected, @actual]
      end

      def joined(other)
        self.class.new(@path, VariantType.of([@expected, other.expected]), @actual)
      end

      def complaint
        alternatives, optional = split(@expected)
        detailed = alternatives.any? { |each| in_detail?(each) }
        names = alternatives.map { |each| detailed ? each.to_s : short_name(each) }
        names.uniq! unless detailed
        got = same_kind?(alternatives) ? @actual.to_s : (detailed ? @actual.name : short_name(@actual))
        names.unshift('Undef') if optional
        return "expects #{with_article(names.first)} value, got #{got}" if names.size == 1

        listed = names.size == 2 ? names.join(' or ') : "#{names[0..-2].join(', ')}, or #{names.last}"
        "expects a value of type #{listed}, got #{got}"
      end

      private

      def split(expected)
        optional = expected.is_a?(OptionalType)
        expected = expected.type if optional
        [expected.is_a?(VariantType) ? expected.types : [expected], optional]
      end

      def in_detail?(expected)
        same_kind?([expected]) || widest(expected).instance?(sample)
      end

      # Returns a value of the actual type's kind, for the question whether the bare expected type would have it.
      def sample
        { StringType => '', IntegerType => 0, FloatType => 0.0, BooleanType => true, TupleType => [nil], ArrayType => [],
          StructType => { 'x' => nil }, HashType => {}, UndefType => nil, DefaultType => :default, RegexpType => //,
          SensitiveType => Sensitive.new(nil) }.fetch(@actual.class) { Object.new }
      end

      def widest(type)
        case type
        when EnumType then StringType.new
        when TypeReference then type
        else type.class.new
        end
      end

      def same_kind?(alternatives)
        alternatives.any? do |each|
          each.instance_of?(@actual.class) || (each.is_a?(StructType) && @actual.is_a?(HashType)) ||
            (each.is_a?(TupleType) && @actual.is_a?(ArrayType))
        end
      end

      def short_name(type)
        type.is_a?(Wrapper) && type.type && !type.type.instance_of?(AnyType) ? "#{type.name}[#{type.type.name}]" : type.name
      end

      def with_article(noun)
        "#{noun.match?(/\A[aeiouy]/i) ? 'an' : 'a'} #{noun}"
      end
    end

    # A string that is none of those expected, or matches no pattern.
    class TextMismatch < TypeMismatch
      def complaint
        expected = @expected.is_a?(OptionalType) ? @expected.type : @expected
        prefix = @expected.is_a?(OptionalType) ? 'an undef value or ' : ''
        got = @actual.is_a?(StringType) && @actual.value ? "'#{@actual.value}'" : short_name(@actual)
        "expects #{prefix}a match for #{expected}, got #{got}"
      end
    end

    # Finds why a value is not of a type.
    module Comparison
      module_function

      # Returns the reasons; none when the value is of the type.
      def reasons(expected, value, path)
        unknown = unresolved(expected)
        return [NameMismatch.new(path, "references an unresolved type '#{unknown}'")] if unknown

        compare(expected.normalized, expected, value, path)
      end

      def unresolved(type)
        return type.text if type.is_a?(TypeReference)

        type.parts.each { |part| unresolved(part).tap { |found| return found if found } }
        nil
      end

      def compare(expected, original, value, path)
        case expected
        when VariantType then variants(expected, original, value, path)
        when StructType then struct(expected, original, value, path)
        when HashType then hash(expected, original, value, path)
        when TupleType then tuple(expected, original, value, path)
        when ArrayType then array(expected, original, value, path)
        when OptionalType then value.nil? || expected.type.nil? ? [] : compare(expected.type, expected, value, path)
        when PatternType, EnumType then [TextMismatch.new(path, original, Inference.of(value))]
        else expected.instance?(value) ? [] : wrong_type(path, original, value)
        end
      end

      def wrong_type(path, expected, value)
        [TypeMismatch.new(path, expected, Inference.of(value))]
      end

      def variants(expected, original, value, path)
        types = original.is_a?(OptionalType) ? [UndefType.new, *expected.types] : expected.types
        by_variant = []
        types.each_with_index do |type, index|
          found = reasons(type, value, path + [[:variant, index]])
          return [] if found.empty?

          by_variant << found
        end
        merged(path.size, by_variant)
      end

      # Returns one mismatch for all variants when each has one of the same kind at the same place; else all mismatches.
      def merged(position, by_variant)
        flat = by_variant.flatten
        [SizeMismatch, TypeMismatch].each do |kind|
          mine = flat.grep(kind)
          next unless mine.size == by_variant.size && mine.all? { |each| each.place == mine.first.place }

          flat = [mine.drop(1).inject(mine.first) { |first, other| first.joined(other) }]
          break
        end
        unique = flat.each_with_object([]) { |each, list| list << each unless list.any? { |other| each.same?(other) } }
        unique.size == 1 ? [unique.first.without(position)] : unique
      end

      def array(expected, original, value, path)
        return wrong_type(path, original, value) unless value.is_a?(Array)
        return [SizeMismatch.new(path, expected.sizes, [value.size, value.size])] unless Pcore.within?(expected.size, value.size)
        return [TypeMismatch.new(path, original, ArrayType.new(UnitType.new))] if value.empty?

        value.each_with_index.flat_map do |each, index|
          expected.element.instance?(each) ? [] : reasons(expected.element, each, path + [[:index, index]])
        end
      end

      def hash(expected, original, value, path)
        return wrong_type(path, original, value) unless value.is_a?(Hash)
        return [SizeMismatch.new(path, expected.sizes, [value.size, value.size])] unless Pcore.within?(expected.size, value.size)

        actual = Inference.of(value)
        return [TypeMismatch.new(path, original, HashType.new(actual.key_type, actual.value_type))] unless actual.is_a?(StructType)

        value.flat_map do |key, each|
          (expected.key_type.instance?(key) ? [] : reasons(expected.key_type, key, path + [[:key, key]])) +
            (expected.value_type.instance?(each) ? [] : reasons(expected.value_type, each, path + [[:entry, key]]))
        end
      end

      def struct(expected, original, value, path)
        return wrong_type(path, original, value) unless value.is_a?(Hash)

        actual = Inference.of(value)
        return unnamed(expected, original, actual, path) unless actual.is_a?(StructType)

        left = value.dup
        found = expected.elements.flat_map do |element|
          unless left.key?(element.name)
            next element.optional ? [] : [NameMismatch.new(path, "expects a value for key '#{element.name}'")]
          end

          each = left.delete(element.name)
          element.type.instance?(each) ? [] : reasons(element.type, each, path + [[:entry, element.name]])
        end
        found + left.keys.map { |key| NameMismatch.new(path, "unrecognized key '#{key}'") }
      end

      # Returns the reasons for a hash that has keys other than strings, or none.
      def unnamed(expected, original, actual, path)
        sizes = actual.sizes
        fits = expected.sizes[0] <= sizes[0] && sizes[1] <= expected.sizes[1]
        return [SizeMismatch.new(path, expected.sizes, sizes)] unless fits

        [TypeMismatch.new(path, original, HashType.new(actual.key_type, actual.value_type))]
      end

      def tuple(expected, original, value, path)
        return wrong_type(path, original, value) unless value.is_a?(Array)
        return [] if expected.types.empty? && value.empty?
        return [SizeMismatch.new(path, expected.sizes, [value.size, value.size])] unless Pcore.within?(expected.sizes, value.size)
        return [] if expected.types.empty?

        value.each_with_index.flat_map do |each, index|
          position = [index, expected.types.size - 1].min
          reasons(expected.types[position], each, path + [[:index, position]])
        end
      end
    end

    # Returns why a value is not of a type: `SUBJECT expects …, got …`, one line for each reason.
    def self.describe(subject, type, value)
      reasons = Comparison.reasons(type, value, [[:subject, subject]])
      reasons.size == 1 ? reasons.first.text.strip : reasons.map(&:text).join("\n ")
    end
  end
end
