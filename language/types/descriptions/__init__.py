"""Types in words: why a value does not fit one, and what inspection shows of one."""
