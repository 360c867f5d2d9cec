# frozen_string_literal: true

require_relative '../../../shared/ruby/wire'

module Bunraku
  # Values of resources and facts; see shared/ruby/wire.rb.
  module Wire
    module_function

    def special(data)
      return Sensitive.new(load(data['v'])) if data['$'] == 'sensitive'

      raise ArgumentError, "There are no values of the kind #{data['$']}"
    end

    # What the agent shows, compares and writes into reports: symbols become text, objects what they print.
    def dump(value)
      case value
      when nil, true, false, Integer then value
      when String then string(value)
      when Symbol then string(value.to_s)
      when Array, Set then value.map { |each| dump(each) }
      when Hash then hash(value)
      when Float then value.finite? ? value : value.to_s
      when Regexp then string(value.inspect)
      else string(value.to_s)
      end
    end
  end
end
