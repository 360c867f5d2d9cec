Facter.add(:before_the_error) { setcode { 'is there' } }
raise 'raised by a file'
Facter.add(:after_the_error) { setcode { 'is not' } }
