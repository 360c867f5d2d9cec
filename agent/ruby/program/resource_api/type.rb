# frozen_string_literal: true

module Bunraku
  module ResourceApi
    # What `get` has returned, so that it is called as rarely as can be, and what is known since without it. It counts as long as resources
    # of the type follow each other and nothing is changed; otherwise `get` is called before each resource.
    class States
      def initialize
        @returned = {}
        @concluded = {}
        @all = false
      end

      # Returns everything that exists, nil when nobody has asked for all yet.
      def all
        @all ? @returned.values + @concluded.values.reject { |state| state[:ensure].to_s == 'absent' } : nil
      end

      def [](title)
        @concluded[title] || @returned[title]
      end

      # Tells whether a state is the provider's own, whose form is to be checked.
      def returned?(title)
        @returned.key?(title)
      end

      # Records what the provider has returned.
      def record(title, state)
        @concluded.delete(title)
        @returned[title] = state
      end

      # Records what follows from what the provider has returned or done: that something is absent, or as it should be.
      def conclude(title, state)
        @returned.delete(title)
        @concluded[title] = state
      end

      def complete
        @all = true
      end
    end

    # The class methods of types of the Resource API.
    module Declaration
      attr_reader :type_definition

      def define(definition)
        @type_definition = definition
        @doc = definition.definition[:desc]
        apply_to_device if definition.feature?('remote_resource')
        hide_trigger if definition.feature?('custom_insync') && definition.insyncable_attributes.empty?
        definition.attributes.each { |name, options| declare_attribute(name, options) }
        Puppet::Type::RELATIONS.each { |kind| declare_relations(kind) }
        extend(Titles) if definition.namevars.size > 1 || definition.definition.key?(:title_patterns)
        include(Generating) if definition.feature?('custom_generate')
      end

      # Returns the provider, one object a run.
      def my_provider
        @my_provider ||= Puppet::ResourceApi.load_provider(name).new
      end

      def context
        @context ||= Puppet::ResourceApi::PuppetContext.new(type_definition)
      end

      # It has one provider, which is no attribute.
      def providers
        []
      end

      def provider_hash
        {}
      end

      def states
        @states ||= States.new
      end

      def forget_states
        @states = nil
      end

      def instances
        provider(name)
        states = fetch
        states.zip(type_definition.check_values_of(states)).map do |state, wrong|
          type_definition.check_schema(state, wrong: wrong)
          new(title: state.fetch(:title) { title_of(state) }).tap { |made| made.remember_state(state) }
        end
      end

      # Returns what exists, of a provider that can be told of these names only.
      def fetch(names = nil)
        known = names.nil? ? states.all : nil
        return known if known

        filtered = type_definition.feature?('simple_get_filter')
        found = filtered ? my_provider.get(context, names) : my_provider.get(context)
        found.each { |state| states.record(title_of(state), state) }
        states.complete if names.nil? && !filtered
        found
      end

      # Returns the key of a state or resource: its namevar, or all namevars when there are several.
      def title_of(values)
        names = type_definition.namevars
        names.size > 1 ? names.map { |each| [each, values[each]] }.to_h : values[names.first]
      end

      # Has the values of resources checked in one question, so that their attributes need not ask one after the other.
      #
      # @param resources [Array<Hash>] their attributes
      def check_ahead(resources)
        return if Bunraku.desk.texts?

        settable = type_definition.attributes.reject { |_, options| options[:behaviour] == :read_only }
        values = resources.flat_map do |given|
          settable.map { |name, options| [attrclass(name), given.fetch(name) { options[:default] }] }
        end
        values = values.reject { |_, value| value.nil? }.map { |attribute, value| [attribute, attribute.plain(value)] }.uniq
        values.reject! { |attribute, value| attribute.complaints.key?(value) }
        errors = Values.complaints(values.map { |attribute, value| attribute.to_check(value) })
        values.zip(errors) { |(attribute, value), error| attribute.complaints[value] = error }
      end

      private

      # Without properties nothing would be compared.
      def hide_trigger
        declare_attribute(:rsapi_custom_insync_trigger,
                          type: 'Enum[do_not_specify_in_manifest]', default: 'do_not_specify_in_manifest',
                          desc: 'A hidden property that makes the provider compare resources which have no properties')
      end

      def declare_attribute(name, options)
        type = self
        case options[:behaviour]
        when :parameter, :namevar then newparam(name, parent: Puppet::ResourceApi::Parameter) { declare(type, options) }
        when :read_only then newparam(name, parent: Puppet::ResourceApi::ReadOnlyParameter) { declare(type, options) }
        when :init_only, nil then newproperty(name, parent: Puppet::ResourceApi::Property) { declare(type, options) }
        else raise Puppet::ResourceError, "`#{options[:behaviour]}` is not a valid behaviour value"
        end
      end

      # Values are titles, or `$name` for those of an attribute.
      def declare_relations(kind)
        method = :"auto#{kind == :subscribe ? 'subscribe' : kind}"
        (type_definition.definition[method] || {}).each do |type, titles|
          public_send(method, type.to_s.downcase.to_sym) do
            [titles].flatten.map { |each| each.is_a?(String) && each.start_with?('$') ? self[each[1..-1].to_sym] : each }.flatten.compact
          end
        end
      end
    end

    # Titles that set several attributes.
    module Titles
      def title_patterns
        patterns = type_definition.definition[:title_patterns]
        return [[/(.*)/m, [[type_definition.namevars.first]]]] if patterns.nil?

        patterns.map { |each| [each[:pattern], Regexp.new(each[:pattern]).names.map { |name| [name.to_sym] }] }
      end
    end

    # Resources that a provider makes of one.
    module Generating
      def generate
        raise Puppet::DevError, 'No generate method found within the types provider' unless my_provider.respond_to?(:generate)

        my_provider.generate(context, rsapi_title, rsapi_current_state, rsapi_canonicalized_target_state)
      end
    end

    # The methods of resources of these types.
    module Resource
      def initialize(resource)
        from_catalog = resource.is_a?(Puppet::Resource)
        attributes = attributes_of(resource)
        sensitive = from_catalog ? resource.sensitive_parameters : attributes.delete(:sensitive_parameters) || []
        catalog = from_catalog ? resource.catalog : attributes.delete(:catalog)
        @known_absent = !from_catalog || resource.purging
        sensitive.each { |name| attributes[name] = sealed(name, attributes[name]) if attributes.key?(name) }
        attributes = my_provider.canonicalize(context, [attributes]).first if type_definition.feature?('canonicalize')
        attributes[:title] = attributes.delete(:name) if attributes[:title].nil? && !type_definition.attributes.key?(:name) && !from_catalog
        attributes[:title] = resource.title if attributes[:title].nil? && from_catalog
        super(replaced(self.class.hash2resource(attributes.merge(catalog: catalog, sensitive_parameters: sensitive)), from_catalog ? resource : nil))
      end

      def my_provider
        self.class.my_provider
      end

      def type_definition
        self.class.type_definition
      end

      def context
        self.class.context
      end

      def name
        title
      end

      # --- states

      # Returns what providers know the resource by.
      def rsapi_title
        @rsapi_title ||= self.class.title_of(self)
      end

      # Returns what the manifest wants, as providers get it.
      def rsapi_canonicalized_target_state
        @rsapi_canonicalized_target_state ||= begin
          wanted = @parameters.select { |name, _| type_definition.attributes.key?(name) }.map { |name, attribute| [name, attribute.rs_value] }.to_h
          type_definition.feature?('canonicalize') ? my_provider.canonicalize(context, [wanted]).first : wanted
        end
      end

      # Returns what exists, as the provider returned it, here or for another resource of the type.
      def rsapi_current_state
        return @rsapi_current_state if @rsapi_current_state

        known = self.class.states[rsapi_title]
        strict_check(known) if self.class.states.returned?(rsapi_title)
        @rsapi_current_state = known || fetched_state
      end

      def remember_state(state)
        @rsapi_current_state = self.class.states.record(rsapi_title, state)
        strict_check(state)
      end

      def retrieve
        state = rsapi_current_state
        Puppet.debug("Current State: #{state.inspect}")
        result = Puppet::Resource.new(self.class, title, parameters: state)
        result[:ensure] = result[:ensure].to_sym if type_definition.ensurable? && result[:ensure].is_a?(String)
        properties.each { |each| result[each.name] = nil unless result.key?(each.name) }
        refuse_missing_attributes
        result
      end

      def flush
        refuse_missing_attributes
        target = rsapi_canonicalized_target_state
        current = rsapi_current_state
        return if current == target

        Puppet.debug("Target State: #{target.inspect}")
        check_init_only(current, target)
        change = { rsapi_title => { is: current, should: target } }
        if type_definition.feature?('supports_noop')
          my_provider.set(context, change, noop: noop?)
        elsif !noop?
          my_provider.set(context, change)
        end
        if context.failed?
          context.reset_failed
          raise 'Execution encountered an error'
        end
        @rsapi_current_state = self.class.states.conclude(rsapi_title, target)
      end

      # --- checks

      # Looks for attributes that a resource must have.
      def validate
        @missing_attributes = []
        return if @known_absent

        missing = type_definition.attributes.select { |name, options| missing?(name, options) }
        @missing_attributes = missing.keys - [:ensure]
        parameters = missing.select { |_, options| options[:behaviour] == :parameter }.keys
        return if parameters.empty?

        raise Puppet::ResourceError, "The following mandatory parameters were not provided:\n    *  #{parameters.join(", \n    *  ")}"
      end

      private

      def assign(given)
        self.class.check_ahead([given])
        super
      end

      # Returns the attributes of a resource; those of a manifest begin with what the title says.
      def attributes_of(resource)
        return resource.transform_keys(&:to_sym) unless resource.is_a?(Puppet::Resource)

        self.class.names_in(resource.title).merge(resource.to_hash)
      end

      # Gives what the agent knows of a resource besides its attributes to the data that replace it.
      def replaced(data, resource)
        return data if resource.nil?

        data.bunraku_id, data.file, data.line = resource.bunraku_id, resource.file, resource.line
        data.tag(*resource.tags)
        data
      end

      def sealed(name, value)
        type_definition.attributes.key?(name) ? Values.seal(type_definition.data_type(name), value) : value
      end

      def missing?(name, options)
        return false if %i[read_only namevar].include?(options[:behaviour]) || type_definition.data_type(name).optional
        return false if options[:behaviour].nil? && type_definition.ensurable? && value(:ensure).to_s == 'absent'

        value(name).nil?
      end

      def refuse_missing_attributes
        return if @missing_attributes.empty? || [nil, :absent].include?(value(:ensure))

        raise Puppet::ResourceError, "The following mandatory attributes were not provided:\n    *  #{@missing_attributes.join(", \n    *  ")}"
      end

      def fetched_state
        state = self.class.fetch([rsapi_title]).find { |each| mine?(each) }
        if state
          type_definition.check_schema(state)
          strict_check(state)
          return state
        end
        state = rsapi_title.is_a?(Hash) ? rsapi_title.dup : { title: rsapi_title }
        state[:ensure] = :absent if type_definition.ensurable?
        self.class.states.conclude(rsapi_title, state)
      end

      def mine?(state)
        type_definition.namevars.all? { |name| state[name] == @parameters[name]&.value }
      end

      def check_init_only(current, target)
        return unless current[:ensure].to_s == 'present' && target[:ensure].to_s == 'present'

        target.each do |name, value|
          next unless type_definition.attributes[name][:behaviour] == :init_only && value != current[name]

          complain("Attempting to change `#{name}` init_only attribute value from `#{current[name]}` to `#{value}`", Puppet::ResourceError)
        end
      end

      # Says what is wrong with a provider, as strictly as the setting `strict` wants it.
      def complain(message, error = Puppet::DevError)
        case Puppet::ResourceApi.strictness
        when 'warning' then Puppet.warning(message)
        when 'error' then raise error, message
        end
      end

      def strict_check(state)
        return if Puppet::ResourceApi.strictness == 'off'

        check_canonical(state) if type_definition.feature?('canonicalize')
        check_title(state) if type_definition.namevars.size > 1 && !type_definition.title_patterns.empty?
      end

      def check_canonical(state)
        canonical = my_provider.canonicalize(context, [Marshal.load(Marshal.dump(state))]).first # rubocop:disable Security/MarshalLoad -- a copy
        return if canonical.nil? || canonical == state

        complain("#{type_definition.name}[#{title}]#get has not provided canonicalized values.\n" \
                 "Returned values:       #{state.inspect}\nCanonicalized values:  #{canonical.inspect}")
      end

      def check_title(state)
        return complain("#{type_definition.name}[#{title}]#get has not provided a title attribute.") unless state.key?(:title)

        names = names_of(state[:title])
        return if names == rsapi_title

        wrong = type_definition.namevars.reject { |name| names[name] == rsapi_title[name] }
        complain("#{type_definition.name}[#{title}]#get has provided a title attribute which does not match all namevars.\n" \
                 "Namevars which do not match: #{wrong.inspect}\nReturned parsed title hash:  #{names.inspect}\n" \
                 "Expected hash:               #{rsapi_title.inspect}")
      end

      def names_of(title)
        self.class.title_patterns.each do |pattern, targets|
          match = Regexp.new(pattern).match(title) or next
          return targets.map(&:first).zip(match.captures).to_h
        end
        {}
      end
    end
  end
end
