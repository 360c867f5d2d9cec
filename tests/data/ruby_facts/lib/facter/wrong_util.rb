require 'facter/util/ip'
Facter.add(:after_an_old_library) { setcode { 'never' } }
