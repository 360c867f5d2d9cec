# frozen_string_literal: true

require 'puppet/resource_api'

Puppet::ResourceApi.register_type(
  name: 'gauge',
  desc: 'A gauge, which is always there and compares in its own way.',
  features: ['custom_insync'],
  attributes: {
    name: { type: 'String', desc: 'Its name.', behaviour: :namevar },
    level: { type: 'Integer', desc: 'What it shows.', default: 5 },
    words: { type: 'Optional[String]', desc: 'What is written on it.' },
    slack: { type: 'Integer', desc: 'How far off it may be.', behaviour: :parameter, default: 0 }
  }
)
