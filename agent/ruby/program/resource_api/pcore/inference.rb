# frozen_string_literal: true

module Bunraku
  module Pcore
    # The type of a value with the type of each element, as messages show it.
    module Inference
      module_function

      def of(value)
        case value
        when Array then value.empty? ? ArrayType.new(UnitType.new, [0, 0]) : TupleType.new(value.map { |each| of(each) })
        when Hash then of_hash(value)
        else of_single(value)
        end
      end

      def of_hash(value)
        return HashType.new(UnitType.new, UnitType.new, [0, 0]) if value.empty?
        if value.keys.all? { |key| key.is_a?(String) && !key.empty? }
          return StructType.new(value.map { |key, each| StructElement.new(key, of(each), false) })
        end

        keys, values = [value.keys, value.values].map { |each| VariantType.of(each.map { |one| of(one) }) }
        HashType.new(keys, values, [value.size, value.size])
      end

      def of_single(value)
        case value
        when String then StringType.new(nil, value)
        when Integer then IntegerType.new(value, value)
        when Float then FloatType.new(value, value)
        when nil, :undef then UndefType.new
        when true, false then BooleanType.new(value)
        when :default then DefaultType.new
        when Regexp then RegexpType.new
        when Sensitive then SensitiveType.new(common(value.unwrap))
        else RuntimeType.new(value.class.name.to_s)
        end
      end

      # Returns the type of a value with one type for all elements, as a secret's type has it.
      def common(value)
        case value
        when Array then value.empty? ? of(value) : ArrayType.new(one_of(value), [value.size, value.size])
        when Hash then value.empty? ? of(value) : HashType.new(one_of(value.keys), one_of(value.values), [value.size, value.size])
        else of_single(value)
        end
      end

      def one_of(values)
        types = values.compact.map { |each| common(each) }.uniq
        return UndefType.new if types.empty?
        return types.first if types.size == 1
        return StringType.new if types.all? { |each| each.is_a?(StringType) }

        types.all? { |each| each.is_a?(NumericType) } ? NumericType.new : AnyType.new
      end
    end
  end
end
