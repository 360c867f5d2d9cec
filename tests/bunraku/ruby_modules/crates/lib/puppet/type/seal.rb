# frozen_string_literal: true

require 'puppet/resource_api'

Puppet::ResourceApi.register_type(
  name: 'seal',
  desc: 'A seal: nothing but parameters, compared by the provider.',
  features: %w[custom_insync],
  attributes: {
    name: { type: 'String', desc: 'Its name.', behaviour: :namevar },
    wax: { type: 'String', desc: 'Its colour.', behaviour: :parameter }
  }
)
