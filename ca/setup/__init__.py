"""A CA's beginnings: created, adopted from another program, or replaced by a new one."""
