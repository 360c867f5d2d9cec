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
        metaparams.include?(name.to_sym)
      end

      def metaparams
        Bunraku.metaparameters
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
        made.initvars # also where a module's `inherited` does not call that of its parent
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

      # Discards what the type itself keeps of what exists.
      def forget_states; end

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
  end
end
