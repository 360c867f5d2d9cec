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

    # Is called when the compiler gets it; returns itself.
    def passed_on
      self
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

    def initialize(id, text, inspected, type, title)
      super(id, 'Type', text)
      @inspected = inspected
      @type = type
      @title = title
    end

    def inspect
      @inspected.dup
    end

    alias type_name type
    alias class_name title
    alias name title
    alias ref to_s
  end

  # A type Enum, of which templates go through the values.
  class EnumType < Opaque
    attr_reader :values

    def initialize(id, text, values)
      super(id, 'Type', text)
      @values = values
    end

    def each(&block)
      @values.each(&block)
    end
  end

  # The bytes of the language's Binary.
  class Binary
    attr_reader :binary_buffer

    def initialize(octets)
      @binary_buffer = octets
    end

    def self.from_binary_string(octets)
      new(octets.b)
    end

    def self.from_string(text)
      new(text.encode(Encoding::UTF_8).b)
    end

    def self.from_base64(text)
      new(text.unpack1('m'))
    end

    def self.from_base64_strict(text)
      new(text.unpack1('m0'))
    end

    def to_s
      [@binary_buffer].pack('m0')
    end

    def length
      @binary_buffer.length
    end

    def ==(other)
      other.is_a?(Binary) && other.binary_buffer == @binary_buffer
    end
    alias eql? ==

    def hash
      @binary_buffer.hash
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
      when 'lookup' then LookupContext.new(data)
      when 'enum' then EnumType.new(data['id'], data['text'], data['values'])
      when 'reference' then Reference.new(*data.values_at('id', 'text', 'inspected', 'type', 'title'))
      else Opaque.new(data['id'], data['$'], data['text'])
      end
    end

    def dump(value)
      case value
      when nil, true, false, :undef then value == :undef ? nil : value
      when :default then { '$' => 'default' }
      when Integer then value.bit_length < 64 ? value : object(value)
      when String then string(value)
      when Symbol then { '$' => 'symbol', 'v' => text(value) }
      when Array then own(value, value.each) { value.map { |each| dump(each) } }
      when Hash then own(value, value.each_key, value.each_value) { hash(value) }
      when Float then value.finite? ? value : { '$' => 'float', 'v' => value.nan? ? 'nan' : "#{'-' if value.negative?}inf" }
      else other(value)
      end
    end

    # Returns the data of a collection; of one with :undef, which is undef for the language, so that the same object comes back.
    def own(value, *parts)
      data = yield
      return data unless parts.any? { |part| part.any? { |each| :undef.equal?(each) } }

      { '$' => 'own', 'id' => Bunraku.desk.hold(value), 'v' => data }
    end

    # An object that the language has no form for: it can be stored and come back.
    def object(value)
      shown = begin
        value.to_s
      rescue StandardError
        value.class.name
      end
      { '$' => 'object', 'id' => Bunraku.desk.hold(value), 'class' => value.class.name.to_s, 'text' => text(shown) }
    end

    def other(value)
      case value
      when Opaque then { '$' => 'kept', 'id' => value.passed_on.id }
      when Sensitive then { '$' => 'sensitive', 'v' => dump(value.unwrap) }
      when Regexp then { '$' => 'regexp', 'v' => value.source, 'flags' => value.options & 7 }
      when Binary then { '$' => 'binary', 'v' => value.to_s }
      when Proc then block(value)
      else object(value)
      end
    end

    def block(value)
      kinds = value.parameters.map(&:first)
      { '$' => 'proc', 'id' => Bunraku.desk.keep(value), 'parameters' => kinds.count { |kind| %i[req opt].include?(kind) },
        'rest' => kinds.include?(:rest) }
    end
  end
end
