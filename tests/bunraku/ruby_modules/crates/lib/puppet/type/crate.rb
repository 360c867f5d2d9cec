# frozen_string_literal: true

require 'puppet/resource_api'

Puppet::ResourceApi.register_type(
  name: 'crate',
  desc: 'A crate in the depot.',
  features: ['canonicalize'],
  autorequire: { file: '$shelf', crate: %w[$below first] },
  attributes: {
    ensure: { type: 'Enum[present, absent]', desc: 'Whether it is there.', default: 'present' },
    name: { type: 'String[1]', desc: 'Its name.', behaviour: :namevar },
    size: { type: 'Optional[Integer[1, 100]]', desc: 'Its size.' },
    weight: { type: 'Optional[Variant[Float, Integer[0]]]', desc: 'Its weight.' },
    colour: { type: 'Enum[red, green]', desc: 'Its colour, in any case.', default: 'red' },
    label: { type: 'Optional[Variant[Pattern[/\A\d+\z/], Enum[none]]]', desc: 'Its label.' },
    parts: { type: 'Optional[Array[String[1]]]', desc: 'What it is made of.' },
    options: { type: 'Optional[Struct[{lid => Boolean, Optional[screws] => Integer}]]', desc: 'How it is made.' },
    fragile: { type: 'Boolean', desc: 'Whether it breaks.', default: false },
    content: { type: 'Optional[Sensitive[String]]', desc: 'What nobody may know.' },
    keys: { type: 'Optional[Array[Sensitive[String]]]', desc: 'Who can open it.' },
    wood: { type: 'Optional[String]', desc: 'What it is made of for good.', behaviour: :init_only },
    number: { type: 'Optional[Integer]', desc: 'Its number.', behaviour: :read_only },
    shelf: { type: 'Optional[String]', desc: 'Where it stands.', behaviour: :parameter },
    below: { type: 'Optional[String]', desc: 'What it stands on.', behaviour: :parameter },
    fails: { type: 'Boolean', desc: 'Whether changes fail.', behavior: :parameter, default: false }
  }
)
