# frozen_string_literal: true

module Puppet
  # How resources of a type are read and changed; a subclass is the declaration, an instance serves one resource.
  class Provider
    include Puppet::Util
    include Puppet::Util::Errors
    include Bunraku::Logging
    extend Puppet::Util::Docs
    extend Puppet::Util
    extend Puppet::Util::Errors
    extend Bunraku::Logging

    class << self
      attr_accessor :name, :resource_type, :source
      attr_reader :defaults, :not_defaults

      public :execute # providers without a class of Puppet's call it from outside

      def inherited(subclass)
        super
        subclass.initvars
      end

      # A declaration begins with nothing of its own; commands are looked up in what it inherits, too.
      def initvars
        @defaults = []
        @not_defaults = []
        @features = []
        @commands = {}
      end

      # --- programs

      def commands(programs)
        programs.each { |name, path| has_command(name, path) }
      end

      def optional_commands(programs)
        programs.each { |name, path| has_command(name, path) { is_optional } }
      end

      def has_command(name, path, &block)
        command = Bunraku::ProviderCommand.new(name.to_sym, path)
        command.instance_eval(&block) if block
        @commands[name.to_sym] = command
        unless command.optional?
          confine_collection.programs(command.executable => -> { command.path })
        end
        create_class_and_instance_method(name) { |*args| command.run(*args) }
      end

      def command(name)
        found = command_named(name.to_sym) or raise Puppet::DevError, "No command #{name} defined for provider #{self.name}"
        found.path or raise Puppet::Error, "Command #{name} is missing"
      end

      def command_named(name)
        (@commands || {})[name] || (superclass.respond_to?(:command_named) ? superclass.command_named(name) : nil)
      end

      # A method that there is already stays, an inherited one too.
      def create_class_and_instance_method(name, &block)
        define_singleton_method(name, &block) unless singleton_class.method_defined?(name)
        define_method(name) { |*args| self.class.public_send(name, *args) } unless method_defined?(name)
      end
      private :create_class_and_instance_method

      # --- whether it fits

      def confine(conditions, &block)
        confine_collection.add(conditions.is_a?(Hash) ? conditions.dup : conditions, &block)
      end

      # Modules copy it by the name of its variable.
      def confine_collection
        @confine_collection ||= Bunraku::Confines.new
      end

      # Returns what this host lacks for the provider; conditions and programs that it inherits do not count.
      def unmet
        confine_collection.unmet
      end

      def suitable?(short = true)
        short ? unmet.empty? : unmet
      end

      def defaultfor(*conditions)
        conditions.each { |each| @defaults << each }
      end

      def notdefaultfor(*conditions)
        conditions.each { |each| @not_defaults << each }
      end

      def default?
        @defaults.any? { |each| fits?(each) } && @not_defaults.none? { |each| fits?(each) }
      end

      def specificity
        facts = @defaults.select { |each| fits?(each) }.map(&:length).max || 0
        100 * facts + ancestors.count { |each| each.is_a?(Class) }
      end

      # A condition that is no hash, but an array of one, fits nowhere.
      def fits?(conditions)
        conditions.is_a?(Hash) && conditions.all? do |name, values|
          name.to_sym == :feature ? [values].flatten.all? { |each| Puppet.features.present?(each) } : Bunraku::Confines.fact_matches?(name, values)
        end
      end
      private :fits?

      # --- features

      def has_features(*names)
        names.each { |name| @features << name.to_sym }
      end
      alias has_feature has_features

      def declared_feature?(name)
        (@features || []).include?(name.to_sym)
      end

      # Whether the provider has a feature; none has one that its type does not name.
      def feature?(name)
        question = :"#{name}?"
        respond_to?(question) && public_send(question) ? true : false
      end

      def features
        resource_type ? resource_type.feature_names.select { |name| feature?(name) } : (@features || [])
      end

      # `manages_expiry?` and the like, of the provider and of its class.
      def define_feature_question(name)
        define_singleton_method(:"#{name}?") { declared_feature?(name) || methods_of_feature?(name) } unless respond_to?(:"#{name}?")
        define_method(:"#{name}?") { self.class.feature?(name) } unless method_defined?(:"#{name}?")
      end

      def methods_of_feature?(name)
        methods = resource_type&.feature_methods(name) || []
        !methods.empty? && methods.all? { |each| public_method_defined?(each) }
      end
      private :methods_of_feature?

      def satisfies?(*names)
        names.flatten.all? { |name| feature?(name) }
      end

      def supports_parameter?(attribute)
        attribute = resource_type.attrclass(attribute) unless attribute.is_a?(Class)
        attribute.nil? || attribute.required_features.all? { |name| feature?(name) }
      end

      # --- what a provider may have

      def instances
        raise Puppet::DevError, "Provider #{name} has not defined the 'instances' class method"
      end

      def mk_resource_methods
        [resource_type.validproperties, resource_type.parameters].flatten.each do |attribute|
          next if attribute == :name

          define_method(attribute) { @property_hash[attribute].nil? ? :absent : @property_hash[attribute] }
          define_method(:"#{attribute}=") { |value| @property_hash[attribute] = value }
        end
      end

      def log_source
        to_s
      end

      def to_s
        resource_type ? "Puppet::Type::#{resource_type.name.to_s.capitalize}::Provider#{name.to_s.capitalize}" : super
      end
      alias inspect to_s
    end

    initvars

    attr_accessor :resource
    attr_writer :doc

    def initialize(resource = nil)
      if resource.is_a?(Hash)
        @property_hash = resource # the hash itself: those who list what exists go on with it
      else
        @resource = resource
        @property_hash = {}
      end
    end

    def clear
      @resource = nil
    end

    def feature?(name)
      self.class.feature?(name)
    end

    def features
      self.class.features
    end

    def satisfies?(*names)
      self.class.satisfies?(*names)
    end

    def name
      return @property_hash[:name] if @property_hash[:name]
      return @resource.name if @resource

      raise Puppet::DevError, 'No resource and no name in property hash in Provider#name instance'
    end

    def get(attribute)
      @property_hash[attribute.to_sym] || :absent
    end

    def set(values)
      values.each { |name, value| @property_hash[name.to_sym] = value }
    end

    def command(name)
      self.class.command(name)
    end

    def type
      self.class.resource_type.name
    end

    def log_source
      to_s
    end

    def to_s
      "#{@resource}(provider=#{self.class.name})"
    end

    def inspect
      to_s
    end

    def <=>(other)
      return nil unless other.is_a?(Provider)

      name <=> other.name
    end
    include Comparable

    # Base of modules' providers of packages: they list or query, install and uninstall.
    class Package < Provider
      def self.prefetch(packages)
        instances.each { |found| packages[found.name].provider = found if packages.key?(found.name) }
      end

      # Returns what is known of the package; one that a query does not find is purged, when the provider can purge, else absent.
      def properties
        @property_hash = query || {} if @property_hash.empty?
        @property_hash = { ensure: self.class.feature?(:purgeable) ? :purged : :absent } if @property_hash.empty?
        @property_hash.dup
      end

      def flush
        @property_hash.clear
      end

      def validate_source(_value)
        true
      end

      # Returns options as words of a command line; a hash stands for `key=value`, sorted by key.
      def join_options(options)
        options && options.flat_map { |each| each.is_a?(Hash) ? each.sort.map { |key, value| "#{key}=#{value}" } : each }
      end
    end

    # Parents that only Puppet's own Ruby has, such as Puppet::Provider::NameService.
    def self.const_missing(name)
      raise Bunraku::Lacking, "Puppet::Provider::#{name}" if equal?(Puppet::Provider)

      super
    end
  end
end

module Bunraku
  # A program that a provider needs.
  class ProviderCommand
    attr_reader :name, :executable

    def initialize(name, executable)
      @name = name
      @executable = executable
      @optional = false
      @environment = {}
    end

    def is_optional
      @optional = true
    end

    def optional?
      @optional
    end

    def environment(variables)
      @environment = variables
    end

    # Looked up anew each time: the run may install it.
    def path
      Puppet::Util.which(@executable)
    end

    def run(*args)
      program = path or raise Puppet::MissingCommand, "Command #{@name} is missing"
      Puppet::Util::Execution.execute([program, *args], failonfail: true, combine: true, custom_environment: @environment)
    end
  end
end
