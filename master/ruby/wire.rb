# frozen_string_literal: true

require_relative '../../shared/ruby/wire'

module Bunraku
  # A value that stays with the compiler: it can be displayed, compared and passed on.
  class Opaque
    attr_reader :id

    def initialize(id, kind, text)
      @id = id
      @kind = kind
      @text = text
    end

    def to_s
      @text.dup
    end
    alias inspect to_s

    def ==(other)
      other.is_a?(Opaque) && other.kind == kind && other.to_s == to_s
    end
    alias eql? ==

    def hash
      [@kind, @text].hash
    end

    def respond_to_missing?(name, include_all = false)
      @kind == 'Object' || super
    end

    def method_missing(name, *args, &block)
      return super unless @kind == 'Object'

      Bunraku.ask('method', self, name.to_s, args, block)
    end

    protected

    attr_reader :kind
  end

  # A reference to a resource or class.
  class Reference < Opaque
    attr_reader :type, :title

    def initialize(id, text, type, title)
      super(id, 'Type', text)
      @type = type
      @title = title
    end

    alias type_name type
    alias class_name title
    alias name title
    alias ref to_s
  end

  # The bytes of the language's Binary.
  class Binary
    attr_reader :binary_buffer

    def initialize(octets)
      @binary_buffer = octets
    end

    def to_s
      [@binary_buffer].pack('m0')
    end
  end

  # The values of the language; see shared/ruby/wire.rb.
  module Wire
    module_function

    def special(data)
      case data['$']
      when 'default' then :default
      when 'float' then { 'nan' => Float::NAN, 'inf' => Float::INFINITY, '-inf' => -Float::INFINITY }.fetch(data['v'])
      when 'sensitive' then Sensitive.new(load(data['v']))
      when 'regexp' then Regexp.new(data['v'])
      when 'binary' then Binary.new(data['v'].unpack1('m'))
      when 'held' then Bunraku.desk.held(data['id'])
      when 'block' then ->(*args) { Bunraku.ask('block', data['id'], args) }
      when 'reference' then Reference.new(data['id'], data['text'], data['type'], data['title'])
      else Opaque.new(data['id'], data['$'], data['text'])
      end
    end

    def dump(value)
      case value
      when nil, true, false, :undef then value == :undef ? nil : value
      when :default then { '$' => 'default' }
      when Integer then integer(value)
      when String then string(value)
      when Symbol then value.to_s
      when Array then value.map { |each| dump(each) }
      when Hash then hash(value)
      when Float then value.finite? ? value : { '$' => 'float', 'v' => value.nan? ? 'nan' : "#{'-' if value.negative?}inf" }
      else other(value)
      end
    end

    def integer(value)
      return value if value.bit_length < 64

      limit = value.positive? ? 'max' : 'min'
      raise Puppet::Error, format("Use of a Ruby Integer outside of Puppet Integer %s range, got '0x%x'", limit, value)
    end

    def other(value)
      case value
      when Opaque then { '$' => 'kept', 'id' => value.id }
      when Sensitive then { '$' => 'sensitive', 'v' => dump(value.unwrap) }
      when Regexp then { '$' => 'regexp', 'v' => value.source, 'flags' => value.options & 7 }
      when Binary then { '$' => 'binary', 'v' => value.to_s }
      when Proc then block(value)
      else raise Puppet::Error, "An object of Ruby's class #{value.class} is no value of the language"
      end
    end

    def block(value)
      kinds = value.parameters.map(&:first)
      { '$' => 'proc', 'id' => Bunraku.desk.keep(value), 'parameters' => kinds.count { |kind| %i[req opt].include?(kind) },
        'rest' => kinds.include?(:rest) }
    end
  end
end
