Facter.add(:found_by_its_file) { setcode { 'found' } }
