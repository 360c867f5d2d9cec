# frozen_string_literal: true

module Bunraku
  # The operations that the agent may ask for.
  class Desk
    include DeskBasics
    include BuiltinOperations

    def initialize
      @resources = {} # by the agent's number
      @current = {} # what was read of each
      @facts = {}
      @once = {}
      @collected = nil # log entries, while several resources are read at once
      @ahead = {} # what the resources that were read ahead held before that
    end

    # @param libraries [Array<String>] folders like a module's lib
    # @param metaparameters [Array<String>] names
    # @param texts [Boolean] whether values are texts of a command line
    def setup(libraries, metaparameters, texts)
      Bunraku.metaparameters = metaparameters.map(&:to_sym)
      @texts = texts
      $LOAD_PATH.unshift(*libraries)
      @libraries = libraries
      @features = $LOADED_FEATURES.size
      nil
    end

    # --- for the rest of this program

    def fact(name)
      @facts.fetch(name) { @facts[name] = Bunraku.ask('fact', name) }
    end

    def log(level, message, source)
      entry = [level, Wire.text(message), source]
      return $stderr.puts("#{level}: #{entry[1]}") if Bunraku.channel.apart?

      @collected ? @collected << entry : Bunraku.ask('log', *entry)
    end

    def load_providers(type)
      loaded = (@providers_loaded ||= {})
      return if loaded[type]

      loaded[type] = true
      @libraries.flat_map { |each| Dir["#{each}/puppet/provider/#{type.name}/*.rb"].sort }.each do |file|
        unless_broken(type, File.basename(file, '.rb')) { require file }
      end
    end

    # Returns a type of the agent's own, of which only the declaration is known here; nil for none.
    def builtin_type(name)
      declaration = Bunraku.ask('builtin_type', name.to_s) or return nil
      BuiltinType.made(name, declaration)
    end

    def applying?
      @applying
    end

    # Whether values are texts of a command line.
    def texts?
      @texts
    end

    def catalog_resource(type, title)
      own = @by_ref && @by_ref["#{type}[#{title}]"]
      return own if own

      found = Bunraku.ask('resource', type, title)
      found && (live_resource(found) || as_data(found))
    end

    def catalog_resources
      Bunraku.ask('resources').map { |each| @by_ref["#{each['type']}[#{each['title']}]"] || as_data(each) }
    end

    # --- declarations

    # Returns how types are declared, or why they cannot be, by their names.
    def declare(names)
      names.map { |name| [name, declaration_of(name)] }.to_h
    end

    # Returns the attributes that a title sets.
    def names_in(type, title)
      Puppet::Type.type(type).names_in(title)
    end

    # Returns what this host lacks for a provider.
    def unmet(type, provider)
      Puppet::Type.type(type).provider(provider).unmet
    end

    # --- resources

    # Makes resources; returns for each its values, or why it cannot be one.
    def make(list)
      @applying = true
      @by_ref ||= {}
      list.group_by { |data| data['type'] }.each { |name, mine| attempt { check_ahead(name, mine) } }
      made = list.map { |data| [data['id'], attempt { resource_from(data) }] }
      made.map { |id, (resource, error)| [id.to_s, error ? { 'error' => error } : made_answer(resource)] }.to_h
    end

    # Reads resources, each with the provider of that name, and compares them; nothing is changed.
    #
    # A resource that is read ahead and then again has no memory of the first time: its provider may have kept a file's content, which
    # another's change has made old.
    #
    # @param outdated [Boolean] whether what exists of the type may have changed since it was last asked for
    def read(list, collect, outdated)
      list.map { |id, _| @resources[id]&.class }.compact.uniq.each(&:forget_states) if outdated
      list.map do |id, provider|
        @collected = [] if collect
        answer, error = attempt { read_one(id, provider, collect) }
        answer = { 'error' => error } if error
        answer['logs'] = @collected if collect
        [id.to_s, answer]
      end.to_h
    ensure
      @collected = nil
    end

    # Compares one property with what was read before, or with values that it had to have earlier.
    def compare(id, name, earlier)
      property = @resources.fetch(id).newattr(name.to_sym)
      return verdict(id, property) if earlier.nil?

      probe = property.class.new(resource: @resources[id])
      probe.instance_variable_set(:@should, earlier.map { |value| restored(property, value) })
      { 'insync' => probe.insync_earlier?(@current.fetch(id)[property.name]) ? true : false }
    end

    # Brings one property into sync; returns the message of the change.
    def sync(id, name)
      @ahead.delete(id)
      property = @resources.fetch(id).property(name)
      property.sync
      property.change_to_s(@current.fetch(id)[property.name], property.should).to_s
    end

    def flush(id)
      @resources.fetch(id).flush
      nil
    end

    def refresh(id)
      @resources.fetch(id).refresh
      nil
    end

    def pre_run_check(id)
      @resources.fetch(id).pre_run_check
      nil
    end

    def generate(id, method)
      [@resources.fetch(id).public_send(method)].flatten.compact.map { |each| described_resource(each) }
    end

    def prefetch(type, provider, ids)
      declared = Puppet::Type.type(type).provider(provider)
      declared.prefetch(ids.map { |id| [@resources.fetch(id).name, @resources[id]] }.to_h)
      nil
    end

    def finish(type, provider)
      declared = Puppet::Type.type(type).provider(provider)
      declared.post_resource_eval if declared.respond_to?(:post_resource_eval)
      nil
    end

    # Returns what exists of a type, by name; the type itself may list it.
    def instances(type, provider)
      declared = Puppet::Type.type(type)
      if provider == '' && declared.respond_to?(:type_definition)
        return declared.instances.map { |each| [each.title, state_of(each.retrieve_resource)] }.to_h
      end
      return declared.instances.map { |each| [each.name.to_s, state_of(all_of(each))] }.to_h if lists?(declared)

      found = declared.provider(provider).instances
      found.each { |each| (@listed ||= {})[[declared.name, each.name.to_s]] = each }
      found.map { |each| [each.name.to_s, state_of(all_of(declared.new(name: each.name, provider: each)))] }.to_h
    end

    private

    def attempt
      [yield, nil]
    rescue Passing
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException -- also SystemExit, SyntaxError, SystemStackError, NoMemoryError
      [nil, Bunraku.described(e)]
    end

    # --- declarations

    def declaration_of(name)
      declaration, error = attempt do
        type = Puppet::Type.type(name).tap { |found| found&.providers }
        type.nil? ? { 'error' => { 'message' => "its file declares no type #{name}" } } : described_type(type)
      end
      error ? { 'error' => error } : declaration
    end

    # Yields; a provider that raises an error is named to the agent, and left out.
    def unless_broken(type, name)
      yield
    rescue StandardError, ScriptError => e
      Bunraku.ask('broken_provider', type.name.to_s, name, Bunraku.described(e))
      nil
    end

    def described_type(type)
      { 'doc' => text(type.doc), 'isomorphic' => type.isomorphic?, 'apply_to' => type.apply_target.to_s,
        'self_refresh' => type.self_refresh ? true : false, 'refreshable' => type.method_defined?(:refresh),
        'ensure_retrieved' => type.needs_ensure_retrieval ? true : false,
        'lists' => lists?(type),
        'generates' => %w[generate eval_generate].select { |each| type.method_defined?(each) },
        'checked' => type.method_defined?(:pre_run_check), 'titles' => type.method(:title_patterns).owner == Puppet::Type.singleton_class ? nil : true,
        'features' => type.feature_docs.map { |feature, docs| [feature, text(docs)] }.to_h,
        'attributes' => attributes_of(type), 'providers' => described_providers(type) }
    end

    def described_providers(type)
      type.provider_hash.values.map { |each| unless_broken(type, each.name.to_s) { described_provider(each) } }.compact
    end

    def attributes_of(type)
      type.allattrs.map { |name| type.attrclass(name) }.compact.map do |attribute|
        property = attribute <= Puppet::Property
        { 'name' => attribute.name.to_s, 'property' => property, 'namevar' => type.key_attributes.include?(attribute.name),
          'doc' => text(attribute.doc), 'values' => attribute.value_collection.strings.map { |each| described_value(each) },
          'patterns' => attribute.value_collection.regexes.map { |each| text(each) },
          'requires' => attribute.required_features.map(&:to_s), 'many' => property && attribute.array_matching == :all,
          'idempotent' => !property || attribute.idempotent? }
      end
    end

    def described_value(value)
      { 'name' => value.name.to_s, 'aliases' => value.aliases.map(&:to_s), 'requires' => (value.required_features || []).map(&:to_s),
        'invalidates' => value.invalidate_refreshes ? true : false }
    end

    def described_provider(provider)
      { 'name' => provider.name.to_s, 'doc' => text(provider.doc), 'features' => provider.features.map(&:to_s), 'default' => provider.default?,
        'specificity' => provider.specificity, 'prefetches' => provider.respond_to?(:prefetch),
        'lists' => provider.method(:instances).owner != Puppet::Provider.singleton_class, 'finishes' => provider.respond_to?(:post_resource_eval) }
    end

    def text(value)
      Wire.text(value.to_s)
    end

    # --- resources

    # Has the values of all resources of a type of the Resource API checked at once, as long as `canonicalize` does not change them.
    def check_ahead(name, list)
      type = Puppet::Type.type(name)
      return unless type.respond_to?(:check_ahead)

      type.check_ahead(list.map { |data| type.names_in(data['title']).merge(data['parameters'].transform_keys(&:to_sym)) })
    end

    def resource_from(data)
      type = Puppet::Type.type(data['type']) or raise Puppet::Error, "Could not find type #{data['type']}"
      purging = data['purging'] && !type.respond_to?(:type_definition)
      parameters = data['parameters'].reject { |name, _| purging && name == 'ensure' }
      listed = purging ? (@listed || {})[[type.name, data['title']]] : nil
      parameters['provider'] = listed if listed # it knows what it found
      given = Puppet::Resource.new(type, data['title'], parameters: parameters)
      given.bunraku_id, given.file, given.line, given.purging = data.values_at('id', 'file', 'line', 'purging')
      given.sensitive_parameters = data['sensitive'].map(&:to_sym)
      given.tag(*data['tags'])
      resource = register(type.new(given), data['id'])
      # What was found on the system may be removed though a manifest could not say so.
      resource[:ensure] = data['parameters']['ensure'] if purging && data['parameters'].key?('ensure')
      resource
    end

    def register(resource, id)
      resource.bunraku_id = id
      @resources[id] = resource
      @by_ref[resource.ref] = resource
      resource
    end

    # Blocks of automatic relationships see all resources of the catalog.
    def made_answer(resource)
      relations, error = attempt { Puppet::Type::RELATIONS.map { |kind| [kind.to_s, resource.automatic(kind)] }.to_h }
      error ? { 'error' => error } : { 'values' => values_of(resource), 'relations' => relations }
    end

    def values_of(resource)
      resource.parameters.values.reject(&:metaparam?).map do |each|
        value = each.is_a?(Puppet::Property) ? each.instance_variable_get(:@should) : each.value
        [each.name.to_s, value]
      end.to_h
    end

    def described_resource(resource)
      data = { 'type' => resource.class.name.to_s, 'title' => resource.title.to_s,
               'parameters' => resource.original_parameters.reject { |name, _| name == :catalog } }
      return data if resource.is_a?(BuiltinType)

      data.merge('id' => Bunraku.ask('new_id').tap { |id| register(resource, id) }, 'made' => made_answer(resource))
    end

    # Returns a resource of a type of the agent's own, whose attributes can still be changed; nil for a class, a define and the like.
    def live_resource(data)
      type = Puppet::Type.type(data['type'])
      return nil unless type && type < BuiltinType

      parameters = data['parameters'].map { |name, value| [name.to_sym, value] }.to_h.select { |name, _| type.validattr?(name) && name != :provider }
      type.new(parameters.merge(title: data['title'], sensitive_parameters: [])).tap { |made| made.live = [data['type'], data['title']] }
    rescue Puppet::Error
      nil
    end

    def as_data(data)
      Puppet::Resource.new(data['type'], data['title'], parameters: data['parameters'])
    end

    # --- reading and comparing

    def parts_of(resource)
      [resource, resource.provider, *resource.parameters.values].compact.uniq(&:object_id)
    end

    def read_one(id, provider, ahead)
      resource = @resources.fetch(id)
      @ahead.delete(id)&.restore
      resource.provider = provider if provider != '' && (resource.provider.nil? || resource.provider.class.name.to_s != provider)
      @ahead[id] = Snapshot.new(parts_of(resource)) if ahead
      current = resource.retrieve_resource
      @current[id] = current
      { 'state' => state_of(current), 'present' => resource.present?(current) ? true : false, 'verdicts' => verdicts(resource, id) }
    end

    def lists?(type)
      type.method(:instances).owner != Puppet::Type.singleton_class
    end

    # Reads all properties of a resource.
    def all_of(resource)
      resource.class.validproperties.each { |name| resource.newattr(name) }
      resource.retrieve_resource
    end

    def state_of(current)
      current.to_hash
    end

    # Compares as far as nothing has to be changed: what follows a change is compared after it.
    def verdicts(resource, id)
      found = {}
      first = resource.property(:ensure)
      if first && !first.should.nil?
        found['ensure'] = verdict(id, first)
        return found unless found['ensure']['insync']
      end
      return found unless resource.present?(@current[id])

      resource.properties.each do |property|
        next if property.name == :ensure || property.should.nil?

        found[property.name.to_s] = verdict(id, property)
        break unless found[property.name.to_s]['insync']
      end
      found
    end

    def verdict(id, property)
      current = @current.fetch(id)[property.name]
      # Puppet compares only what has a value, and neither [] as one value nor false is one.
      insync, error = attempt { !property.should || property.safe_insync?(current) ? true : false }
      return { 'insync' => true } if insync

      texts, wrong = attempt { texts_of(property, current) }
      { 'insync' => false, 'error' => error || wrong }.merge(texts || {})
    end

    def texts_of(property, current)
      desired = property.should
      { 'should' => desired, 'is_text' => property.is_to_s(current).to_s, 'should_text' => property.should_to_s(desired).to_s,
        'event' => property.event_name.to_s }
    end

    # Returns a value that a property had to have at an earlier run, as it was then, when that can be told.
    def restored(property, value)
      property.munge(value)
    rescue StandardError
      value
    end
  end
end
