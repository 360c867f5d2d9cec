# frozen_string_literal: true

module Bunraku
  # A type of the agent's own: its attributes are known here, what they mean is known there.
  class BuiltinType < Puppet::Type
    # The methods by which a provider shows that it has a feature.
    FEATURE_METHODS = {
      package: { installable: %i[install], uninstallable: %i[uninstall], upgradeable: %i[update latest], purgeable: %i[purge],
                 holdable: %i[hold unhold], reinstallable: %i[reinstall], disableable: %i[disable],
                 package_settings: %i[package_settings_insync? package_settings package_settings=] },
      service: { refreshable: %i[restart], enableable: %i[disable enable enabled?], delayed_startable: %i[delayed_start],
                 manual_startable: %i[manual_start], maskable: %i[mask] }
    }.freeze

    # Attributes whose truth values are symbols in Ruby.
    SYMBOLS = { package: %i[allowcdrom reinstall_on_refresh], service: %i[hasstatus hasrestart] }.freeze

    # Lists that getters and setters have as one text, and the parameters that say what else may be in them.
    LISTS = { user: { 'groups' => :membership, 'roles' => :role_membership, 'auths' => :auth_membership, 'profiles' => :profile_membership } }.freeze

    class << self
      def made(name, declaration)
        made = Class.new(self)
        made.initvars(name.to_sym)
        const = Puppet::Resource.capitalized(name)
        Puppet::Type.const_remove_if_there(const)
        Puppet::Type.const_set(const, made)
        declaration['features'].each { |each| made.feature(each, '', methods: FEATURE_METHODS.dig(made.name, each.to_sym) || []) }
        declaration['attributes'].each { |attribute| made.declare_attribute(attribute) }
        made.builtin_providers = declaration['providers']
        made.providify
        made
      end

      attr_writer :builtin_providers

      def declare_attribute(attribute)
        return if attribute['name'] == 'provider'

        symbols = attribute['values'].map(&:to_sym)
        symbols += %i[true false] if SYMBOLS.fetch(name, []).include?(attribute['name'].to_sym)
        made = declare_by_kind(attribute)
        made.isnamevar if attribute['namevar']
        made.munge { |value| value.is_a?(Symbol) ? value : symbols.find { |symbol| symbol.to_s == value.to_s } || value }
      end

      def declare_by_kind(attribute)
        return newparam(attribute['name'], boolean: attribute['boolean']) unless attribute['property']

        membership = LISTS.dig(name, attribute['name'])
        return newproperty(attribute['name'], array_matching: attribute['many'] ? :all : :first) unless membership

        newproperty(attribute['name'], parent: Puppet::Property::List, array_matching: :all) { define_method(:membership) { membership } }
      end

      # Whether a provider in Ruby can serve it.
      def provider(name)
        found = super || OwnProviders.find(self, name)
        raise Lacking, "the provider #{name} of #{self.name}" if found.nil? && @builtin_providers.include?(name.to_s)

        found
      end

      # The agent chooses.
      def defaultprovider
        nil
      end

      def title_patterns
        [[/(.*)/m, [[key_attributes.first]]]]
      end
    end

    # The type and title of a resource of the catalog, which the agent still has to evaluate.
    attr_writer :live

    def []=(name, value)
      super
      Bunraku.ask('assign', *@live, name.to_s, value) if @live
    end

    # The agent's choice; a service that a module's Ruby makes by itself is none of the agent's.
    def provider
      super || (@provider = @bunraku_id.nil? ? OwnProviders.of_the_system(self) : nil)
    end
  end

  # What a change of an attribute of a type of the agent's own calls, where that is not the attribute's setter.
  module BuiltinChanges
    METHODS = {
      package: { 'ensure' => { 'present' => :install, 'absent' => :uninstall, 'purged' => :purge, 'disabled' => :disable, 'latest' => :update },
                 'mark' => { 'hold' => :hold, 'none' => :unhold } },
      service: { 'ensure' => { 'running' => :start, 'stopped' => :stop },
                 'enable' => { 'true' => :enable, 'false' => :disable, 'manual' => :manual_start, 'mask' => :mask, 'delayed' => :delayed_start } },
      user: { 'ensure' => { 'present' => :create, 'absent' => :delete, 'role' => :create_role } },
      group: { 'ensure' => { 'present' => :create, 'absent' => :delete } }
    }.freeze
    ENSURABLE = { 'ensure' => { 'present' => :create, 'absent' => :destroy } }.freeze

    module_function

    def change(resource, attribute, value)
      provider = resource.provider
      method = METHODS.fetch(resource.class.name, ENSURABLE).fetch(attribute, {})[value.to_s]
      return call(provider, method, value, attribute) if method
      return install_version(provider) if attribute == 'ensure' && resource.class.name == :package
      raise Puppet::Error, "The #{provider.class.name} provider can not set attribute #{attribute}" unless provider.respond_to?("#{attribute}=")

      value = value.join(',') if BuiltinType::LISTS.dig(resource.class.name, attribute) && value.is_a?(Array)
      provider.public_send("#{attribute}=", value)
    end

    def call(provider, method, value, attribute)
      provider.public_send(method)
    rescue StandardError => e
      raise Puppet::Error, "Could not update: #{e}" if method == :update
      raise e if e.is_a?(Puppet::Error) || e.is_a?(Lacking)

      raise Puppet::ResourceError.new("Could not set '#{value}' on #{attribute}: #{e}", e)
    end

    def install_version(provider)
      provider.install
    rescue StandardError => e
      raise Puppet::Error, "Could not update: #{e}"
    end
  end

  # How the state of a resource of a type of the agent's own is read from its provider.
  module BuiltinStates
    module_function

    # @param names [Array<String>] the properties that are wanted
    def of(resource, names)
      state = resource.class.name == :package ? package(resource, names) : properties(resource, names)
      state.reject { |_, value| value.nil? }
    end

    def package(resource, names)
      provider = resource.provider
      state = provider.properties.map { |name, value| [name.to_s, value] }.to_h
      state['package_settings'] = provider.package_settings if names.include?('package_settings')
      desired = resource.should(:ensure)
      return state if [:absent, :purged, nil].include?(state['ensure'])

      state.merge!(latest(provider)) if desired == :latest
      state['satisfied'] = provider.insync?(state['ensure']) ? true : false if desired.is_a?(String) && provider.respond_to?(:insync?)
      state
    end

    def latest(provider)
      { 'latest' => provider.latest }
    rescue StandardError => e
      raise e if e.is_a?(Lacking)

      { 'latest_error' => e.to_s }
    end

    def properties(resource, names)
      provider = resource.provider
      state = names.include?('ensure') ? { 'ensure' => existence(resource.class.name, provider) } : {}
      return state if state['ensure'] == :absent

      (names - ['ensure']).each do |name|
        getter = name == 'enable' ? :enabled? : name.to_sym
        value = provider.public_send(getter)
        state[name] = BuiltinType::LISTS.dig(resource.class.name, name) && value.is_a?(String) ? value.split(',') : value
      end
      state['enabled_insync'] = provider.enabled_insync?(state['enable']) if state.key?('enable') && provider.respond_to?(:enabled_insync?)
      state
    end

    def existence(type, provider)
      return provider.status if type == :service

      provider.exists? ? :present : :absent
    end
  end

  # The operations for resources of the agent's own types that a provider in Ruby serves.
  module BuiltinOperations
    # Returns what a provider says about itself.
    def provider_of(type, name)
      declared = Puppet::Type.type(type).provider(name)
      raise Puppet::Error, "its file declares no provider #{name} of #{type}" if declared.nil?

      described_provider(declared)
    end

    def read_builtin(id, names)
      BuiltinStates.of(@resources.fetch(id), names)
    end

    def change_builtin(id, attribute, value)
      BuiltinChanges.change(@resources.fetch(id), attribute, value)
      nil
    end

    def flush_builtin(id)
      provider = @resources.fetch(id).provider
      provider.flush if provider.respond_to?(:flush)
      nil
    end

    # Calls a method of the provider without arguments: `restart`, `reinstall`.
    def call_builtin(id, method)
      @resources.fetch(id).provider.public_send(method)
      nil
    end

    # Returns what a provider lists, by name.
    def builtin_instances(type, name, attributes)
      declared = Puppet::Type.type(type)
      declared.provider(name).instances.map do |found|
        resource = declared.new(name: found.name, provider: found)
        available = attributes.select { |each| each == 'ensure' || found.respond_to?(each == 'enable' ? :enabled? : each) }
        [found.name.to_s, BuiltinStates.of(resource, available)]
      end.to_h
    end
  end
end
