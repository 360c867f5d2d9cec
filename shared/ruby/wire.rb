# frozen_string_literal: true

module Bunraku
  # Values as JSON; a value that JSON does not have is an object with the key `$`. What that may be, and how values are written, is a
  # program's own: it adds `special`, for what is read beside the kinds that are here, and `dump`.
  module Wire
    module_function

    def load(data)
      case data
      when Array then data.map { |each| load(each) }
      when Hash then data.key?('$') ? marked(data) : data.transform_values { |each| load(each) }
      else data
      end
    end

    def marked(data)
      case data['$']
      when 'hash' then data['v'].map { |key, value| [load(key), load(value)] }.to_h
      when 'bytes' then data['v'].unpack1('m').force_encoding(Encoding::UTF_8)
      when 'symbol' then data['v'].to_sym
      else special(data)
      end
    end

    def string(value)
      text = in_utf8(value)
      text.valid_encoding? ? text : { '$' => 'bytes', 'v' => [value].pack('m0') }
    end

    # Bytes of no or the usual encoding count as UTF-8; other encodings are converted.
    def in_utf8(value)
      return value if value.encoding == Encoding::UTF_8
      return value.dup.force_encoding(Encoding::UTF_8) if [Encoding::BINARY, Encoding::US_ASCII].include?(value.encoding)

      value.encode(Encoding::UTF_8)
    rescue EncodingError
      value.dup.force_encoding(Encoding::UTF_8)
    end

    def hash(value)
      pairs = value.map { |key, each| [dump(key), dump(each)] }
      return pairs.to_h if pairs.all? { |key, _| key.is_a?(String) && key != '$' }

      { '$' => 'hash', 'v' => pairs }
    end

    # Returns a text for messages, as valid UTF-8 in any case: like Puppet, with U+FFFD for what is none.
    def text(value)
      in_utf8(value.to_s).scrub
    end
  end
end
