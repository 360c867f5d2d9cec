# What values may be, and what becomes of them.

{
  text: 'text', symbol: :word, integer: 42, large: 2**70, float: 1.5, yes: true, no: false, empty_text: '', empty_list: [], empty_hash: {},
  list: [1, 'two', :three, nil, [4.5, { five: 6 }]],
  hash: { 'text' => 1, symbol: :value, 3 => 'three', nested: { deep: [true, nil] } },
  date: Date.new(2020, 2, 29), time: Time.utc(2020, 1, 2, 3, 4, 5), accents: "Größe – 大小",
  latin1: 'Größe'.encode(Encoding::ISO_8859_1), utf16: 'Größe'.encode(Encoding::UTF_16LE), ascii_bytes: 'plain'.b
}.each do |name, value|
  Facter.add("v_#{name}") { setcode { value } }
end

Facter.add(:v_nil) { setcode { nil } }
Facter.add(:v_without_code) { has_weight 5 }
Facter.add(:V_Upper_CASE) { setcode { 'lower' } }
Facter.add('v.dotted.name') { setcode { 'flat' } }
Facter.add(:v_given, value: 'in the options')
Facter.add(:v_given_twice, value: 'first')
Facter.add(:v_given_twice, value: 'second')

# Not allowed.
Facter.add(:bad_object) { setcode { Object } }
Facter.add(:bad_range) { setcode { [1..2] } }
Facter.add(:bad_set) { setcode { Set.new([1]) } }
Facter.add(:bad_key) { setcode { { Object => 1 } } }
Facter.add(:bad_bytes) { setcode { "\xff\xfe".b } }
Facter.add(:bad_utf8) { setcode { "a\xffb" } }
Facter.add(:bad_utf8_inside) { setcode { { 'list' => ["\xff"] } } }
