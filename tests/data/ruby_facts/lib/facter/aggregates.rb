# Facts of several chunks, and resolutions with names.

Facter.add(:a_merged, type: :aggregate) do
  chunk(:one) { { 'a' => 1, 'both' => { 'x' => [1] } } }
  chunk(:two) { { 'b' => 2, 'both' => { 'x' => [2], 'y' => nil } } }
  chunk(:none) { nil }
end
Facter.add(:a_lists, type: :aggregate) { chunk(:one) { [1] } && chunk(:two) { [2, 3] } }
Facter.add(:a_sum, type: :aggregate) do
  chunk(:one) { 1 }
  chunk(:three, require: %i[one two]) { |one, two| one + two }
  chunk(:two, require: :one) { |one| one + 1 }
  aggregate { |chunks| chunks.values.sum + chunks.keys.length }
end
Facter.add(:a_scalars, type: :aggregate) { chunk(:one) { 1 } && chunk(:two) { 2 } }
Facter.add(:a_inside, type: :aggregate) { chunk(:one) { { 'a' => { 'b' => 1 } } } && chunk(:two) { { 'a' => { 'b' => 'x' } } } }
Facter.add(:a_cycle, type: :aggregate) { chunk(:one, require: :two) { 1 } && chunk(:two, require: :one) { 2 } }
Facter.add(:a_missing, type: :aggregate) { chunk(:one, require: :nowhere) { 1 } }
Facter.add(:a_object, type: :aggregate) { chunk(:one) { 1..2 } }
Facter.add(:a_frozen, type: :aggregate) do
  chunk(:one) { { 'list' => [1] } }
  aggregate { |chunks| [chunks[:one].frozen?, chunks[:one]['list'].frozen?] }
end
Facter.add(:a_empty, type: :aggregate) {}
Facter.add(:a_confined, type: :aggregate) { confine(kernel: 'Plan9') && chunk(:one) { 1 } }
Facter.add(:a_weighs, type: :aggregate) { has_weight(3) && chunk(:one) { ['aggregate'] } }
Facter.add(:a_weighs) { has_weight(2) && setcode { 'simple' } }
Facter.add(:a_raises, type: :aggregate) { chunk(:one) { raise 'in a chunk' } }

Facter.define_fact(:n_named) do
  define_resolution(:light) { setcode { 'light' } }
  define_resolution(:heavy) { has_weight 7 }
  define_resolution(:heavy) { setcode { 'heavy' } }
end
Facter.define_fact(:n_typed) do
  define_resolution(:parts, type: :aggregate) { chunk(:one) { ['one'] } }
end
Facter.add(:n_option, name: 'a name') { setcode { raise 'it is told' } }
Facter.add(:n_fact_name) { setcode { fact.name.to_s } }
Facter.add(:n_timeout, timeout: 1) { setcode { sleep 20 } }
Facter.add(:n_timeout_method) do
  self.timeout = 1
  setcode { sleep 20 }
end
Facter.add(:n_in_time, timeout: 10) { setcode { 'in time' } }
