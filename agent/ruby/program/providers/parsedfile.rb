# frozen_string_literal: true

require_relative 'filetype'

module Puppet
  module Util
    # Lines of a file as records, and back.
    module FileParsing
      attr_writer :line_separator, :trailing_separator

      # A kind of lines: text that is kept as it is, or fields.
      class FileRecord
        attr_reader :type, :fields, :match, :options
        attr_accessor :name

        def initialize(type, options, &block)
          @type = type
          @options = { absent: '', separator: /\s+/, joiner: ' ', rollup: true }.merge(options)
          @fields = (options[:fields] || []).map(&:to_sym)
          @optional = (options[:optional] || []).map(&:to_sym)
          @match = options[:match]
          %i[post_parse pre_gen to_line].each { |hook| define_singleton_method(hook, &options[hook]) if options[hook] }
          return unless block

          options[:block_eval] == :instance ? instance_eval(&block) : define_singleton_method(options[:block_eval] || :process, &block)
        end

        def text?
          @type == :text
        end

        def absent
          @options[:absent]
        end

        # @return [Hash, nil] the record in a line, nil when it is of another kind
        def parse(line)
          found = text? ? parse_text(line) : parse_fields(line)
          return nil unless found

          found[:record_type] = name
          post_parse(found) if respond_to?(:post_parse)
          found
        end

        def format(record)
          if respond_to?(:pre_gen)
            record = record.dup
            pre_gen(record)
          end
          return record[:line] if text?
          return to_line(record) if respond_to?(:to_line)

          line = join(record)
          trailing = @options[:rts] == true ? /(?<!\s)\s+$/ : @options[:rts]
          trailing ? line.sub(trailing, '') : line
        end

        def join(record)
          values = @fields.map do |field|
            value = record[field]
            next value.to_s unless value.nil? || [:absent, [:absent]].include?(value)

            raise ArgumentError, "Field '#{field}' is required" unless @optional.include?(field)

            absent
          end
          values.compact.join(@options[:joiner])
        end

        private

        def parse_text(line)
          { line: line } if line.match?(@match)
        end

        def parse_fields(line)
          return process(line.dup) if respond_to?(:process)

          @match ? parse_match(line) : parse_separated(line)
        end

        def parse_match(line)
          match = @match.match(line) or return nil
          @fields.zip(match.captures).map { |field, value| [field, value == absent ? :absent : value] }.to_h
        end

        def parse_separated(line)
          separator = @options[:separator]
          values = line.split(separator == ' ' ? / / : separator)
          found = @fields.map { |field| [field, given(values.shift)] }.to_h
          found[@fields.last] = [found[@fields.last], *values].join(@options[:joiner]) if @options[:rollup] && !values.empty?
          found
        end

        def given(value)
          value && value != absent ? value : :absent
        end
      end

      def clear_records
        @record_types = {}
      end

      def record_line(name, options, &block)
        raise ArgumentError, 'Must include a list of fields' unless options.key?(:fields)

        new_line_type(name, FileRecord.new(:record, options, &block))
      end

      def text_line(name, options, &block)
        raise ArgumentError, 'You must provide a :match regex for text lines' unless options.key?(:match)

        new_line_type(name, FileRecord.new(:text, options, &block))
      end

      def record_type(name)
        (@record_types || {})[name.to_sym]
      end

      def fields(type)
        record_type(type)&.fields&.dup
      end

      def records?
        !(@record_types || {}).empty?
      end

      def valid_attr?(type, attribute)
        attribute.to_sym == :ensure || (record_type(type)&.fields || []).include?(attribute.to_sym)
      end

      def line_separator
        @line_separator ||= "\n"
      end

      def trailing_separator
        defined?(@trailing_separator) && !@trailing_separator.nil? ? @trailing_separator : true
      end

      def lines(text)
        text.split(line_separator)
      end

      def parse(text)
        lines(text).map.with_index(1) do |line, number|
          parse_line(line) or raise Puppet::ResourceError.new("Could not parse line #{line.inspect}").tap { |error| error.line = number }
        end
      end

      def parse_line(line)
        raise Puppet::DevError, 'No record types defined; cannot parse lines' unless records?

        @record_types.each_value do |record|
          found = record.parse(line)
          return found if found
        end
        nil
      end

      def to_line(record)
        type = record_type(record[:record_type]) or raise ArgumentError, "Invalid record type #{record[:record_type].inspect}"
        type.format(record)
      end

      def to_file(records)
        records.map { |record| to_line(record) }.join(line_separator) + (trailing_separator ? line_separator : '')
      end

      private

      def new_line_type(name, record)
        @record_types ||= {}
        raise ArgumentError, "Line type #{name} is already defined" if @record_types.key?(name.to_sym)

        record.name = name.to_sym
        @record_types[record.name] = record
      end
    end
  end

  class Provider
    # Providers whose things are lines of files: each file is read once and written once for all that changed in it.
    class ParsedFile < Provider
      extend Puppet::Util::FileParsing

      class << self
        attr_accessor :default_target, :target
        attr_writer :filetype

        def inherited(subclass)
          super
          subclass.extend(Puppet::Util::FileParsing)
        end

        def initvars
          super
          @records = []
          @targets = {}
          @modified = []
          @failed = {}
        end

        def resource_type=(type)
          super
          mk_resource_methods
        end

        def filetype
          @filetype = Puppet::Util::FileType.filetype(@filetype || :flat) unless @filetype.is_a?(Class)
          @filetype
        end

        def mk_resource_methods
          [resource_type.validproperties, resource_type.parameters].flatten.each do |attribute|
            define_method(attribute) { value_of(attribute) } unless method_defined?(attribute, false)
            next if method_defined?(:"#{attribute}=", false)

            define_method(:"#{attribute}=") do |value|
              mark_target_modified
              @property_hash[attribute] = value
            end
          end
        end

        # --- reading

        def prefetch(resources = nil)
          @records = targets(resources).flat_map { |target| prefetch_target(target) }
          match_providers_with_resources(resources)
        end

        def match_providers_with_resources(resources)
          return unless resources

          unmatched = resources.dup
          @records.each do |record|
            next if skip_record?(record)

            resource = record[:name] && resources[record[:name]]
            if resource.nil? && respond_to?(:match)
              resource = match(record, unmatched) or next
              unmatched.delete(resource.title)
              record[:name] = resource[:name]
            end
            resource.provider = new(record) if resource
          end
        end

        def prefetch_target(target)
          records = retrieve(target).each { |record| record.update(on_disk: true, target: target, ensure: :present) }
          records = prefetch_hook(records) if respond_to?(:prefetch_hook)
          records or raise Puppet::DevError, "Prefetching #{target} for provider #{name} returned nil"
        rescue Puppet::Util::FileType::FileReadError => e
          Puppet.err("Could not prefetch #{resource_type.name} provider '#{name}' target '#{target}': #{e}. Treating as empty")
          []
        end

        def retrieve(path)
          parse(target_object(path).read)
        rescue Puppet::Error => e
          e.file = path
          raise
        end

        def instances
          targets.flat_map { |target| prefetch_target(target) }.reject { |record| skip_record?(record) }.map { |record| new(record) }
        end

        def skip_record?(record)
          record_type(record[:record_type]).text?
        end

        def record?(name)
          @records.find { |record| record[:name] == name }
        end

        def targets(resources = nil)
          raise Puppet::DevError, 'Parsed Providers must define a default target' unless default_target

          wanted = (resources || {}).values.map { |resource| resource.should(:target) }
          [default_target, *@targets.keys, *wanted].uniq.compact
        end

        def target_object(target)
          @targets[target] ||= default_mode ? filetype.new(target, default_mode) : filetype.new(target)
        end

        def default_mode
          nil
        end

        # --- writing

        def modified(target)
          @modified << target unless @modified.include?(target)
        end

        def flush(record)
          unless record[:on_disk]
            record[:on_disk] = true
            @records << record
            modified(record[:target] || default_target)
          end
          changed = @modified.sort_by(&:to_s)
          @modified = []
          changed.each do |target|
            Puppet.debug("Flushing #{resource_type.name} provider target #{target}")
            flush_target(target)
          end
        end

        def flush_target(target)
          backup_target(target)
          target_object(target).write(to_file(target_records(target).reject { |record| record[:ensure] == :absent }))
        end

        # The file as it was before this run's first change goes to the bucket.
        def backup_target(target)
          @backups ||= {}
          return if @backups[target]

          @backups[target] = true
          object = target_object(target)
          object.respond_to?(:backup) ? object.backup : nil
        end

        def target_records(target)
          @records.select { |record| record[:target] == target }
        end

        def header
          "# HEADER: This file was autogenerated at #{Time.now}\n# HEADER: by puppet.  While it can still be managed manually, it\n" \
            "# HEADER: is definitely not recommended.\n"
        end

        def native_header_regex
          nil
        end

        def drop_native_header
          false
        end

        def to_file(records)
          text = super
          match = native_header_regex && text.match(native_header_regex)
          return header + text unless match

          drop_native_header ? header + match.pre_match + match.post_match : match[0] + header + match.pre_match + match.post_match
        end

        def clean(record)
          record.reject { |name, _| %i[record_type on_disk].include?(name) }
        end

        def clear
          @records = []
          @targets = {}
        end
      end

      initvars

      def initialize(record = nil)
        super
        return unless @property_hash.empty?

        @property_hash = (@resource && self.class.record?(@resource[:name])) || { record_type: self.class.name, ensure: :absent }
      end

      def create
        @resource.class.validproperties.each do |property|
          value = @resource.should(property)
          @property_hash[property] = value if value
        end
        mark_target_modified
      end

      def destroy
        self.ensure = :absent
      end

      def exists?
        ![:absent, nil].include?(@property_hash[:ensure])
      end

      def flush
        unless @property_hash[:target]
          @property_hash[:target] = @resource.should(:target) || self.class.default_target
          self.class.modified(@property_hash[:target])
        end
        @resource.class.key_attributes.each { |attribute| @property_hash[attribute] ||= @resource[attribute] }
        self.class.flush(@property_hash)
      end

      def prefetch
        self.class.prefetch(@resource[:name] => @resource)
      end

      def record_type
        @property_hash[:record_type]
      end

      private

      # What a record of this kind of lines does not say counts as it should be, so that it is never out of sync.
      def value_of(attribute)
        return @property_hash[attribute] if @property_hash[attribute] && @property_hash[attribute] != ''

        self.class.valid_attr?(self.class.name, attribute) || @resource.nil? ? :absent : @resource.should(attribute) || :absent
      end

      def mark_target_modified
        wanted = @resource&.should(:target)
        self.class.modified(wanted) if wanted && wanted != @property_hash[:target]
        self.class.modified(@property_hash[:target]) if @property_hash[:target] && @property_hash[:target] != :absent
      end
    end
  end
end
