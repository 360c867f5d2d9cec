# Conditions, in all their forms; `kernel` is Linux wherever this is run.

def confined(name, *facts, &block)
  Facter.add("fits_#{name}") do
    facts.empty? ? confine(&block) : confine(*facts, &block)
    setcode { 'fits' }
  end
end

Facter.add(:f_number) { setcode { 5 } }
Facter.add(:f_yes) { setcode { true } }
Facter.add(:f_no) { setcode { false } }
Facter.add(:f_list) { setcode { %w[a b] } }
Facter.add(:f_mixed) { setcode { 'MiXed' } }

confined(:text, kernel: 'Linux')
confined(:other_case, kernel: 'LINUX')
confined(:symbol, kernel: :linux)
confined(:text_key, 'kernel' => 'linux')
confined(:array, kernel: %w[Plan9 linux])
confined(:array_of_kinds, kernel: [/plan/, :linux])
confined(:regexp, kernel: /^lin/)
confined(:regexp_in_capitals, kernel: /^Lin/)
confined(:regexp_without_case, kernel: /^LIN/i)
confined(:range, f_number: 1..9)
confined(:range_beyond, f_number: 6..9)
confined(:number, f_number: 5)
confined(:number_as_text, f_number: '5')
confined(:boolean, f_yes: true)
confined(:boolean_as_text, f_yes: 'true')
confined(:false_is_a_value, f_no: false)
confined(:class, f_number: Integer)
confined(:proc, f_number: ->(number) { number > 4 })
confined(:two, kernel: 'Linux', f_number: 5)
confined(:one_of_two, kernel: 'Linux', f_number: 6)
confined(:missing, no_such_fact: 'x')
confined(:missing_nil, no_such_fact: [nil])
confined(:dotted, 'os.family' => /./)
confined(:mixed, f_mixed: 'mixed')
confined(:list, f_list: [%w[a b]])
confined(:block_of_fact, :kernel) { |value| value == 'linux' }
confined(:block_of_fact_no, :kernel) { |value| value == 'Linux' }
confined(:block_of_missing, :no_such_fact) { true }
confined(:block) { File.directory?('/') }
confined(:block_no) { nil }
confined(:block_raises) { raise 'no' }

Facter.add(:f_several) do
  confine kernel: 'Linux'
  confine { true }
  confine(:f_number) { |number| number == 5 }
  setcode { 'all three' }
end

# Which one counts.
Facter.add(:w_confines) { setcode { 'none' } }
Facter.add(:w_confines) { confine(kernel: 'Linux') && setcode { 'one' } }
Facter.add(:w_confines) { confine(kernel: 'Linux', f_number: 5) && setcode { 'two' } }
Facter.add(:w_weight) { has_weight(10) && setcode { 'ten' } }
Facter.add(:w_weight) { has_weight(20) && setcode { 'twenty' } }
Facter.add(:w_weight) { confine(kernel: 'Linux') && setcode { 'confined' } }
Facter.add(:w_nil) { has_weight(10) && setcode { nil } }
Facter.add(:w_nil) { setcode { 'the next' } }
Facter.add(:w_false) { has_weight(10) && setcode { false } }
Facter.add(:w_false) { setcode { 'the next' } }
Facter.add(:w_error) { has_weight(10) && setcode { raise 'wrong' } }
Facter.add(:w_error) { setcode { 'not reached' } }
Facter.add(:w_tie) { setcode { 'first' } }
Facter.add(:w_tie) { setcode { 'second' } }
Facter.add(:w_option, weight: 30) { setcode { 'thirty' } }
Facter.add(:w_option) { has_weight(20) && setcode { 'twenty' } }
Facter.add(:w_unsuitable) { confine(kernel: 'Plan9') && has_weight(50) && setcode { 'no' } }
Facter.add(:w_unsuitable) { setcode { 'yes' } }

# Against the machine's own, facts.d and the environment.
Facter.add(:kernelversion) { setcode { 'no weight' } }
Facter.add(:kernelmajversion) { has_weight(1) && setcode { 'weight 1' } }
Facter.add(:kernelrelease) { has_weight(1) && setcode { nil } }
Facter.add(:from_external) { setcode { 'custom' } }
Facter.add(:from_external_light) { has_weight(10_000) && setcode { 'as heavy' } }
Facter.add(:from_external_heavy) { has_weight(10_001) && setcode { 'heavier' } }
Facter.add(:from_environment) { has_weight(20_000) && setcode { 'custom' } }
Facter.add(:reads_others) do
  setcode { %w[from_external from_external_light from_external_heavy from_environment kernelmajversion].map { |name| Facter.value(name) } }
end
