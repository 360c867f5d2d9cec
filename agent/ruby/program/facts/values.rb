# frozen_string_literal: true

module Bunraku
  # What values of facts may be, how they are compared and how parts of them are merged.
  module FactValues
    class Invalid < StandardError; end

    # Parts of an aggregate that cannot be merged.
    class Unmergeable < StandardError; end

    # Something that is no value, as a part of an aggregate.
    class Unfreezable < StandardError; end

    KINDS = [Integer, Float, TrueClass, FalseClass, NilClass, Symbol, String, Array, Hash, Date, Time].freeze

    module_function

    # Returns a value with its texts in UTF-8 and its dates as text; raises Invalid, in Facter's words, for what is none.
    def checked(value)
      case value
      when Integer, Float, true, false, nil, Symbol then value
      when Date, Time then value.iso8601
      when String then text(value)
      when Array then value.map { |each| checked(each) }
      when Hash then value.map { |key, each| [checked(key), checked(each)] }.to_h
      else raise Invalid, "Expected #{value} to be one of #{KINDS.inspect}, but was #{value.class}"
      end
    end

    def text(value)
      converted = value.encode(Encoding::UTF_8)
      return converted if converted.valid_encoding?

      raise Invalid, "String #{converted.inspect} doesn't match the reported encoding #{converted.encoding}"
    rescue EncodingError
      raise Invalid, "String encoding #{value.encoding} is not UTF-8 and could not be converted to UTF-8"
    end

    # Returns a value as confines compare it: symbols are text, and text is in lower case.
    def comparable(value)
      value = value.to_s if value.is_a?(Symbol)
      value.is_a?(String) ? value.downcase : value
    end

    # Returns a copy of a value that cannot be changed, down to its leaves.
    def frozen(value)
      case value
      when Numeric, Symbol, true, false, nil then value
      when String then value.dup.freeze
      when Array then value.map { |each| frozen(each) }.freeze
      when Hash then value.map { |key, each| [frozen(key), frozen(each)] }.to_h.freeze
      else raise Unfreezable, "Cannot deep freeze #{value}:#{value.class}"
      end
    end

    # Returns two hashes merged at all depths, or two lists joined; nil gives way to anything.
    def merged(left, right, path = [])
      if left.is_a?(Hash) && right.is_a?(Hash)
        left.merge(right) { |key, one, other| merged(one, other, [*path, key]) }
      elsif left.is_a?(Array) && right.is_a?(Array) then left + right
      elsif right.nil? then left
      elsif left.nil? then right
      else
        place = path.empty? ? '' : " at root#{path.map { |key| "[#{key.inspect}]" }.join}"
        raise Unmergeable, "Cannot merge #{left.inspect}:#{left.class} and #{right.inspect}:#{right.class}#{place}"
      end
    end

    # Returns a value whose hashes have text as keys, as facts see each other's.
    def with_text_keys(value)
      case value
      when Hash then value.map { |key, each| [key.to_s, with_text_keys(each)] }.to_h
      when Array then value.map { |each| with_text_keys(each) }
      else value
      end
    end
  end
end
