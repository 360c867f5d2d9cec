# frozen_string_literal: true

module Puppet
  module ResourceApi
    # A provider whose `set` becomes calls of `create`, `update` and `delete`.
    class SimpleProvider
      def set(context, changes)
        raise 'SimpleProvider cannot be used with a Type that is not ensurable' unless context.type.ensurable?

        changes.each { |name, change| set_one(context, name, change) }
      end

      %i[create update delete].each do |action|
        define_method(action) { |_context, _name, _should = nil| raise "#{self.class} has not implemented `#{action}`" }
      end

      private

      def set_one(context, name, change)
        is, should = [change.fetch(:is) { current_state(context, name) }, change[:should]]
        context.type.check_schema(is) unless change.key?(:is)
        is_there, shall_be = [is, should].map { |state| state.nil? ? 'absent' : state[:ensure].to_s }
        key = SimpleProvider.key(context.type.namevars, name, should)
        if is_there == 'absent' && shall_be == 'present'
          context.creating(name) { create(context, key, should) }
        elsif is_there == 'present' && shall_be == 'absent'
          context.deleting(name) { delete(context, key) }
        elsif is_there == 'present'
          context.updating(name) { update(context, key, should) }
        end
      end

      def current_state(context, name)
        found = context.type.feature?('simple_get_filter') ? get(context, [name]) : get(context)
        (found || []).find { |state| SimpleProvider.key(context.type.namevars, state[context.type.namevars.first], state) == name }
      end

      # Returns what names a resource: its name, or a hash of all namevars when there are several.
      def self.key(namevars, name, state)
        namevars.size > 1 ? namevars.map { |each| [each, state[each]] }.to_h : name
      end
    end
  end
end
