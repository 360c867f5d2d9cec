# What facts ask Facter and each other.

require 'facter'
begin
  require 'facter/util/own_helper'
rescue LoadError
  load File.join(File.dirname(__FILE__), 'util', 'own_helper.rb')
end

Facter.add(:i_value) { setcode { [Facter.value(:kernel), Facter.value('KERNEL'), Facter.value('os.family').class.to_s, Facter.value(:no_such)] } }
Facter.add(:i_fact) { setcode { [Facter.fact(:kernel).value, Facter[:kernel].value, Facter.fact(:no_such).inspect, Facter[:kernel].name] } }
Facter.add(:i_structure) { setcode { { b: [1, { c: 2 }], 'd' => :e } } }
Facter.add(:i_of_structure) do
  setcode { [Facter.value(:i_structure), Facter.value('i_structure.b.1.c'), Facter.value('i_structure.b.9'), Facter.value('i_structure.x')] }
end
Facter.add(:i_chain_a) { setcode { "a#{Facter.value(:i_chain_b)}" } }
Facter.add(:i_chain_b) { setcode { "b#{Facter.value(:i_chain_c)}" } }
Facter.add(:i_chain_c) { setcode { 'c' } }
Facter.add(:i_by_file) { setcode { Facter.value(:found_by_its_file) } }
Facter.add(:i_recursion) { setcode { Facter.value(:i_recursion_other) } }
Facter.add(:i_recursion_other) { setcode { Facter.value(:i_recursion) } }
Facter.add(:i_helper) { setcode { Facter::Util::OwnHelper.answer } }
Facter.add(:i_version) { setcode { [Facter.version, Facter::VERSION, Facter.value(:facterversion)].uniq.length } }
Facter.add(:i_legacy) { setcode { Facter.value(:osfamily) == Facter.value('os.family') } }
Facter.add(:i_legacy_capitals) { setcode { Facter.value('OsFamily') == Facter.value(:os)['family'] } }
Facter.add(:i_debugging) { setcode { Facter.debug('to nobody').inspect } }
Facter.add(:i_once) { setcode { 2.times { Facter.warnonce('warned once') } && 'warned' } }
Facter.add(:i_warn) { setcode { Facter.warn('warned by a fact').inspect } }
Facter.add(:i_log) { setcode { Facter.log_exception(StandardError.new('of the exception'), 'logged by a fact').inspect } }
Facter.add(:i_log_without) { setcode { Facter.log_exception(StandardError.new('of the exception alone')).inspect } }
Facter.add(:i_flush) { on_flush { @flushed = true } && setcode { 'flushed' } }
Facter.add(:i_counted) { setcode { $i_counted = $i_counted.to_i + 1 } }
Facter.add(:i_counted_once) { setcode { [Facter.value(:i_counted), Facter.value(:i_counted), $i_counted] } }
Facter.add(:i_search_path) { setcode { Facter.search_path.class.to_s } }
Facter.add(:i_file_helper) { setcode { [Facter::Util::FileHelper.safe_read('/no/such/file', 'instead'), Facter::Util::FileHelper.safe_readlines('/no/such/file')] } }
Facter.add(:i_defined) { setcode { [defined?(Facter::Util::Resolution), defined?(Facter::Util::Resolution.which), defined?(Facter::Util::NotThere)].map(&:inspect) } }
Facter.add(:i_of_old) { setcode { Facter::Util::NotThere.new } }
Facter.add(:i_core_value) { setcode { Facter.core_value(:kernelversion) == Facter.value(:kernelversion) } }
Facter.add(:i_method) { setcode { helper_of_another_file } }

def helper_of_another_file
  'defined at the top'
end

Facter.value(:kernel).then do |kernel|
  Facter.add("i_computed_#{kernel.downcase}") { setcode { 'computed' } }
end
