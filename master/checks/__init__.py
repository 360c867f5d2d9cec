"""`puppet master --check`: the problems of a master before its start, with remedies. It changes nothing."""
