# frozen_string_literal: true

module Bunraku
  module ResourceApi
    # A data type of the language. The agent has the types; of a text that names none, `fault` says why.
    DataType = Struct.new(:text, :optional, :boolean, :enum, :ensure, :fault, keyword_init: true)

    # Values as data types tell them apart: symbols, secrets and objects are no texts.
    module Exact
      extend Wire

      def self.dump(value)
        case value
        when nil, :undef then nil
        when true, false, Integer then value
        when String then string(value)
        when Array then value.map { |each| dump(each) }
        when Hash then hash(value)
        when Float then value.finite? ? value : { '$' => 'float', 'v' => value.to_s }
        when :default then { '$' => 'default', 'v' => nil }
        when Regexp then { '$' => 'regexp', 'v' => value.source }
        when Sensitive then { '$' => 'sensitive', 'v' => dump(value.unwrap) }
        else { '$' => 'object', 'v' => [value.class.name.to_s, value.is_a?(Symbol) ? value.to_s : value.object_id.to_s] }
        end
      end
    end

    # What the agent is asked about data types, and about values of attributes.
    module Values
      MOST = 5000 # items of one question

      module_function

      # Returns data types by their texts.
      def types(texts)
        answers = ask('types', texts)
        texts.zip(answers).map { |text, answer| [text, DataType.new(text: text, **answer.transform_keys(&:to_sym))] }.to_h
      end

      # Returns why values are not of their types, nil for each that is.
      #
      # @param values [Array<Array>] type, value and what messages call it, of each
      def complaints(values)
        ask('complaints', values.map { |type, value, subject| [type.text, Exact.dump(value), subject] })
      end

      # Returns a value that may be a text of a command line as its type has it; raises ResourceError for one that cannot be.
      def converted(type, value, subject)
        answer = ask('conversions', [[type.text, Exact.dump(value), subject]]).first
        raise Puppet::ResourceError, answer['error'] if answer['error']

        answer.key?('value') ? Wire.load(answer['value']) : value
      end

      # Returns a value of an attribute that is Sensitive with the secrets where the type has them, else as one secret.
      def seal(type, value)
        return value if value.nil? || value.is_a?(Sensitive)

        Wire.load(ask('sealed', [[type.text, Exact.dump(value)]]).first)
      end

      # Asks for all the items in one question, or in a few where there are very many.
      def ask(what, items)
        items.each_slice(MOST).flat_map { |some| Bunraku.ask('data_types', what, some) }
      end
    end
  end
end
