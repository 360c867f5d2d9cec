class site::base { notify { 'base': noop => false } }
