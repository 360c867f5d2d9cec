# frozen_string_literal: true

require 'puppet/resource_api'

Puppet::ResourceApi.register_type(
  name: 'faraway', desc: 'A thing on a device.', features: ['remote_resource'],
  attributes: { ensure: { type: 'Enum[present, absent]', desc: 'x' }, name: { type: 'String', desc: 'x', behaviour: :namevar } }
)
