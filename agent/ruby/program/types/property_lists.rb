# frozen_string_literal: true

module Puppet
  class Property
    # A set of values, to which what is there already is added unless the membership is inclusive; `puppet/property/list`.
    class List < Property
      def is_to_s(value)
        value == :absent ? super : value.join(delimiter)
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

      def add_should_with_current(should, current)
        (current.is_a?(Array) ? should + current : should).uniq
      end

      def dearrayify(list)
        list.sort.join(delimiter)
      end

      def should
        return nil unless defined?(@should) && @should

        dearrayify(inclusive? ? @should : add_should_with_current(@should, retrieve))
      end

      def retrieve
        list = provider&.public_send(name)
        return :absent if !list || list == :absent

        list.instance_of?(Array) ? list : list.split(delimiter)
      end

      def prepare_is_for_comparison(is)
        dearrayify(is == :absent ? [] : is)
      end

      def insync?(is)
        is ? prepare_is_for_comparison(is) == should : true
      end
    end

    # A list whose order counts; `puppet/property/ordered_list`.
    class OrderedList < List
      def add_should_with_current(should, current)
        current.is_a?(Array) ? should + (current - should) : should
      end

      def dearrayify(list)
        list.join(delimiter)
      end
    end

    # Pairs of keys and values, to which those that are there already are added unless the membership is inclusive; `puppet/property/keyvalue`.
    class KeyValue < Property
      class << self
        attr_accessor :log_only_changed_or_new_keys
      end

      def is_to_s(pairs)
        hash_to_key_value_s(pairs)
      end

      def should_to_s(pairs)
        hash_to_key_value_s(pairs)
      end

      def hash_to_key_value_s(pairs)
        pairs = pairs.slice(*@changed_or_new_keys) if self.class.log_only_changed_or_new_keys
        pairs.map { |pair| [*pair].join(separator) }.join(delimiter)
      end

      def membership
        :key_value_membership
      end

      def separator
        '='
      end

      def delimiter
        ';'
      end

      def inclusive?
        @resource[membership] == :inclusive
      end

      def hashify_should
        return @should.first if @should.first.is_a?(Hash)

        @should.map { |text| text.split(separator) }.map { |parts| [parts[0].strip.to_sym, parts[1]] }.to_h
      end

      # What is there of keys that are not to be kept counts as nothing.
      def process_current_hash(current)
        return {} if current == :absent

        current.each_key { |key| current[key] = nil } if inclusive?
        current
      end

      def should
        return nil unless defined?(@should) && @should

        wanted = hashify_should
        current = process_current_hash(retrieve)
        merged = current.merge(wanted)
        @changed_or_new_keys ||= merged.keys.reject { |key| current.key?(key) && current[key] == merged[key] }
        merged
      end

      def retrieve
        pairs = provider&.public_send(name)
        pairs && pairs != :absent ? pairs : :absent
      end

      def insync?(is)
        is ? is == should : true
      end

      def unsafe_validate(value)
        case value
        when Hash then nil
        when String
          raise ArgumentError, "Key/value pairs must be separated by '#{separator}'" unless value.include?(separator.to_s)
        else
          raise ArgumentError, "The #{name} property must be specified as a hash or an array of key/value pairs (strings)!"
        end
      end

      def unsafe_munge(value)
        value.is_a?(String) ? value : value.to_a.map { |key, text| [key.to_s.strip.to_sym, text.to_s] }.to_h
      end
    end
  end
end
