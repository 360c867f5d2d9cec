# frozen_string_literal: true

module Bunraku
  module Pcore
    # Arrays and hashes of a size.
    class CollectionType < AnyType
      NAME = 'Collection'
      attr_reader :size

      def initialize(size = nil)
        @size = size && size.map { |each| [0, each].max }
      end

      def sizes
        @size || ANY_SIZE
      end

      def instance?(value)
        (value.is_a?(Array) || value.is_a?(Hash)) && Pcore.within?(@size, value.size)
      end

      def parameters
        Pcore.range_texts(@size)
      end

      def normalized
        CollectionType.new
      end

      def generalized
        CollectionType.new
      end
    end

    # Arrays of one type.
    class ArrayType < CollectionType
      NAME = 'Array'
      attr_reader :element

      def initialize(element = AnyType.new, size = nil)
        super(size)
        @element = @size == [0, 0] ? UnitType.new : element
      end

      def instance?(value)
        value.is_a?(Array) && super && value.all? { |each| @element.instance?(each) }
      end

      def parameters
        return %w[0 0] if @size == [0, 0]

        @element == AnyType.new && @size.nil? ? [] : [@element.to_s, *Pcore.range_texts(@size)]
      end

      # Puppet forgets the size of an array of anything here, and so does not notice a wrong one in its messages.
      def normalized
        @element == AnyType.new ? ArrayType.new : ArrayType.new(@element.normalized, @size)
      end

      def parts
        [@element]
      end

      def generalized
        ArrayType.new(@element.generalized)
      end
    end

    # Hashes with keys of one type and values of one.
    class HashType < CollectionType
      NAME = 'Hash'
      attr_reader :key_type, :value_type

      def initialize(key_type = AnyType.new, value_type = AnyType.new, size = nil)
        super(size)
        @key_type = @size == [0, 0] ? UnitType.new : key_type
        @value_type = @size == [0, 0] ? UnitType.new : value_type
      end

      def instance?(value)
        value.is_a?(Hash) && super && value.all? { |key, each| @key_type.instance?(key) && @value_type.instance?(each) }
      end

      def parameters
        return %w[0 0] if @size == [0, 0]

        any = @key_type == AnyType.new && @value_type == AnyType.new && @size.nil?
        any ? [] : [@key_type.to_s, @value_type.to_s, *Pcore.range_texts(@size)]
      end

      def normalized
        @size == [0, 0] ? self : HashType.new(@key_type.normalized, @value_type.normalized, @size)
      end

      def parts
        [@key_type, @value_type]
      end

      def generalized
        @size == [0, 0] ? self : HashType.new(@key_type.generalized, @value_type.generalized)
      end
    end

    # Arrays with a type for each place; with a size the last one repeats.
    class TupleType < AnyType
      NAME = 'Tuple'
      attr_reader :types, :size

      def initialize(types = [], size = nil)
        @types = types
        @size = size
      end

      def sizes
        @size || (@types.empty? ? ANY_SIZE : [@types.size, @types.size])
      end

      def at(index)
        @types[index] || @types.last
      end

      def instance?(value)
        return false unless value.is_a?(Array) && Pcore.within?(sizes, value.size)

        @types.empty? || value.each_with_index.all? { |each, index| at(index).instance?(each) }
      end

      def parameters
        @types.empty? ? [] : [*@types.map(&:to_s), *Pcore.range_texts(@size)]
      end

      def normalized
        TupleType.new(@types.map(&:normalized), @size)
      end

      def parts
        @types
      end

      def generalized
        TupleType.new(@types.map(&:generalized), @size)
      end
    end

    # One key of a Struct.
    StructElement = Struct.new(:name, :type, :optional) do
      def shown_key
        text = Pcore.quoted(name)
        undef_fits = type.instance?(nil)
        return undef_fits ? text : "Optional[#{text}]" if optional

        undef_fits ? "NotUndef[#{text}]" : text
      end
    end

    # Hashes with a type for each key.
    class StructType < AnyType
      NAME = 'Struct'
      attr_reader :elements

      def initialize(elements = [])
        @elements = elements
      end

      def sizes
        [@elements.count { |each| !each.optional }, @elements.size]
      end

      def instance?(value)
        return false unless value.is_a?(Hash)

        matches = @elements.all? { |each| value.key?(each.name) ? each.type.instance?(value[each.name]) : each.optional }
        matches && (value.keys - @elements.map(&:name)).empty?
      end

      def parameters
        @elements.empty? ? [] : ["{#{@elements.map { |each| "#{each.shown_key} => #{each.type}" }.join(', ')}}"]
      end

      def normalized
        StructType.new(@elements.map { |each| StructElement.new(each.name, each.type.normalized, each.optional) })
      end

      def parts
        @elements.map(&:type)
      end

      def generalized
        StructType.new(@elements.map { |each| StructElement.new(each.name, each.type.generalized, each.optional) })
      end
    end
  end
end
