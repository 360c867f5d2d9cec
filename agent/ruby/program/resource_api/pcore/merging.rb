# frozen_string_literal: true

module Bunraku
  module Pcore
    # The simplest variant: flat, without undef (an Optional is around it instead), with enums, patterns and ranges merged.
    module Merging
      module_function

      def variant(type)
        return type if type.types.empty?

        types = type.types.map(&:normalized)
        return types.first if types.size == 1
        return around_undef(types) if types.any? { |each| each.is_a?(UndefType) || each.is_a?(OptionalType) }

        types = types.flat_map { |each| each.is_a?(VariantType) ? each.types : [each] }
        types = patterns(enums(not_undefs(types)))
        VariantType.of(ranges(FloatType, ranges(IntegerType, types)))
      end

      def around_undef(types)
        left = types.reject { |each| each.is_a?(UndefType) }.map { |each| each.is_a?(OptionalType) ? each.type || AnyType.new : each }
        OptionalType.new(VariantType.of(left)).normalized
      end

      def not_undefs(types)
        mine, others = types.partition { |each| each.is_a?(NotUndefType) }
        return types if mine.size < 2

        others << NotUndefType.new(VariantType.of(mine.map { |each| each.type || AnyType.new }).normalized)
      end

      def enums(types)
        [false, true].each do |any_case|
          mine, others = types.partition { |each| literals(each, any_case) }
          types = others << EnumType.new(mine.flat_map { |each| literals(each, any_case) }, any_case: any_case) if mine.size > 1
        end
        types
      end

      # Returns the strings that a type consists of; nil when it is more than some strings.
      def literals(type, any_case)
        return type.values if type.is_a?(EnumType) && !type.values.empty? && type.any_case == any_case

        type.is_a?(StringType) && type.value && !any_case ? [type.value] : nil
      end

      def patterns(types)
        mine, others = types.partition { |each| each.is_a?(PatternType) }
        mine.size < 2 ? types : others << PatternType.new(mine.flat_map(&:patterns))
      end

      def ranges(kind, types)
        mine, others = types.partition { |each| each.instance_of?(kind) }
        mine.size < 2 ? types : united(kind, mine.map(&:range)).map { |range| kind.new(*range) } + others
      end

      # Returns ranges of which none overlaps another or, of integers, touches it.
      def united(kind, ranges)
        gap = kind == IntegerType ? 1 : 0
        apart = []
        until ranges.empty?
          low, high = ranges.pop
          touching, ranges = ranges.partition { |other| high + gap >= other[0] && other[1] + gap >= low }
          touching.each { |other| low, high = [low, other[0]].min, [high, other[1]].max }
          touching.empty? ? apart << [low, high] : ranges.push([low, high])
        end
        apart
      end
    end
  end
end
