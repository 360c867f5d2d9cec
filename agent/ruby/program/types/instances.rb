# frozen_string_literal: true

module Puppet
  # What a resource of any type does; `type.rb` has what its declaration does.
  class Type
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
