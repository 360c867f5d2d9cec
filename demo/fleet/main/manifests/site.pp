# Each machine has one role, which it says by a fact.
include "role::${facts['role']}"
