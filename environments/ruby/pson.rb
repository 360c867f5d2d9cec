# frozen_string_literal: true

# The JSON of Puppet before version 8: every object has a text in it, and bytes stay what they are.
module PSON
  class PSONError < StandardError; end

  class ParserError < PSONError; end

  ESCAPES = { '"' => '\"', '\\' => '\\\\', "\b" => '\b', "\f" => '\f', "\n" => '\n', "\r" => '\r', "\t" => '\t' }.freeze
  private_constant :ESCAPES

  class << self
    def generate(value, *)
      written(value, nil, '')
    end
    alias dump generate

    def pretty_generate(value, *)
      written(value, '  ', '')
    end

    def parse(text, *)
      JSON.parse(text)
    rescue JSON::ParserError => e
      raise ParserError, e.message
    end
    alias load parse

    private

    def written(value, step, indent)
      case value
      when nil then 'null'
      when true, false, Numeric then value.to_s
      when Array then enclosed('[]', value.map { |each| written(each, step, "#{indent}#{step}") }, step, indent)
      when Hash
        pairs = value.map { |key, each| "#{quoted(key.to_s)}:#{' ' if step}#{written(each, step, "#{indent}#{step}")}" }
        enclosed('{}', pairs, step, indent)
      else quoted(value.to_s)
      end
    end

    def enclosed(brackets, parts, step, indent)
      return "#{brackets[0]}#{parts.join(',')}#{brackets[1]}" if step.nil?

      inner = "#{indent}#{step}"
      "#{brackets[0]}\n#{inner unless parts.empty?}#{parts.join(",\n#{inner}")}\n#{indent}#{brackets[1]}"
    end

    def quoted(text)
      escaped = text.b.gsub(/["\\\x00-\x1f]/n) { |octet| ESCAPES[octet] || format('\u%04x', octet.ord) }
      "\"#{escaped}\"".force_encoding(Encoding::UTF_8)
    end
  end
end

# What Puppet 7 adds to all objects.
class Object
  def to_pson(*)
    PSON.generate(self)
  end
end
