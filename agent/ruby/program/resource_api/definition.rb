# frozen_string_literal: true

module Puppet
  module ResourceApi
    # What a type or a transport says about itself, checked.
    class BaseTypeDefinition
      MOST_WARNINGS = 100 # about schemas, in one run

      attr_reader :definition, :attributes

      def initialize(definition, attributes_key)
        validate_schema(definition, attributes_key)
        @definition = definition
      end

      def name
        definition[:name]
      end

      def namevars
        @namevars ||= attributes.select { |_, options| options[:behaviour] == :namevar }.keys
      end

      # Returns the names of the attributes that are compared.
      def insyncable_attributes
        @insyncable_attributes ||= attributes.reject { |_, options| options.key?(:behaviour) }.keys
      end

      def data_type(name)
        @data_types[attributes[name][:type]]
      end

      # Returns the data type of a text; raises DevError for one that names none.
      def type_of(attribute, text)
        found = @data_types[text] ||= Bunraku::ResourceApi::Values.types([text])[text]
        return found if found.fault.nil?

        raise DevError, "The type of the `#{attribute}` attribute `#{text}` #{found.fault}"
      end

      def validate_schema(definition, attributes_key)
        lacking("must be a Hash, not `#{definition.class}`") unless definition.is_a?(Hash)
        lacking('must have a name') unless definition.key?(:name)
        lacking("must have `#{attributes_key}`") unless definition.key?(attributes_key)
        @attributes = definition[attributes_key]
        unless attributes.is_a?(Hash)
          raise DevError, "`#{definition[:name]}.#{attributes_key}` must be a hash, not `#{attributes.class}`"
        end

        move_docs(definition)
        texts = attributes.values.grep(Hash).map { |options| options[:type] }
        @data_types = Bunraku::ResourceApi::Values.types(texts.grep(String).uniq)
        attributes.each { |name, options| validate_attribute(definition[:name], name, options) }
      end

      # --- what providers return

      # Says what is wrong with a resource that a provider returned; `wrong` is what check_schema_values returns, where that is known.
      def check_schema(resource, prefix = nil, wrong: nil)
        namevars.each do |name|
          raise ResourceError, "`#{self.name}.get` did not return a value for the `#{name}` namevar attribute" if resource[name].nil?
        end
        unknown = check_schema_keys(resource)
        wrong ||= check_schema_values(resource)
        return if unknown.empty? && wrong.empty?

        lines = ["#{prefix || 'Provider returned data that does not match the Type Schema'} for `#{name}[#{resource[namevars.first]}]`"]
        lines << "\n Unknown attribute:\n" << unknown.map { |key| "    * #{key}\n" } unless unknown.empty?
        lines << "\n Value type mismatch:\n" << wrong.map { |key, text| "    * #{key}: #{text}\n" } unless wrong.empty?
        notify_schema_errors(lines.join)
      end

      def notify_schema_errors(message)
        case ResourceApi.strictness
        when 'off' then Puppet.debug(message)
        when 'error' then raise DevError, message
        else
          ResourceApi.warning_count += 1
          Puppet.warning(message) if ResourceApi.warning_count <= MOST_WARNINGS
        end
      end

      # Returns the keys of a resource that are no attributes.
      def check_schema_keys(resource)
        resource.keys.reject { |key| key == :title || attributes.key?(key) }
      end

      # Returns what is wrong with a resource's values, by attribute.
      def check_schema_values(resource)
        check_values_of([resource]).first
      end

      # Returns what `check_schema_values` does for each of several resources.
      def check_values_of(resources)
        known = resources.map { |resource| resource.select { |name, _| attributes[name] } }
        errors = Bunraku::ResourceApi::Values.complaints(known.flat_map { |values| values.map { |name, value| [data_type(name), value, ''] } })
        known.map do |values|
          wrong = values.zip(errors.shift(values.size)).reject { |_, error| error.nil? }
          wrong.map { |(name, value), error| [name, shown_error(name, value, error)] }.to_h
        end
      end

      private

      def shown_error(name, value, error)
        attributes[name][:sensitive] == true ? "<< redacted value >> #{error}" : "#{value} (#{error})"
      end

      def lacking(what)
        raise DevError, "#{self.class.name} #{what}"
      end

      # `docs` is the older word for `desc`.
      def move_docs(definition)
        if definition.key?(:docs)
          raise DevError, "`#{definition[:name]}` has both `desc` and `docs`, prefer using `desc`" if definition[:desc]

          definition[:desc] = definition.delete(:docs)
        end
        Puppet.warning("`#{definition[:name]}` has no documentation, add it using a `desc` key") unless definition.key?(:desc)
      end

      def validate_attribute(type, name, options)
        if name == :rsapi_custom_insync_trigger
          raise DevError, '`rsapi_custom_insync_trigger` cannot be specified as an attribute; ' \
                          'it is reserved for propertyless types with the custom_insync feature'
        end
        raise DevError, "`#{type}.#{name}` must be a Hash, not a #{options.class}" unless options.is_a?(Hash)
        raise DevError, "`#{type}.#{name}` has no type" unless options.key?(:type)

        Puppet.warning("`#{type}.#{name}` has no documentation, add it using a `desc` key") unless options.key?(:desc)
        type_of(name, options[:type])
        move_behavior(name, options)
      end

      def move_behavior(name, options)
        return unless options[:behavior]
        raise DevError, "the '#{name}' attribute has both a `behavior` and a `behaviour`, only use one" if options[:behaviour]

        options[:behaviour] = options.delete(:behavior)
      end
    end

    # What a type says about itself.
    class TypeDefinition < BaseTypeDefinition
      RESERVED = %i[title provider consume export].freeze
      FEATURES = %w[supports_noop canonicalize custom_insync remote_resource simple_get_filter custom_generate].freeze

      def initialize(definition)
        super(definition, :attributes)
      end

      def ensurable?
        attributes.key?(:ensure)
      end

      def feature?(feature)
        definition[:features].include?(feature)
      end

      def title_patterns
        definition[:title_patterns] ||= []
      end

      def validate_schema(definition, attributes_key)
        super
        (RESERVED + Bunraku.metaparameters).each { |name| raise DevError, "must not define an attribute called `#{name.inspect}`" if attributes.key?(name) }
        patterns = definition[:title_patterns]
        if definition.key?(:title_patterns) && !patterns.is_a?(Array)
          raise DevError, "`:title_patterns` must be an array, not `#{patterns.class}`"
        end

        validate_ensure
        definition[:features] ||= []
        unknown = definition[:features] - FEATURES
        Puppet.warning("Unknown feature detected: #{unknown.inspect}") unless unknown.empty?
      end

      private

      def validate_ensure
        return unless ensurable?
        return if data_type(:ensure).ensure

        raise DevError, '`:ensure` attribute must have a type of: `Enum[present, absent]` or `Optional[Enum[present, absent]]`'
      end
    end
  end
end
