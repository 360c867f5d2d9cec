# frozen_string_literal: true

require 'strscan'

module Bunraku
  module Pcore
    # A text that is no type; `syntax` when it is not even an expression.
    class Unreadable < StandardError
      attr_reader :syntax

      def initialize(message, syntax: false)
        super(message)
        @syntax = syntax
      end
    end

    @types = {}

    # Returns the type that a text like `Optional[String[1]]` names; raises Unreadable.
    def self.parse(text)
      @types[text] ||= Reader.new(text).type
    end

    # Reads one type.
    class Reader
      SKIP = /(?:\s|#[^\n]*)+/.freeze
      LACKING = %w[Binary Callable CatalogEntry Class Init Iterable Iterator Object Resource Runtime SemVer SemVerRange Timespan Timestamp Type
                   TypeAlias TypeSet URI].freeze
      NAMES = %w[String Integer Float Boolean Enum Pattern Collection Array Hash Tuple Struct Variant Optional NotUndef Sensitive].freeze
      BARE = { 'Any' => AnyType, 'Undef' => UndefType, 'Default' => DefaultType, 'Scalar' => ScalarType, 'ScalarData' => ScalarDataType,
               'Data' => DataType, 'RichData' => AnyType, 'Numeric' => NumericType, 'Regexp' => RegexpType }.freeze
      WORDS = { 'true' => true, 'false' => false, 'default' => :default, 'undef' => nil }.freeze
      ESCAPES = { 'n' => "\n", 't' => "\t", 'r' => "\r", 's' => ' ' }.freeze

      def initialize(text)
        @text = text
        @scanner = StringScanner.new(text)
      end

      def type
        skip
        raise not_a_type(@text) if @scanner.eos?

        found = expression
        skip
        raise syntax_error if @scanner.check(/[\],}=]/)
        raise not_a_type(@text) unless found.is_a?(AnyType) && @scanner.eos?

        found
      end

      private

      def skip
        @scanner.skip(SKIP)
      end

      def take(text)
        skip
        @scanner.skip(Regexp.new(Regexp.escape(text)))
      end

      def syntax_error
        skip
        token = @scanner.rest[/\A(?:\w+|\S)/]
        before = @text.byteslice(0, @scanner.pos).split("\n", -1)
        place = "(line: #{[before.size, 1].max}, column: #{(before.last || '').length + 1})"
        Unreadable.new(token ? "Syntax error at '#{token}' #{place}" : 'Syntax error at end of input', syntax: true)
      end

      def not_a_type(text)
        Unreadable.new("The expression <#{text}> is not a valid type specification.")
      end

      # expression = TYPE [ "[" expressions "]" ] | WORD | NUMBER | STRING | REGEXP | "[" expressions "]" | "{" pairs "}"
      def expression
        skip
        start = @scanner.pos
        if (name = @scanner.scan(/[A-Z]\w*(?:::[A-Z]\w*)*/)) then named(name, start)
        elsif (word = @scanner.scan(/[a-z_]\w*(?:::[a-z]\w*)*/)) then WORDS.fetch(word, word)
        elsif (number = @scanner.scan(/-?\s*(?:0[xX]\h+|\d+\.\d+(?:[eE]-?\d+)?|\d+)/)) then number_of(number.delete(" \n"))
        elsif @scanner.skip(/'/) then single_quoted
        elsif @scanner.skip(/"/) then double_quoted
        elsif @scanner.skip(%r{/}) then regexp
        elsif @scanner.skip(/\[/) then list(']') { expression }
        elsif @scanner.skip(/\{/) then list('}') { pair }.to_h
        else raise syntax_error
        end
      end

      def list(close)
        found = []
        until take(close)
          found << yield
          next if take(',')

          take(close) ? break : raise(syntax_error)
        end
        found
      end

      def pair
        key = expression
        raise syntax_error unless take('=>')

        [key, expression]
      end

      def number_of(text)
        text.match?(/[.]/) ? Float(text) : Integer(text)
      end

      def single_quoted
        text = @scanner.scan_until(/(?:\A|[^\\])(?:\\\\)*(?=')/m) if @scanner.check(/[^']/)
        raise syntax_error unless @scanner.skip(/'/)

        (text || '').gsub(/\\(['\\])/, '\1')
      end

      def double_quoted
        text = @scanner.scan(/(?:[^"\\]|\\.)*/m)
        raise syntax_error unless @scanner.skip(/"/)

        text.gsub(/\\(.)/m) { ESCAPES.fetch(Regexp.last_match(1), Regexp.last_match(1)) }
      end

      def regexp
        source = @scanner.scan(%r{(?:[^/\\\n]|\\.)*})
        raise syntax_error unless @scanner.skip(%r{/})

        Regexp.new(source.gsub('\/', '/'))
      end

      # --- types by name

      def named(name, start)
        arguments = @scanner.skip(/\s*\[/) ? arguments_of : nil
        @source = @text.byteslice(start...@scanner.pos)
        name = [*LACKING, *BARE.keys, *NAMES].find { |each| each.casecmp(name).zero? } || name
        raise Lacking, "the data type #{name}" if LACKING.include?(name) || (name == 'Regexp' && arguments)
        return bare(name, arguments) if BARE.key?(name)
        return TypeReference.new(@source) unless NAMES.include?(name)

        arguments.nil? ? Pcore.const_get("#{name}Type").new : send(:"make_#{name.downcase}", arguments)
      end

      def arguments_of
        skip
        raise syntax_error if @scanner.check(/\]/)

        list(']') { expression }
      end

      def bare(name, arguments)
        raise Unreadable, "Not a parameterized type <#{name}>" unless arguments.nil?

        BARE.fetch(name).new
      end

      def count(name, required, arguments, range)
        return if range.cover?(arguments.size)

        raise Unreadable, "Invalid number of type parameters specified: #{name} requires #{required}, #{arguments.size} provided"
      end

      def type_among(argument)
        argument.is_a?(AnyType) ? argument : raise(not_a_type(@source))
      end

      # Returns a range of whole numbers; one that a type gives, or the two ends.
      def size(arguments)
        return arguments.first.range if arguments.size == 1 && arguments.first.is_a?(IntegerType)
        raise not_a_type(@source) unless arguments.all? { |each| each.is_a?(Integer) || each == :default }

        low, high = arguments
        [low == :default ? 0 : low, high.nil? || high == :default ? INF : high]
      end

      # Returns a range of numbers of some kinds.
      def ends(arguments, *kinds)
        raise not_a_type(@source) unless arguments.all? { |each| each == :default || kinds.any? { |kind| each.is_a?(kind) } }

        low, high = arguments
        raise ArgumentError, "'from' must be less or equal to 'to'. Got (#{low}, #{high}" if [low, high].all?(Numeric) && low > high

        [low == :default ? -INF : low, high.nil? || high == :default ? INF : high]
      end

      def literal_or_type(argument)
        argument.is_a?(String) ? StringType.new(nil, argument) : type_among(argument)
      end

      def make_string(arguments)
        count('String', '1 to 2', arguments, 1..2)
        StringType.new(size(arguments))
      end

      def make_integer(arguments)
        count('Integer', '1 or 2', arguments, 1..2)
        IntegerType.new(*ends(arguments, Integer))
      end

      def make_float(arguments)
        count('Float', '1 or 2', arguments, 1..2)
        FloatType.new(*ends(arguments, Integer, Float))
      end

      def make_boolean(arguments)
        count('Boolean', 1, arguments, 1..1)
        raise Unreadable, 'Boolean parameter must be true or false' unless [true, false].include?(arguments.first)

        BooleanType.new(arguments.first)
      end

      def make_enum(arguments)
        any_case = arguments.last == true
        arguments = arguments[0..-2] if [true, false].include?(arguments.last)
        count('Enum', '1 or more', arguments, 1..INF)
        raise Unreadable, 'Enum parameters must be identifiers or strings' unless arguments.all?(String)

        EnumType.new(arguments, any_case: any_case)
      end

      def make_pattern(arguments)
        count('Pattern', '1 or more', arguments, 1..INF)
        PatternType.new(arguments.flat_map { |each| patterns_of(each) })
      end

      def patterns_of(argument)
        case argument
        when PatternType then argument.patterns
        when Regexp, String then [Regexp.new(argument)]
        else raise ArgumentError, "Only String, Regexp, Pattern-Type, and Regexp-Type are allowed: got '#{argument.class}"
        end
      end

      def make_collection(arguments)
        count('Collection', '1 to 2', arguments, 1..2)
        CollectionType.new(size(arguments))
      end

      # Without a type for the elements Puppet takes the one of `default`.
      def make_array(arguments)
        count('Array', '1 to 3', arguments, 1..3)
        return ArrayType.new(DefaultType.new, size(arguments)) if arguments.size == 2 && !arguments.first.is_a?(AnyType)

        ArrayType.new(type_among(arguments.first), arguments.size > 1 ? size(arguments.drop(1)) : nil)
      end

      def make_hash(arguments)
        count('Hash', '2 to 4', arguments, 2..4)
        return HashType.new(DefaultType.new, DefaultType.new, size(arguments)) unless arguments.first(2).all?(AnyType)

        HashType.new(*arguments.first(2), arguments.size > 2 ? size(arguments.drop(2)) : nil)
      end

      def make_tuple(arguments)
        count('Tuple', '1 or more', arguments, 1..INF)
        limits = arguments.reverse.take_while { |each| each.is_a?(Integer) || each == :default }.reverse
        types = arguments.first(arguments.size - limits.size)
        TupleType.new(types.map { |each| type_among(each) }, limits.empty? ? nil : size(limits))
      end

      def make_struct(arguments)
        count('Struct', '1', arguments, 1..1)
        raise not_a_type(@source) unless arguments.first.is_a?(Hash)

        StructType.new(arguments.first.map { |key, type| element(key, type_among(type)) })
      end

      # A key whose value may be undef may be missing, unless it says otherwise.
      def element(key, type)
        return StructElement.new(key, type, type.instance?(nil)) if key.is_a?(String)

        name = key.is_a?(Wrapper) && key.type.is_a?(StringType) ? key.type.value : nil
        raise not_a_type(@source) if name.nil?

        StructElement.new(name, type, key.is_a?(OptionalType))
      end

      def make_variant(arguments)
        count('Variant', '1 or more', arguments, 1..INF)
        VariantType.of(arguments.map { |each| type_among(each) })
      end

      def make_optional(arguments)
        count('Optional', 1, arguments, 1..1)
        OptionalType.new(literal_or_type(arguments.first))
      end

      def make_notundef(arguments)
        count('NotUndef', '0 to 1', arguments, 0..1)
        arguments.empty? ? NotUndefType.new : NotUndefType.new(literal_or_type(arguments.first))
      end

      def make_sensitive(arguments)
        count('Sensitive', '0 to 1', arguments, 0..1)
        arguments.empty? ? SensitiveType.new : SensitiveType.new(type_among(arguments.first))
      end
    end
  end
end
