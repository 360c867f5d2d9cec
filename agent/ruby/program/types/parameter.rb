# frozen_string_literal: true

module Puppet
  # An attribute that steers; a subclass is the declaration, an instance the value of one resource.
  class Parameter
    include Bunraku::Logging
    extend Puppet::Util
    include Puppet::Util
    include Puppet::Util::Errors

    class << self
      attr_accessor :name, :metaparam, :options, :array_matching
      attr_writer :doc, :boolean
      attr_reader :required_features

      def inherited(subclass)
        super
        subclass.initvars
      end

      # A declaration begins with what it inherits.
      def initvars
        @required_features ||= superclass.respond_to?(:required_features) ? superclass.required_features.dup : []
        @value_collection = ValueCollection.new
      end

      def value_collection
        inherited = @value_collection.empty? && superclass.respond_to?(:value_collection)
        inherited ? superclass.value_collection : @value_collection
      end

      def required_features=(*features)
        @required_features = features.flatten.map { |each| each.to_s.downcase.to_sym }
      end
      alias required_feature= required_features=

      def desc(text)
        @doc = text
      end

      def doc
        @doc || (superclass.respond_to?(:doc) ? superclass.doc : nil)
      end

      def nodoc; end

      def defaultto(value = nil, &block)
        raise Puppet::DevError, "Defaults cannot be nil: give a value or a block for #{name}" if value.nil? && block.nil?

        define_method(:default, &(block || -> { value }))
      end

      def isnamevar
        @isnamevar = true
        @required = true
      end

      def isnamevar?
        @isnamevar ? true : false
      end
      alias namevar? isnamevar?

      def isrequired
        @required = true
      end

      def required?
        @required ? true : false
      end

      def metaparam?
        @metaparam ? true : false
      end

      def boolean?
        @boolean ? true : false
      end

      def munge(&block)
        define_method(:unsafe_munge, &block)
      end

      def unmunge(&block)
        define_method(:unsafe_unmunge, &block)
      end

      def validate(&block)
        define_method(:unsafe_validate, &block)
      end

      def newvalues(*names)
        own_values.newvalues(*names)
      end

      def aliasvalue(name, other)
        own_values.aliasvalue(name, other)
      end

      def proxymethods(*names)
        names.each { |name| define_method(name) { |*args| resource.send(name, *args) } }
      end

      def sensitive(value = nil, &block)
        define_method(:is_sensitive, &(block || -> { value }))
      end

      # How messages show a value.
      def format_value_for_display(value)
        Bunraku::Display.of(value)
      end

      private

      def own_values
        @value_collection
      end
    end

    initvars

    attr_accessor :resource, :parent, :sensitive

    def initialize(resource: nil, **_others)
      @resource = resource or raise Puppet::DevError, "No resource given for #{self.class.name}"
    end

    def name
      self.class.name
    end

    def to_s
      name.to_s
    end

    def default
      nil
    end

    # --- from the manifest's value to the stored one

    def value=(value)
      validate(value)
      @value = munge(value)
    end

    def value
      unmunge(@value) unless @value.nil?
    end

    def munge(value)
      unsafe_munge(value)
    rescue Puppet::Error
      raise
    rescue StandardError => e
      raise e if e.is_a?(Bunraku::Lacking)

      raise Puppet::DevError.new("Munging failed for value #{value.inspect} in class #{name}: #{e}", e)
    end

    def unsafe_munge(value)
      self.class.value_collection.munge(value)
    end

    def unmunge(value)
      unsafe_unmunge(value)
    end

    def unsafe_unmunge(value)
      value
    end

    def validate(value)
      unsafe_validate(value)
    rescue ArgumentError => e
      raise Puppet::Error, e.to_s
    rescue Puppet::Error, TypeError
      raise
    rescue StandardError => e
      raise e if e.is_a?(Bunraku::Lacking)

      raise Puppet::DevError.new("Validate method failed for class #{name}: #{e}", e)
    end

    def unsafe_validate(value)
      self.class.value_collection.validate(value)
    end

    # --- around it

    def metaparam?
      self.class.metaparam?
    end

    def remove
      @resource = nil
    end

    def noop
      @resource.noop?
    end

    def provider
      @resource.provider
    end

    def tags
      [name]
    end

    def path
      "#{@resource.path}/#{name}"
    end

    def log_source
      "#{@resource.bunraku_id} #{name}"
    end

    def format_value_for_display(value)
      self.class.format_value_for_display(value)
    end

    # Formats a message; secrets do not get into it.
    def format(text, *values)
      text % values.map { |value| @sensitive ? '[redacted]' : value.to_s }
    end

    def file
      @resource.file
    end

    def line
      @resource.line
    end

    # Values `true` and `false` in their usual spellings; `puppet/parameter/boolean`.
    class Boolean < Parameter
      newvalues('true', 'false', 'yes', 'no')

      def unsafe_munge(value)
        Puppet::Coercion.boolean(value)
      end
    end

    # An absolute path, or with `accept_arrays` several; `puppet/parameter/path`.
    class Path < Parameter
      def self.accept_arrays(yes = true)
        @accept_arrays = yes
      end

      def self.arrays?
        @accept_arrays ? true : false
      end

      def unsafe_validate(value)
        validate_path(value)
      end

      def validate_path(value)
        fail "#{name} only accepts a single path, not an array of paths" if value.is_a?(Array) && !self.class.arrays?
        fail "#{name} must be a fully qualified path" unless Array(value).all? { |path| absolute_path?(path) }
        value
      end
    end

    # The package options, as an array; `puppet/parameter/package_options`.
    class PackageOptions < Parameter
      def unsafe_munge(values)
        (values.is_a?(Array) ? values : [values]).map { |value| value.is_a?(Hash) ? value.map { |pair| pair.map { |text| quote(text) } }.to_h : quote_one(value) }
      end

      # Puts a text that has a space in quotes.
      def quote(text)
        text.include?(' ') ? "\"#{text.gsub('"', '\"')}\"" : text
      end

      private

      def quote_one(value)
        value.is_a?(String) ? quote(value) : fail('Expected either a string or hash of options')
      end
    end
  end
end

module Puppet
  # Values of other kinds that stand for one.
  module Coercion
    module_function

    def boolean(value)
      case value.respond_to?(:downcase) ? value.downcase : value
      when true, :true, 'true', :yes, 'yes' then true # rubocop:disable Lint/BooleanSymbol -- what modules write
      when false, :false, 'false', :no, 'no' then false # rubocop:disable Lint/BooleanSymbol
      else fail 'expected a boolean value'
      end
    end

    def boolean_values
      %w[true false yes no]
    end
  end
end

module Bunraku
  # Values as change messages show them: strings in quotes, numbers and booleans bare.
  module Display
    ESCAPES = { "\n" => '\n', "\r" => '\r', "\t" => '\t', '"' => '\"', '\\' => '\\\\', '$' => '\$' }.freeze

    module_function

    def of(value, depth = 0)
      case value
      when nil, :undef then depth.zero? ? '' : 'undef'
      when true, false, Integer then value.to_s
      when Float then depth.zero? ? format('%<value>f', value: value) : value.inspect
      when Array then array(value, depth)
      when Hash then hash(value, depth)
      when Regexp then depth.positive? ? value.inspect : pattern(value)
      when :default then 'default'
      when Sensitive then depth.zero? ? value.to_s : value.inspect
      else quoted(value.to_s)
      end
    end

    # A pattern without options is shown as it is written.
    def pattern(value)
      return value.source if value.options.zero?

      set, unset = { 'i' => Regexp::IGNORECASE, 'm' => Regexp::MULTILINE, 'x' => Regexp::EXTENDED }.partition { |_, bit| (value.options & bit).positive? }
      "(?#{set.map(&:first).join}#{"-#{unset.map(&:first).join}" unless unset.empty?}:#{value.source})"
    end

    # Plain elements in one line; an array or hash, and the element after it, begin a line of their own.
    def array(items, depth)
      text = +'['
      breaks = false
      items.each_with_index do |item, index|
        nested = item.is_a?(Array) || item.is_a?(Hash)
        text << ',' if index.positive?
        text << (nested || breaks ? "\n#{'  ' * (depth + 1)}" : (index.positive? ? ' ' : ''))
        text << of(item, depth + 1)
        breaks = nested
      end
      text << ']'
    end

    def hash(pairs, depth)
      pad = '  ' * (depth + 1)
      inner = pairs.map { |key, value| "#{pad}#{of(key, depth + 1)} => #{of(value, depth + 1)}" }.join(",\n")
      "{\n#{inner}\n#{'  ' * depth}}"
    end

    def quoted(text)
      text = Wire.text(text)
      return "\"#{text.gsub(/[\n\r\t"\\$]/, ESCAPES).gsub(/[\x00-\x1f]/) { |c| format('\u{%<code>X}', code: c.ord) }}\"" if text.match?(/[\x00-\x1f]/)

      "'#{text.gsub("\\'") { "\\\\'" }.gsub("'") { "\\'" }}'"
    end
  end
end
