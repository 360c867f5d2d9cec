Facter.add(:in_wrong_syntax) { setcode { 'never' }
