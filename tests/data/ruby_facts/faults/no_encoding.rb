Facter.add(:in_no_encoding) { setcode { "Größe" } }
