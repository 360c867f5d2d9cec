# frozen_string_literal: true

require 'puppet/resource_api'

Puppet::ResourceApi.register_type(
  name: 'sloppy', desc: 'A type whose provider returns what it should not.', features: ['canonicalize'],
  attributes: {
    ensure: { type: 'Optional[Enum[present, absent]]', desc: 'x' },
    name: { type: 'String', desc: 'x', behaviour: :namevar },
    size: { type: 'Optional[Integer]', desc: 'x' },
    secret: { type: 'Optional[String]', desc: 'x', sensitive: true }
  }
)
