# What goes wrong costs only itself.

Facter.add(:e_raises) { setcode { raise ArgumentError, 'raised by a fact' } }
Facter.add(:e_method) { setcode { nil.no_such_method } }
Facter.add(:e_constant) { setcode { NoSuchConstant } }
Facter.add(:e_timeout_error) { setcode { raise Timeout::Error, 'its own' } }
Facter.add(:e_prints) { setcode { puts('{"garbage": 1}') || $stderr.puts('to stderr') || 'printed' } }
Facter.add(:e_goes_on) { setcode { 'after them' } }
