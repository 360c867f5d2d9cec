# frozen_string_literal: true

module Puppet
  # Base of all types; a subclass is the declaration, an instance is a resource.
  class Type
    include Puppet::Util
    include Puppet::Util::Errors
    include Bunraku::Logging
    extend Puppet::Util
    extend Puppet::Util::Errors
    extend Bunraku::Logging

    RELATIONS = %i[require subscribe before notify].freeze

    @types = {}

    class << self
      attr_accessor :name, :self_refresh, :apply_target
      attr_reader :properties, :doc
      attr_writer :isomorphic, :ensure_retrieval

      # --- the registry

      def newtype(name, options = {}, &block)
        name = name.to_s.downcase.to_sym
        made = Class.new(Type)
        made.initvars(name)
        Type.const_remove_if_there(Resource.capitalized(name))
        Type.const_set(Resource.capitalized(name), made)
        registry[name] = made
        made.self_refresh = options[:self_refresh]
        made.class_eval(&block) if block
        made.ensurable if made.ensurable? && !made.validproperty?(:ensure)
        Bunraku.desk.load_providers(made) # the attribute `provider` comes after those of the type itself
        made
      rescue StandardError, ScriptError
        registry.delete(name)
        raise
      end

      # Returns a type by its name, which a module has or the agent has itself; nil for none.
      def type(name)
        name = name.to_s.downcase.to_sym
        return registry[name] if registry.key?(name)

        Bunraku.desk.require_library("puppet/type/#{name}")
        registry[name] ||= Bunraku.desk.builtin_type(name)
      end

      def rmtype(name)
        registry.delete(name.to_sym)
      end

      def eachtype(&block)
        registry.each_value(&block)
      end

      def registry
        Type.instance_variable_get(:@types)
      end

      def const_remove_if_there(name)
        remove_const(name) if const_defined?(name, false)
      end

      def initvars(name)
        @name = name
        @properties = []
        @parameters = []
        @attributes = {}
        @features = {}
        @providers = {}
        @relations = RELATIONS.map { |kind| [kind, {}] }.to_h
        @isomorphic = true
        @ensure_retrieval = true
        @apply_target = :host
      end

      # --- attributes

      def newparam(name, options = {}, &block)
        made = attribute_class(name.to_sym, options.delete(:parent) || Puppet::Parameter, "Parameter#{Resource.capitalized(name)}", options, &block)
        made.isnamevar if options[:namevar]
        define_method(:"#{name}?") { self[name].to_s == 'true' || self[name].to_s == 'yes' } if made.boolean?
        @parameters.delete_if { |each| each.name == made.name }
        @parameters << made
        made
      end

      def newproperty(name, options = {}, &block)
        name = name.to_sym
        raise Puppet::DevError, "Class #{self.name} already has a property named #{name}" if @properties.any? { |each| each.name == name }

        getter = options.delete(:retrieve)
        made = attribute_class(name, options.delete(:parent) || Puppet::Property, Resource.capitalized(name), options) do
          define_method(:retrieve) { provider.public_send(getter) } if getter
          class_eval(&block) if block
        end
        name == :ensure ? @properties.unshift(made) : @properties.push(made)
        made
      end

      def ensurable(&block)
        newproperty(:ensure, parent: Puppet::Property::Ensure, &(block || proc { defaultvalues }))
      end

      def ensurable?
        %i[exists? create destroy].all? { |each| public_method_defined?(each) }
      end

      def attrclass(name)
        name.is_a?(Class) ? name : @attributes[name.to_sym]
      end

      def attrtype(name)
        return :meta if metaparam?(name)

        attrclass(name) && attrclass(name) <= Puppet::Property ? :property : :param
      end

      def validattr?(name)
        name = name.to_sym
        @attributes.key?(name) || name == :name || metaparam?(name)
      end

      def validproperty?(name)
        found = attrclass(name)
        !found.nil? && found <= Puppet::Property
      end

      def validproperties
        @properties.map(&:name)
      end

      def validparameter?(name)
        parameters.include?(name.to_sym) || metaparam?(name)
      end
      alias valid_parameter? validattr?

      def parameters
        @parameters.map(&:name)
      end

      def paramclass(name)
        @attributes[name.to_sym]
      end

      def propertybyname(name)
        @properties.find { |each| each.name == name.to_sym }
      end

      def metaparam?(name)
        Bunraku::METAPARAMETERS.include?(name.to_sym)
      end

      def metaparams
        Bunraku::METAPARAMETERS
      end

      # Names of all attributes: namevars, provider, properties, parameters, metaparameters.
      def allattrs
        key_attributes | (parameters & [:provider]) | validproperties | parameters | metaparams
      end

      def key_attribute_parameters
        @parameters.select { |each| each.isnamevar? || each.name == :name }
      end

      def key_attributes
        key_attribute_parameters.map(&:name)
      end

      def composite_namevars?
        key_attributes.length > 1
      end

      def title_patterns
        raise Puppet::DevError, "you must specify title patterns when there are two or more key attributes" if key_attributes.length > 1

        key_attributes.empty? ? [] : [[/(.*)/m, [[key_attributes.first]]]]
      end

      # Returns the resource that a hash of a module's own code describes, as data.
      def hash2resource(hash)
        hash = hash.transform_keys(&:to_sym)
        title = hash.delete(:title) || hash[:name] || (hash[key_attributes.first] if key_attributes.length == 1)
        raise Puppet::Error, 'Title or name must be provided' unless title

        data = Puppet::Resource.new(self, title)
        data.catalog = hash.delete(:catalog)
        data.sensitive_parameters = hash.delete(:sensitive_parameters) || []
        hash.each { |name, value| data[name] = value }
        data
      end

      # Returns the attributes that a title sets.
      def names_in(title)
        title_patterns.each do |pattern, targets|
          match = title.match(pattern) or next
          return targets.zip(match.captures).reject { |_, text| text.nil? }.map do |(name, convert), text|
            [name, convert ? convert.call(text) : text]
          end.to_h
        end
        raise Puppet::Error, "No set of title patterns matched the title \"#{title}\"."
      end

      # --- documentation and the rest of the declaration

      def desc(text)
        @doc = text
      end
      attr_writer :doc

      def validate(&block)
        define_method(:validate, &block)
      end

      def isomorphic?
        @isomorphic ? true : false
      end

      def needs_ensure_retrieval
        @ensure_retrieval
      end

      def apply_to(target)
        @apply_target = target
      end

      def apply_to_device
        @apply_target = :device
      end

      def apply_to_host
        @apply_target = :host
      end

      def apply_to_all
        @apply_target = :both
      end

      def can_apply_to(_target)
        true
      end

      # Declaring a relationship to a type again replaces the first.
      RELATIONS.each do |kind|
        define_method(:"auto#{kind}") { |type, &block| @relations[kind][type] = block }
        define_method(:"eachauto#{kind}") { |&block| @relations[kind].each(&block) }
      end

      def relations
        @relations
      end

      # --- features

      def feature(name, docs, options = {})
        @features[name.to_sym] = [docs, [options[:methods]].flatten.compact]
        const_set(:FeatureModule, Module.new) unless const_defined?(:FeatureModule, false)
      end

      def features
        @features.keys
      end
      alias feature_names features

      def feature_docs
        @features.map { |name, (docs, _)| [name, docs] }.to_h
      end

      def feature_methods(name)
        @features[name.to_sym]&.last
      end

      def provider_feature(name)
        @features[name.to_sym]
      end

      # --- providers

      def provide(name, options = {}, &block)
        name = name.to_sym
        options = options.dup
        parent = options.delete(:parent)
        parent = provider(parent) || raise(Puppet::DevError, "Could not find parent provider #{parent} of #{name}") if parent.is_a?(Symbol) || parent.is_a?(String)
        options.delete(:resource_type)
        providify
        made = Class.new(parent || Puppet::Provider)
        made.name = name
        made.resource_type = self
        options.each { |option, value| made.public_send(:"#{option}=", value) if made.respond_to?(:"#{option}=") }
        constant = "Provider#{Resource.capitalized(name)}"
        const_remove_if_there(constant)
        const_set(constant, made)
        @providers[name] = made
        feature_names.each { |feature| made.define_feature_question(feature) }
        made.class_eval(&block) if block
        made
      rescue StandardError, ScriptError
        @providers.delete(name)
        raise
      end

      def unprovide(name)
        @providers.delete(name.to_sym)
      end

      # Returns a provider of the type by its name; its file is read when it is needed. nil for none.
      def provider(name)
        name = name.to_sym
        Bunraku.desk.require_library("puppet/provider/#{self.name}/#{name}") unless @providers.key?(name)
        @providers[name]
      end

      def providers
        Bunraku.desk.load_providers(self)
        @providers.keys
      end

      def provider_hash
        providers
        @providers
      end

      def suitableprovider
        provider_hash.values.select(&:suitable?)
      end

      def defaultprovider
        return @defaultprovider if @defaultprovider

        fitting = suitableprovider
        candidates = fitting.select(&:default?)
        candidates = fitting if candidates.empty?
        best = candidates.map(&:specificity).max
        candidates = candidates.select { |each| each.specificity == best }
        warn_of_several(candidates) if candidates.length > 1
        @defaultprovider = candidates.first
      end

      def warn_of_several(providers)
        names = providers.map(&:name)
        Puppet.warning("Found multiple default providers for #{name}: #{names.join(', ')}; using #{names.first}")
      end
      private :warn_of_several

      attr_writer :defaultprovider

      def provider_loader
        Bunraku::ProviderLoader.new(self)
      end

      # The attribute `provider`, which the type has since a provider was declared.
      def providify
        return if @attributes.key?(:provider)

        newparam(:provider, parent: Bunraku::ProviderParameter)
        @attributes[:provider].desc("The specific backend to use for this `#{name}` resource.")
      end

      # --- what exists

      def instances
        raise Puppet::DevError, "#{name} has no providers and has not overridden 'instances'" if provider_hash.empty?

        instances = [defaultprovider, *suitableprovider].compact.uniq.uniq { |each| each.source || each.name }.flat_map(&:instances)
        instances.uniq { |each| title_of_instance(each) }.map do |each|
          new(name: each.name, provider: each, title: title_of_instance(each)).tap { |made| validproperties.each { |name| made.newattr(name) } }
        end
      end

      def title_of_instance(instance)
        instance.respond_to?(:title) ? instance.title : instance.name
      end
      private :title_of_instance

      def log_source
        ''
      end

      def to_s
        name ? "Puppet::Type::#{Resource.capitalized(name)}" : super
      end

      def ===(other)
        other.class <= self || (other.is_a?(Puppet::Resource) && other.type == Resource.capitalized(name))
      rescue NoMethodError
        super
      end

      private

      def attribute_class(name, parent, constant, options, &block)
        made = Class.new(parent)
        made.name = name
        made.options = options
        const_remove_if_there(constant)
        const_set(constant, made) if constant.match?(/\A[A-Z]\w*\z/)
        options.each { |option, value| made.public_send(:"#{option}=", value) if made.respond_to?(:"#{option}=") }
        made.class_eval(&block) if block
        @attributes[name] = made
      end
    end

    attr_accessor :catalog, :file, :line, :bunraku_id
    attr_reader :title, :original_parameters, :provider

    # @param resource [Hash, Puppet::Resource] the attributes as the manifest has them
    def initialize(resource)
      resource = self.class.hash2resource(resource) unless resource.is_a?(Puppet::Resource)
      @parameters = {}
      @title, @file, @line, @tags, @bunraku_id = resource.title, resource.file, resource.line, resource.tags, resource.bunraku_id
      @catalog = resource.catalog || (Bunraku.desk.applying? ? Resource::Catalog.new : nil)
      given = resource.to_hash
      namevar = self.class.key_attributes.length == 1 ? self.class.key_attributes.first : nil
      given[namevar] = given.delete(:name) if namevar && namevar != :name && given.key?(:name) && !given.key?(namevar)
      given = self.class.names_in(@title).merge(given) unless namevar && given.key?(namevar)
      @original_parameters = given
      assign(given)
      resource.sensitive_parameters.each { |name| parameter(name)&.sensitive = true }
      complete
    end

    # Returns where the manifest has it, as errors end with it; '' where that is not known.
    def place
      parts = [@file && "file: #{@file}", @line && "line: #{@line}"].compact
      parts.empty? ? '' : " (#{parts.join(', ')})"
    end

    # --- attributes

    def [](name)
      name = real_name(name)
      fail("Invalid parameter #{name}(#{name.inspect})") unless self.class.validattr?(name)
      name == :loglevel && !@parameters.key?(name) ? :notice : @parameters[name]&.value
    end

    def []=(name, value)
      name = real_name(name)
      raise Puppet::Error, "no parameter named '#{name}'" unless self.class.validattr?(name)
      raise Puppet::Error, "Got nil value for #{name}" if value.nil?

      attribute = newattr(name) or return
      audited(value).each { |each| newattr(each) } if name == :audit
      begin
        attribute.value = value
      rescue Puppet::Error, ArgumentError => e
        raise e if e.is_a?(Bunraku::Lacking)

        raise Puppet::ResourceError.new("Parameter #{name} failed on #{ref}: #{e}", e)
      end
    end

    # Makes an attribute and returns it; nil when the provider lacks a feature for it.
    def newattr(name)
      name = name.name if name.is_a?(Class)
      name = name.to_sym
      declared = self.class.attrclass(name)
      return @parameters[name] ||= Bunraku::Metaparameter.new(name, self) if declared.nil?

      if provider.is_a?(Puppet::Provider) && !provider.class.supports_parameter?(declared)
        missing = declared.required_features.reject { |each| provider.class.feature?(each) }
        debug("Provider #{provider.class.name} does not support features #{missing.join(', ')}; not managing attribute #{name}")
        return nil
      end
      @parameters[name] ||= declared.new(resource: self)
    end

    def delete(name)
      @parameters.delete(real_name(name))
    end

    def should(name)
      found = @parameters[real_name(name)]
      found.is_a?(Puppet::Property) ? found.should : nil
    end

    def value(name)
      @parameters[real_name(name)]&.value
    end

    def parameter(name)
      @parameters[name.to_sym]
    end

    def property(name)
      found = @parameters[name.to_sym]
      found.is_a?(Puppet::Property) ? found : nil
    end

    def parameters
      @parameters.dup
    end

    def properties
      self.class.properties.map { |declared| @parameters[declared.name] }.compact
    end

    def eachproperty(&block)
      properties.each(&block)
    end

    def parameters_with_value
      self.class.parameters.map { |name| parameter(name) }.compact
    end

    # Whether anything of it is to be managed; once it is, it stays so.
    def managed?
      @managed ||= properties.any? { |each| each.should && !each.class.unmanaged }
    end

    def set_default(name)
      declared = self.class.attrclass(name)
      return if declared.nil? || !declared.method_defined?(:default) || @parameters.key?(name.to_sym)

      attribute = newattr(name) or return
      value = attribute.default
      value ? attribute.value = value : @parameters.delete(attribute.name)
    end

    def set_parameters(values)
      values.each { |name, value| self[name] = value }
    end

    def to_hash
      @parameters.map { |name, attribute| [name, attribute.value] }.to_h
    end

    # Returns what is there of the resource, and its parameters, as data.
    def to_resource
      found = retrieve_resource
      found.tag(*tags)
      @parameters.each do |name, each|
        found[name] = each.value unless each.is_a?(Puppet::Property) || (each.value == title && self.class.key_attributes.include?(name))
      end
      found
    end

    # --- identity

    # The value of the namevar; the title when there are several and none is called so.
    def name
      name = self[:name]
      name.nil? ? title : name
    end

    def type
      self.class.name
    end

    def ref
      "#{Resource.capitalized(self.class.name)}[#{title}]"
    end
    alias to_s ref
    alias inspect ref

    def path
      "/#{ref}"
    end

    def pathbuilder
      [ref]
    end

    def name_var
      keys = self.class.key_attributes
      keys.length == 1 ? keys.first : false
    end

    def uniqueness_key
      self.class.key_attributes.sort_by(&:to_s).map { |name| self[name] }
    end

    def isomorphic?
      self.class.isomorphic?
    end

    def builtin?
      false
    end

    # --- tags, noop and other metaparameters

    def tags
      @tags.dup
    end

    def tag(*names)
      @tags |= names.flatten.map(&:to_s)
    end

    def tagged?(*names)
      names.flatten.any? { |name| @tags.include?(name.to_s) }
    end

    def noop?
      own = @parameters[:noop]&.value
      own.nil? ? Puppet[:noop] : own.to_s == 'true'
    end
    alias noop noop?

    # --- the provider

    # @param provider [Puppet::Provider, String, Symbol] an instance, or a name
    def provider=(provider)
      if provider.is_a?(Puppet::Provider)
        @provider = provider
        @provider.resource = self
      else
        declared = self.class.provider(provider) or raise ArgumentError, "Invalid #{self.class.name} provider '#{provider}'"
        @provider = declared.new(self)
      end
    end

    def suitable?
      return true if provider.nil? && self.class.provider_hash.empty?

      provider ? provider.class.suitable? : !self.class.suitableprovider.empty?
    end

    def flush
      provider.flush if provider.respond_to?(:flush)
    end

    def retrieve
      result = Puppet::Resource.new(self.class, title)
      result[:name] = self[:name] if self.class.validattr?(:name) && self[:name] && self[:name] != title
      state = nil
      ensure_property = property(:ensure)
      ensure_property ||= newattr(:ensure) if self.class.needs_ensure_retrieval && self.class.attrclass(:ensure)
      result[:ensure] = state = ensure_property.retrieve if ensure_property
      properties.each do |each|
        next if each.name == :ensure

        result[each.name] = state == :absent ? :absent : each.retrieve
      end
      result
    end

    def retrieve_resource
      found = retrieve
      found.is_a?(Hash) ? Puppet::Resource.new(self.class, title, parameters: found) : found
    end

    def currentpropvalues
      properties.map { |each| [each.name, each.retrieve] }.to_h
    end

    # Whether what was read is that of an existing thing.
    def present?(values)
      values[:ensure] != :absent
    end

    # --- relationships

    # Returns the resources that a kind of automatic relationship names, as references.
    def automatic(kind)
      self.class.relations[kind].flat_map do |type, block|
        type = instance_eval(&type) if type.is_a?(Proc)
        [instance_eval(&block)].flatten.compact.map do |found|
          found.is_a?(Puppet::Type) || found.is_a?(Puppet::Resource) ? found.ref : "#{Resource.capitalized(type)}[#{found}]"
        end
      end
    end

    def autorequire(_catalog = nil)
      automatic(:require)
    end

    # --- logging

    def log_source
      bunraku_id.to_s
    end

    def log(message)
      send_log(self[:loglevel] || :notice, message)
    end

    def fail(*args)
      raise Puppet::Error, args.last.to_s unless args.first.is_a?(Class)

      raise args.first, args.drop(1).join(' ')
    end

    private

    def real_name(name)
      name = name.to_sym
      name == :name && !self.class.attrclass(:name) ? name_var || name : name
    end

    def assign(given)
      namevars = self.class.key_attributes & given.keys
      namevars.each { |name| self[name] = given[name] }
      given.key?(:provider) && self.class.attrclass(:provider) ? self[:provider] = given[:provider] : set_default(:provider)
      left = (self.class.allattrs & given.keys) | given.keys
      without = self.class.allattrs - given.keys
      (left - namevars - [:provider]).each { |name| assign_one(name, given[name]) }
      raise Puppet::Error, "no parameter named 'provider'" if given.key?(:provider) && !self.class.attrclass(:provider)

      without.each { |name| set_default(name) }
    end

    def assign_one(name, value)
      self[name] = value
    rescue ArgumentError, Puppet::Error, TypeError
      raise
    rescue StandardError => e
      raise e if e.is_a?(Bunraku::Lacking)

      raise Puppet::DevError.new("Could not set #{name} on #{self.class.name}: #{e}", e)
    end

    # Returns the properties that an audit names, which are read though they have no value.
    def audited(value)
      names = [value].flatten.map(&:to_sym)
      names.include?(:all) ? self.class.validproperties : names & self.class.validproperties
    end

    def complete
      validate if respond_to?(:validate)
    rescue Puppet::Error, ArgumentError => e
      raise e if e.is_a?(Bunraku::Lacking)

      raise Puppet::ResourceError.new("Validation of #{ref} failed: #{e}", e)
    end
  end
end

module Bunraku
  METAPARAMETERS = %i[noop schedule audit loglevel alias tag require subscribe before notify stage].freeze

  # A parameter of every type: the agent applies it, here it is only known.
  class Metaparameter
    attr_reader :name
    attr_accessor :value, :sensitive

    def initialize(name, resource)
      @name = name
      @resource = resource
    end

    def should
      nil
    end

    def metaparam?
      true
    end
  end

  # The attribute `provider` of types that have any.
  class ProviderParameter < Puppet::Parameter
    def default
      resource.class.defaultprovider&.name
    end

    def unsafe_validate(value)
      value = value.first if value.is_a?(Array)
      return if value.is_a?(Puppet::Provider) || resource.class.provider(value.to_s)

      raise ArgumentError, "Invalid #{resource.class.name} provider '#{value}'"
    end

    def unsafe_munge(value)
      value = value.first if value.is_a?(Array)
      resource.provider = value
      value.is_a?(Puppet::Provider) ? value.class.name : value.to_sym
    end
  end

  # `provider_loader` of a type.
  class ProviderLoader
    def initialize(type)
      @type = type
    end

    def load(name, *)
      @type.provider(name)
    end

    def loadall(*)
      @type.providers
    end
  end
end
