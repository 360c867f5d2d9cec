# frozen_string_literal: true

Puppet::ResourceApi.register_type(
  name: 'pallet',
  docs: 'A pallet, named by its hall and its place.',
  features: %w[simple_get_filter supports_noop],
  title_patterns: [
    { pattern: %r{\A(?<hall>[^/]+)/(?<place>\d+)\z}, desc: 'Hall and place' },
    { pattern: /\A(?<hall>[a-z]+)\z/, desc: 'The hall only' }
  ],
  attributes: {
    ensure: { type: 'Enum[present, absent]', desc: 'Whether it is there.', default: 'present' },
    hall: { type: 'String', desc: 'The hall.', behaviour: :namevar },
    place: { type: 'String', desc: 'The place.', behaviour: :namevar },
    load: { type: 'Optional[Hash[String, Integer]]', desc: 'What is on it.' },
    height: { type: 'Numeric', desc: 'How high it is.' },
    mode: { type: 'Enum[stack, single]', desc: 'How it is loaded.', behaviour: :parameter, default: 'stack' }
  }
)
