require 'no/such/library'
Facter.add(:after_the_library) { setcode { 'never' } }
