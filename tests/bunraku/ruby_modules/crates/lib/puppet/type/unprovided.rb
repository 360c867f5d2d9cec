# frozen_string_literal: true

require 'puppet/resource_api'

Puppet::ResourceApi.register_type(
  name: 'unprovided', desc: 'A type without a provider.',
  attributes: { ensure: { type: 'Enum[present, absent]', desc: 'x' }, name: { type: 'String', desc: 'x', behaviour: :namevar } }
)
